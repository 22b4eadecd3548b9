"""The `topics` section: which topics carry predictions and labels, and where in a record each field lives."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from streamwatch.settings.formats import Format, FormatSection
from streamwatch.settings.mapping import MappingSection
from streamwatch.settings.sections import Section

ENVELOPES = ("cloudevents", "debezium", "kserve_v1", "kserve_v2", "seldon")
NAMESPACE = r"^[A-Za-z0-9._-]{0,64}$"


def listed(value: object) -> object:
    """`one` and `[one]` say the same."""
    return [value] if isinstance(value, str | dict) else value


def named(value: object) -> object:
    """A topic written as plain name has default field names."""
    return {"name": value} if isinstance(value, str) else value


def one_envelope(text: object) -> object:
    """Check the name of an envelope; the error names what there is to choose from."""
    if text is not None and text not in ENVELOPES:
        raise ValueError(f"expected one of {', '.join(ENVELOPES)}, got {text!r}")
    return text


def one_namespace(text: str) -> str:
    """Check the name of a namespace."""
    if not re.fullmatch(NAMESPACE, text):
        raise ValueError(f"expected up to 64 letters, digits, dots, hyphens or underscores, got {text!r}")
    return text


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
    """Format of the records' values: json, avro, protobuf, json_schema, or {type: avro, schema_file: …}."""
    key_format: Format = FormatSection()
    """Format of the records' keys, if a mapping reads them: json (JSON or plain text), or any other
    `format`."""
    envelope: Annotated[
        str | None,
        BeforeValidator(one_envelope, json_schema_input_type=str | None),
        Field(json_schema_extra={"enum": [*ENVELOPES, None]}),
    ] = None
    """Envelope around the records: cloudevents, debezium, kserve_v1, kserve_v2 or seldon."""
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
        """Every mapping of the topic, one at least."""
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
            is_told = kinds[0] is not None or predictions[name] != labels[name]
            if not is_told or any(kind != kinds[0] for kind in kinds):
                raise ValueError(
                    f"topic {name!r} carries predictions and labels: give it the same mapping under both, "
                    "with `kind` to tell them apart; or, if every record holds both, under each side "
                    "a mapping of its own"
                )
        spaces = {topic.name: topic.namespace for topic in self.predictions}
        for topic in self.labels:
            if spaces.get(topic.name, topic.namespace) != topic.namespace:
                raise ValueError(
                    f"topic {topic.name!r} carries predictions and labels: give both one namespace"
                )
        labelled = {topic.namespace for topic in self.labels}
        for space in sorted(labelled ^ set(spaces.values())):
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
        formats = {topic.name: topic.format for topic in self.predictions}
        for topic in self.labels:
            if formats.get(topic.name, topic.format) != topic.format:
                raise ValueError(f"topic {topic.name!r} carries predictions and labels: give both one format")
        keys = {topic.name: topic.key_format for topic in self.predictions}
        for topic in self.labels:
            if keys.get(topic.name, topic.key_format) != topic.key_format:
                raise ValueError(
                    f"topic {topic.name!r} carries predictions and labels: give both one key_format"
                )
        envelopes = {topic.name: topic.envelope for topic in self.predictions}
        for topic in self.labels:
            if envelopes.get(topic.name, topic.envelope) != topic.envelope:
                raise ValueError(
                    f"topic {topic.name!r} carries predictions and labels: give both one envelope"
                )
        return self
