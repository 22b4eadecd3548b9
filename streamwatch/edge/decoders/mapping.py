"""Where in a topic's records each field of a prediction or label lives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from streamwatch.edge.decoders.places import (
    AnyLocation,
    Constant,
    FieldLocation,
    InArray,
    InHeader,
    InKey,
    InTopic,
    InValue,
    Joined,
    Places,
    parse_field_location,
    parse_places,
)

__all__ = [
    "AnyLocation",
    "ClassOfLargest",
    "ClassOfScore",
    "Constant",
    "FieldLocation",
    "InArray",
    "InHeader",
    "InKey",
    "InTopic",
    "InValue",
    "Joined",
    "KindRule",
    "Places",
    "ScoreArray",
    "SidedMapping",
    "TimestampUnit",
    "TopicMapping",
    "parse_field_location",
    "parse_places",
    "places_of",
]

TimestampUnit: TypeAlias = Literal["ms", "s", "us", "ns", "iso8601"]


@dataclass(frozen=True, slots=True)
class KindRule:
    """Tells predictions from labels on a topic that carries both: the content of one place."""

    field: str = "value.kind"
    prediction: str = "prediction"
    label: str = "label"


@dataclass(frozen=True, slots=True)
class ClassOfScore:
    """A class by a threshold: `above` where the number at `score` is at least `threshold`, else `below`."""

    score: str
    threshold: float
    above: str
    below: str
    probability: bool = False
    """Whether the number is the probability of `above`; it then gives scores, too."""


@dataclass(frozen=True, slots=True)
class ClassOfLargest:
    """The class with the largest score.

    `largest` is the place of an object of class → number, or of an array of numbers in the order of
    `classes`. Of equal ones it is the first: of an object by the name of the class, of an array by position.
    """

    largest: str
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoreArray:
    """Probabilities as an array at `array`, in the order of `classes`."""

    array: str
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicMapping:
    """Places of the fields, as `value.a.b`, `key`, `header:x`, `topic` or a constant `=fraud-v3`.

    Several places of one field are joined to one text. The defaults fit flat JSON with the fields' own names.
    None means that records do not carry the field. A field that only the other kind has (`prediction` on a
    label topic) is never looked at.
    """

    id: Places = "value.id"
    model: Places | None = "value.model"
    """On labels optional: a label without it is for every model that predicted the id."""
    prediction: Places | ClassOfScore | ClassOfLargest = "value.prediction"
    label: Places | ClassOfScore = "value.label"
    timestamp: str | None = "value.timestamp"
    timestamp_unit: TimestampUnit = "ms"
    scores: str | ScoreArray | None = "value.scores"
    fold: str | None = "value.fold"
    """Which fold of the model predicted; refused where settings have no scheme of folds."""
    segments: Mapping[str, str] = field(default_factory=dict[str, str])
    """Places of what tells predictions apart for evaluation, by the segment's name."""
    classes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Aliases, as they are written in records → the class meant (`{"true": "fraud"}`)."""
    kind: KindRule | None = None
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Place → texts one of which must stand there; any other record gives nothing by this mapping."""
    optional: bool = False
    """A record, or element, without the class gives nothing by this mapping; otherwise it is invalid."""


@dataclass(frozen=True, slots=True)
class SidedMapping:
    """One of the mappings of a topic, and whether it makes predictions or labels."""

    side: Literal["prediction", "label"]
    mapping: TopicMapping


def places_of(mapping: TopicMapping, slot: str) -> Places | None:
    """Give the place, or places, that a mapping names for a field, whatever is made of the content."""
    found: object = getattr(mapping, slot)
    match found:
        case ClassOfScore(score):
            return score
        case ClassOfLargest(largest):
            return largest
        case ScoreArray(array):
            return array
        case str() | tuple() | None:
            return cast("Places | None", found)
        case _:
            raise TypeError(f"{slot}: expected a place, got {found!r}")
