"""The `topics` section: topics of predictions and labels, and the mapping of fields in their records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from streamwatch.core.records.events import LEAST_PROBABILITY
from streamwatch.edge.decoders.mapping import (
    PATH,
)
from streamwatch.edge.decoders.texts import Encoding, steps_to
from streamwatch.settings.field_forms import (
    Class,
    FieldLocation,
    OptionalText,
    PredictedClass,
    Scores,
    Segments,
    Text,
    Texts,
    TrueClass,
    as_texts,
)
from streamwatch.settings.sections import ReadableFile, Section, TextFile, require_one_form, secret
from streamwatch.settings.values import Bounded, Duration, Lasting, one_of


class KindSection(Section):
    """Rule that distinguishes predictions from labels on a topic that carries both."""

    field: FieldLocation = "value.kind"
    """Path of the field that says which of the two a record is."""
    prediction: Class = "prediction"
    """Value of the field in a prediction."""
    label: Class = "label"
    """Value of the field in a label."""


class MappingSection(Section):
    """Location of each field: `value.a.b` (dotted path), `key`, `header:x`, `topic`, or a constant `=v3`.

    `value.list[0].b` is in one element of an array; `value.list[].b` makes an event of each element, and an
    `id` beside the array, not in it, is then followed by `#` and the number of the element, from 0.
    `value."a.b"` is a field with a dot in its name. `value` is the whole value, if it is no object.

    An id, model or class of several fields is a list of paths, whose texts are joined:
    `[value.model.name, value.model.version]` gives `fraud/7`. A path that ends in `?` may be empty.
    `{path: value.id, strip_prefix: txn-}` leaves out what a text begins or ends with.

    `{key_of: value.scores}` makes an event of each field of an object: its name is the model (or the id), and
    `value.scores.*` is its content. `value.pred_*` is each field whose name begins so.
    """

    id: Text = "value.id"
    """Id that a prediction and its label share."""
    model: OptionalText = "value.model"
    """Name of the model, or {key_of: value.scores} if the object there has a field for each model. A label
    without it applies to every model that predicted the id."""
    prediction: PredictedClass = "value.prediction"
    """Predicted class; or {score: value.p, threshold: 0.5, above: fraud, below: legit}, with probability:
    true if the score is the probability of `above`, and a path if records have the threshold; or {largest:
    value.scores}, with classes: [legit, fraud] if the scores are an array. With `key_of` the default is the
    content of each field."""
    label: TrueClass = "value.label"
    """True class, or {score, threshold, above, below}. With `key_of` the default is the content of each
    field."""
    timestamp: FieldLocation | None = "value.timestamp"
    """Event time. If a record has none, Kafka's timestamp is used."""
    timestamp_unit: Literal["ms", "s", "us", "ns", "iso8601"] = "ms"
    """Unit of `timestamp`: ms, s, us or ns since 1970, or iso8601, which is in UTC where it has no offset."""
    scores: Scores = "value.scores"
    """Probability of each class, if records have them; {array: value.p, classes: [legit, fraud]} if they are
    an array."""
    fold: FieldLocation | None = "value.fold"
    """Fold of the model that predicted, if models predict in folds (`folds`). Set to null to ignore the
    field."""
    label_probability: FieldLocation | None = None
    """Probability with which the label of a prediction is asked for, if labels are sampled."""
    label_requested: FieldLocation | None = None
    """Whether the label was asked for (true or false): distinguishes a missing label from one that nobody
    wanted."""
    min_label_probability: Annotated[float, Bounded(least=LEAST_PROBABILITY, most=1)] | None = None
    """Smallest `label_probability` that records may have; any smaller one is invalid."""
    segments: Segments = Field(default_factory=dict[str, str])
    """Fields by whose values models are also evaluated: a list (`[country, value.channel]`), or name → path.
    A record without the field counts for none of its values."""
    classes: dict[Class, Class] = Field(default_factory=dict[str, str])
    """Aliases of classes: the class as written in records → the class that is meant."""
    kind: KindSection | None = None
    """How to distinguish predictions from labels, on a topic that carries both."""
    when: dict[FieldLocation, Texts] = Field(default_factory=dict[str, tuple[str, ...]])
    """Condition: path → text, or list of texts. The mapping skips records with any other value there, or
    none."""
    optional: bool = False
    """Skip records without the class instead of counting them as invalid."""

    @model_validator(mode="after")
    def _sampling_is_whole(self) -> MappingSection:
        if (self.label_probability is None) != (self.min_label_probability is None):
            raise ValueError("label_probability and min_label_probability need each other")
        if self.label_requested is not None and self.label_probability is None:
            raise ValueError("label_requested needs label_probability")
        return self


OWN_KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "json": (),
        "avro": ("schema_id", "subject", "version", "schema_file"),
        "protobuf": ("schema_id", "subject", "version", "schema_file", "message"),
        "json_schema": (),
        "text": (),
    }
)
"""Keys that each format allows beside `type`."""
FORMATS = tuple(OWN_KEYS)


def typed(value: object) -> object:
    """Convert `avro` to `{type: avro}`."""
    return {"type": value} if isinstance(value, str) else value


class FormatSection(Section):
    """Format of a topic's values, and the schema if records do not name it."""

    type: Annotated[
        str,
        one_of(*FORMATS),
        Field(json_schema_extra={"enum": list(FORMATS)}),
    ] = "json"
    """Format: json, avro, protobuf, json_schema or text."""
    schema_id: Annotated[int, Bounded(least=1)] | None = None
    """avro, protobuf: id of the schema in the registry, for records that do not name it."""
    subject: Annotated[str, Field(min_length=1)] | None = None
    """avro, protobuf: subject of the schema in the registry, for records that do not name it."""
    version: Annotated[int, Bounded(least=1)] | None = None
    """avro, protobuf: version of the subject. If not set, the latest one at the start."""
    schema_file: TextFile | None = None
    """avro, protobuf: file with the schema (.avsc, .proto), for records that do not name it."""
    message: Annotated[str, Field(min_length=1)] | None = None
    """protobuf: full name of the message, for records that do not name it. If not set, the first message of
    the schema."""

    @model_validator(mode="after")
    def _fits(self) -> FormatSection:
        for key in sorted(self.model_fields_set - {"type"} - set(OWN_KEYS[self.type])):
            if getattr(self, key) is not None:
                raise ValueError(f"{key} is not for format {self.type}")
        given = [key for key in ("schema_id", "subject", "schema_file") if getattr(self, key) is not None]
        if len(given) > 1:
            raise ValueError(f"give one of schema_id, subject and schema_file, got {', '.join(given)}")
        if self.version is not None and self.subject is None:
            raise ValueError("version needs a subject")
        if self.message is not None and not given:
            raise ValueError("message needs schema_id, subject or schema_file: else records name it")
        return self

    def read_schema(self) -> str | None:
        """Return the content of `schema_file`; None without one."""
        return None if self.schema_file is None else self.schema_file.read_text(encoding="utf-8")


Format = Annotated[FormatSection, BeforeValidator(typed, json_schema_input_type=str | FormatSection)]


class SchemaRegistrySection(Section):
    """Registry that speaks Confluent's protocol (Confluent, Apicurio's ccompat, Karapace, Redpanda)."""

    url: str | None = None
    """URL, such as https://registry:8081 or, with a path, https://apicurio/apis/ccompat/v7. If not set, no
    registry is used."""
    username: str | None = None
    """User name for HTTP basic authentication, or the key of an API key."""
    password_file: TextFile | None = None
    """File that contains the password. A trailing newline is ignored."""
    password: SecretStr | None = None
    """Password. Prefer `password_file`."""
    token_file: TextFile | None = None
    """File that contains a bearer token, instead of a user name and password."""
    ca_file: ReadableFile | None = None
    """Certificates to trust, in PEM format. If not set, the system's certificates."""
    timeout: Annotated[Duration, Lasting("100ms", "5m")] = 10_000
    """Maximum time to fetch a schema with everything it refers to."""

    @field_validator("url")
    @classmethod
    def _plain_url(cls, url: str | None) -> str | None:
        if url is not None and not re.fullmatch(r"https?://[^/\s@?#]+(/[^\s@?#]*)?", url):
            raise ValueError(
                "expected a URL such as https://registry:8081, users and passwords in keys of their own "
                "(not shown)"
            )
        return url

    @model_validator(mode="after")
    def _complete(self) -> SchemaRegistrySection:
        require_one_form(self, "password")
        given = self.password is not None or self.password_file is not None
        if given != (self.username is not None):
            raise ValueError("give username and password_file together")
        if self.token_file is not None and self.username is not None:
            raise ValueError("give token_file or username, not both")
        return self

    def read_password(self) -> str | None:
        """Return the password, from its file if it is in one; None without a password."""
        return secret(self.password, self.password_file)

    def read_token(self) -> str | None:
        """Return the bearer token; None without one."""
        return secret(None, self.token_file)


ENVELOPES = ("cloudevents", "debezium", "kserve_v1", "kserve_v2", "seldon")
NAMESPACE = r"^[A-Za-z0-9._-]{0,64}$"


def listed(value: object) -> object:
    """Return a topic that is not in a list as a list of it."""
    return [value] if isinstance(value, str | dict) else value


def named(value: object) -> object:
    """Convert the name of a topic to `{name: …}`, which has default field names; ValueError for a number."""
    if isinstance(value, int | float):
        raise ValueError(f"expected a topic's name or a mapping, got {value!r}; put a name in quotes")  # noqa: TRY004 - pydantic's way
    return {"name": value} if isinstance(value, str) else value


def one_envelope(text: object) -> object:
    """Check the name of an envelope; the error lists the choices."""
    if text is not None and text not in ENVELOPES:
        raise ValueError(f"expected one of {', '.join(ENVELOPES)}, got {text!r}")
    return text


def one_namespace(text: str) -> str:
    """Check the name of a namespace."""
    if not re.fullmatch(NAMESPACE, text):
        raise ValueError(f"expected up to 64 letters, digits, dots, hyphens or underscores, got {text!r}")
    return text


def path_of_texts(text: str) -> str:
    """Check that a path of `decode` leads to texts in the value."""
    steps_to(text)
    return text


Decode = Annotated[
    dict[
        Annotated[str, AfterValidator(path_of_texts), Field(json_schema_extra={"pattern": PATH})],
        Annotated[
            tuple[Encoding, ...],
            Field(min_length=1),
            BeforeValidator(as_texts, json_schema_input_type=Encoding | list[Encoding]),
        ],
    ],
    Field(),
]


class TopicSection(Section):
    """One topic."""

    name: Annotated[str, Field(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]+$")]
    """Name of the topic."""
    namespace: Annotated[
        str, AfterValidator(one_namespace), Field(json_schema_extra={"pattern": NAMESPACE})
    ] = ""
    """Namespace of the topic's ids. Ids of different namespaces never match: use one for each use case that
    assigns its own ids."""
    format: Format = FormatSection()
    """Format of the records' values: json, avro, protobuf, json_schema, text (which is in the path `value`),
    or {type: avro, schema_file: …}."""
    key_format: Format = FormatSection()
    """Format of the records' keys, if a mapping reads them: json (JSON or plain text), or any other
    `format`."""
    envelope: Annotated[
        str | None,
        BeforeValidator(one_envelope, json_schema_input_type=str | None),
        Field(json_schema_extra={"enum": [*ENVELOPES, None]}),
    ] = None
    """Envelope around the records: cloudevents, debezium, kserve_v1, kserve_v2 or seldon."""
    decode: Decode = Field(default_factory=dict[str, "tuple[Encoding, ...]"])
    """Texts that hold more: path → json, csv, tsv or base64, or a list such as [base64, json]. Paths of the
    mapping lie in what the text says: with {value.body: json}, value.body.id; with csv, value.body[0][1] is
    the second cell of the first row."""
    mapping: MappingSection = MappingSection()
    """Where to find each field in the records."""
    mappings: tuple[MappingSection, ...] = ()
    """Several mappings instead of one. Each makes its own event of a record, for example if a record holds
    the predictions of two models."""

    @model_validator(mode="after")
    def _one_or_several(self) -> TopicSection:
        if self.mappings and "mapping" in self.model_fields_set:
            raise ValueError(f"topic {self.name!r} has both mapping and mappings: expected one of them")
        return self

    @property
    def all_mappings(self) -> tuple[MappingSection, ...]:
        """All mappings of the topic, at least one."""
        return self.mappings or (self.mapping,)


Topics = Annotated[
    tuple[Annotated[TopicSection, BeforeValidator(named)], ...],
    Field(min_length=1),
    BeforeValidator(listed, json_schema_input_type=str | TopicSection | list[str | TopicSection]),
]


class TopicsSection(Section):
    """Topics that carry predictions, and topics that carry labels."""

    predictions: Topics
    """Topics of predictions: names, or {name, mapping} if fields are not called id, model and prediction."""
    labels: Topics
    """Topics of labels: names, or {name, mapping} if fields are not called id and label."""

    @model_validator(mode="after")
    def _sides(self) -> TopicsSection:
        for side, topics in (("predictions", self.predictions), ("labels", self.labels)):
            names = [topic.name for topic in topics]
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(
                        f"topic {name!r} is listed twice under {side}: list it once, with `mappings` for "
                        "several events of one record"
                    )
        labels = {topic.name: topic.all_mappings for topic in self.labels}
        predictions = {topic.name: topic.all_mappings for topic in self.predictions}
        for name in predictions.keys() & labels.keys():
            kinds = [each.kind for each in (*predictions[name], *labels[name])]
            is_distinguishable = kinds[0] is not None or predictions[name] != labels[name]
            if not is_distinguishable or any(kind != kinds[0] for kind in kinds):
                raise ValueError(
                    f"topic {name!r} carries predictions and labels: give it the same mapping under both, "
                    "with `kind` to distinguish them; or, if every record holds both, under each side "
                    "a mapping of its own"
                )
        self._require_one("namespace")
        labelled = {topic.namespace for topic in self.labels}
        for space in sorted(labelled ^ {topic.namespace for topic in self.predictions}):
            missing = "prediction" if space in labelled else "label"
            raise ValueError(f"namespace {space!r} has no {missing} topic, so nothing in it can ever match")
        for name in predictions.keys() ^ labels.keys():
            if any(each.kind is not None for each in (predictions | labels)[name]):
                raise ValueError(
                    f"the mapping of topic {name!r} has `kind`: list it under predictions and labels"
                )
        return self

    @model_validator(mode="after")
    def _formats(self) -> TopicsSection:
        for key in ("format", "key_format", "envelope", "decode"):
            self._require_one(key)
        return self

    def _require_one(self, key: str) -> None:
        """Raise ValueError unless each topic that is on both sides has the same value of a key there."""
        predictions = {topic.name: getattr(topic, key) for topic in self.predictions}
        for topic in self.labels:
            if topic.name in predictions and predictions[topic.name] != getattr(topic, key):
                raise ValueError(f"topic {topic.name!r} carries predictions and labels: give both one {key}")
