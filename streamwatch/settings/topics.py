"""The `topics` section: which topics carry predictions and labels, and where in a record each field lives."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from streamwatch.settings.sections import Section

FORMATS = ("json",)
NAMESPACE = r"^[A-Za-z0-9._-]{0,64}$"
PLACE = r"^(key|topic|header:.+|=.+|value(\.[^.]+)+)$"


def placed(text: str) -> str:
    """Check the notation of a place."""
    if not re.fullmatch(PLACE, text):
        raise ValueError(
            f"expected value.some.field, key, header:name, topic or a constant =text, got {text!r}"
        )
    return text


def listed(value: object) -> object:
    """`one` and `[one]` say the same."""
    return [value] if isinstance(value, str | dict) else value


def named(value: object) -> object:
    """A topic written as plain name has default field names."""
    return {"name": value} if isinstance(value, str) else value


def as_text(value: object) -> object:
    """Classes written as numbers or booleans are meant as their text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


FieldLocation = Annotated[str, AfterValidator(placed), Field(json_schema_extra={"pattern": PLACE})]
Class = Annotated[str, BeforeValidator(as_text, json_schema_input_type=str | int | bool)]


class KindSection(Section):
    """Rule by which predictions and labels are told apart on a topic that carries both."""

    field: FieldLocation = "value.kind"
    """The place that tells."""
    prediction: Class = "prediction"
    """What stands there in a prediction."""
    label: Class = "label"
    """What stands there in a label."""


class MappingSection(Section):
    """Location of each field: `value.a.b` (dotted path), `key`, `header:x`, `topic`, or a constant `=v3`."""

    id: FieldLocation = "value.id"
    """What a prediction and its label have in common."""
    model: FieldLocation | None = "value.model"
    """The model's name. A label without it is for every model that predicted the id."""
    prediction: FieldLocation = "value.prediction"
    """The predicted class."""
    label: FieldLocation = "value.label"
    """The true class."""
    timestamp: FieldLocation | None = "value.timestamp"
    """When it happened, if the record says so; else Kafka's timestamp counts."""
    timestamp_unit: Literal["ms", "s", "us", "ns", "iso8601"] = "ms"
    """Unit of `timestamp`: ms, s, us, ns (since 1970) or iso8601."""
    scores: FieldLocation | None = "value.scores"
    """Probability per class, if there are any."""
    fold: FieldLocation | None = "value.fold"
    """Which fold of the model predicted, where it has several (`folds`); null: the field is not looked at."""
    classes: dict[Class, Class] = Field(default_factory=dict[str, str])
    """Aliases: the class as records write it → the class meant."""
    kind: KindSection | None = None
    """Only on a topic that carries both predictions and labels: how to tell them apart."""


def one_format(text: object) -> object:
    """Check the name of a format; the error names what there is to choose from."""
    if text not in FORMATS:
        raise ValueError(f"expected one of {', '.join(FORMATS)}, got {text!r}")
    return text


def one_namespace(text: str) -> str:
    """Check the name of a namespace."""
    if not re.fullmatch(NAMESPACE, text):
        raise ValueError(f"expected up to 64 letters, digits, dots, hyphens or underscores, got {text!r}")
    return text


class TopicSection(Section):
    """One topic."""

    name: Annotated[str, Field(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]+$")]
    """The topic."""
    namespace: Annotated[
        str, AfterValidator(one_namespace), Field(json_schema_extra={"pattern": NAMESPACE})
    ] = ""
    """Ids of different namespaces never meet: one for each use case that numbers its ids on its own."""
    format: Annotated[
        str,
        BeforeValidator(one_format, json_schema_input_type=str),
        Field(json_schema_extra={"enum": list(FORMATS)}),
    ] = "json"
    """Format of its records' values."""
    mapping: MappingSection = MappingSection()
    """Where each field lives in its records."""


Topics = Annotated[
    tuple[Annotated[TopicSection, BeforeValidator(named)], ...],
    Field(min_length=1),
    BeforeValidator(listed, json_schema_input_type=str | TopicSection | list[str | TopicSection]),
]


class TopicsSection(Section):
    """Topics that carry predictions, and those that carry labels."""

    predictions: Topics
    """Topics of predictions: names, or {name, mapping} where fields are not called id, model, prediction."""
    labels: Topics
    """Topics of labels: names, or {name, mapping} where fields are not called id, label."""

    @model_validator(mode="after")
    def _sides(self) -> TopicsSection:
        for side, topics in (("predictions", self.predictions), ("labels", self.labels)):
            names = [topic.name for topic in topics]
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"topic {name!r} is listed twice under {side}")
        labels = {topic.name: topic.mapping for topic in self.labels}
        predictions = {topic.name: topic.mapping for topic in self.predictions}
        for name in predictions.keys() & labels.keys():
            if predictions[name].kind is None or predictions[name] != labels[name]:
                raise ValueError(
                    f"topic {name!r} carries predictions and labels: give it the same mapping under both, "
                    "with `kind` to tell them apart"
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
            raise ValueError(f"namespace {space!r} has no {missing} topic: nothing in it could ever join")
        for name in predictions.keys() ^ labels.keys():
            if (predictions | labels)[name].kind is not None:
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
        return self
