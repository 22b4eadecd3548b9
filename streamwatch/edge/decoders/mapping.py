"""Where in a topic's records each field of a prediction or label lives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

TimestampUnit: TypeAlias = Literal["ms", "s", "us", "ns", "iso8601"]


@dataclass(frozen=True, slots=True)
class KindRule:
    """Tells predictions from labels on a topic that carries both: the content of one place."""

    field: str = "value.kind"
    prediction: str = "prediction"
    label: str = "label"


@dataclass(frozen=True, slots=True)
class TopicMapping:
    """Places of the fields, as `value.a.b`, `key`, `header:x`, `topic` or a constant `=fraud-v3`.

    The defaults fit flat JSON with the fields' own names. None means that records do not carry the field. A
    field that only the other kind has (`prediction` on a label topic) is never looked at.
    """

    id: str = "value.id"
    model: str | None = "value.model"
    """On labels optional: a label without it is for every model that predicted the id."""
    prediction: str = "value.prediction"
    label: str = "value.label"
    timestamp: str | None = "value.timestamp"
    timestamp_unit: TimestampUnit = "ms"
    scores: str | None = "value.scores"
    fold: str | None = "value.fold"
    """Which fold of the model predicted; refused where settings have no scheme of folds."""
    classes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Aliases, as they are written in records → the class meant (`{"true": "fraud"}`)."""
    kind: KindRule | None = None


@dataclass(frozen=True, slots=True)
class InValue:
    """A dotted path into the JSON value."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InKey:
    """The record's key, as text."""


@dataclass(frozen=True, slots=True)
class InHeader:
    """The last header of this name, as text."""

    name: str


@dataclass(frozen=True, slots=True)
class InTopic:
    """The topic's name."""


@dataclass(frozen=True, slots=True)
class Constant:
    """The same text for every record."""

    text: str


FieldLocation: TypeAlias = InValue | InKey | InHeader | InTopic | Constant


def parse_field_location(text: str) -> FieldLocation:
    """Read the notation of one place.

    Raises
    ------
    ValueError
        Naming the forms that are understood.
    """
    if text == "key":
        return InKey()
    if text == "topic":
        return InTopic()
    if text.startswith("=") and len(text) > 1:
        return Constant(text[1:])
    if text.startswith("header:") and len(text) > len("header:"):
        return InHeader(text[len("header:") :])
    head, dot, rest = text.partition(".")
    path = tuple(rest.split("."))
    if head == "value" and dot and all(path):
        return InValue(path)
    raise ValueError(
        f"expected value.some.field, key, header:name, topic or a constant such as =fraud-v3; got {text!r}"
    )
