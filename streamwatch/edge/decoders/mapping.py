"""Where in a topic's records each field of a prediction or label lives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, cast

# The notation of places: `value.a.b`, `value.a[].b`, `key`, `key.a`, `header:x`, `topic`, `=text`.
#
# A field of a mapping has one place, or several whose texts make one: `[value.model, value.version]`.


Step: TypeAlias = str | int
"""A field's name, or an index."""
Places: TypeAlias = str | tuple[str, ...]
"""One place, or those whose texts are joined; in the latter a place that may be empty ends in `?`."""
OPTIONAL: Final = "?"
"""End of a place, among several, that need not have a content. A field called so is written in quotes."""

PLACE: Final = (
    r'^(key(\.("([^"]|"")+"|[^.\[\]"][^.\[\]]*))*|topic|header:.+|=.+'
    r'|value(\.("([^"]|"")+"|[^.\[\]"][^.\[\]]*)|\[[0-9]*\])+)$'
)
"""The notation as a regular expression, for JSON Schema; `[]` at most once is not said by it."""
_STEP = re.compile(r'\.(?:"((?:[^"]|"")+)"|([^.\[\]"][^.\[\]]*))|\[([0-9]{0,9})\]')
_NEGATIVE = re.compile(r"\[-\d+\]")


@dataclass(frozen=True, slots=True)
class InValue:
    """Names of fields, each in the object before it, from the value on."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InArray:
    """A path on which arrays lie.

    Attributes
    ----------
    path
        Names of fields, and indices from 0, from the value on.
    each
        What follows `[]`: `path` is then the place of an array, and this the place in each of its elements.
        None: the place is one for the whole record.
    """

    path: tuple[Step, ...]
    each: tuple[Step, ...] | None = None


@dataclass(frozen=True, slots=True)
class InKey:
    """The record's key, as text; or a field of it."""

    path: tuple[str, ...] = ()
    """Names of fields, each in the object before it, where the key is an object; empty for the key itself."""


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


FieldLocation: TypeAlias = InValue | InArray | InKey | InHeader | InTopic | Constant


@dataclass(frozen=True, slots=True)
class Joined:
    """Several places, whose texts make one (see `joined_text`).

    Attributes
    ----------
    parts
        The places, in the order of their texts.
    optional
        Of each, whether it may have no content.
    """

    parts: tuple[FieldLocation, ...]
    optional: tuple[bool, ...]


AnyLocation: TypeAlias = FieldLocation | Joined


def parse_places(places: Places) -> AnyLocation:
    """Read the notation of one place, or of several that are joined.

    Raises
    ------
    ValueError
        A place is not in the notation.
    """
    if isinstance(places, str):
        return parse_field_location(places)
    texts = [place.removesuffix(OPTIONAL) for place in places]
    return Joined(
        tuple(map(parse_field_location, texts)), tuple(place.endswith(OPTIONAL) for place in places)
    )


def parse_field_location(text: str) -> FieldLocation:
    """Read the notation of one place.

    Raises
    ------
    ValueError
        Naming the forms that are understood.
    """
    if text == "key" or text.startswith("key."):
        return _in_key(text)
    if text == "topic":
        return InTopic()
    if text.startswith("=") and len(text) > 1:
        return Constant(text[1:])
    if text.startswith("header:") and len(text) > len("header:"):
        return InHeader(text[len("header:") :])
    steps = _steps(text.removeprefix("value")) if text.startswith("value") else []
    if not steps:
        raise ValueError(f"{_expected(text)}, got {text!r}")
    if steps.count("[]") > 1:
        raise ValueError(f"expected [] at most once (one event per element of one array), got {text!r}")
    path = [step.name if isinstance(step, _Name) else step for step in steps]
    if "[]" in steps:
        at = steps.index("[]")
        return InArray(tuple(path[:at]), tuple(path[at + 1 :]))
    names = tuple(step for step in path if isinstance(step, str))
    return InValue(names) if len(names) == len(path) else InArray(tuple(path))


def notation(places: Places | None) -> str:
    """Write one place, or several, as settings have them; `null` without any."""
    if places is None:
        return "null"
    return places if isinstance(places, str) else f"[{', '.join(places)}]"


def _in_key(text: str) -> InKey:
    if text == "key":
        return InKey()
    steps = _steps(text.removeprefix("key"))
    names = tuple(step.name for step in steps if isinstance(step, _Name))
    if not names or len(names) < len(steps):
        raise ValueError(f"expected key or key.field, fields in objects only, got {text!r}")
    return InKey(names)


def is_each(location: FieldLocation | None) -> bool:
    """Tell whether a place lies in each element of an array."""
    return isinstance(location, InArray) and location.each is not None


@dataclass(frozen=True, slots=True)
class _Name:
    """The name of a field: whatever it is, it is no `[]`."""

    name: str


def _steps(text: str) -> list[_Name | int | Literal["[]"]]:
    """The steps of a path, as far as it is one; nothing if it is none."""
    steps: list[_Name | int | Literal["[]"]] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            return []
        quoted, name, index = found.groups()
        if index is not None:
            steps.append(int(index) if index else "[]")
        else:
            steps.append(_Name(quoted.replace('""', '"') if quoted is not None else name))
        at = found.end()
    return steps


def _expected(text: str) -> str:
    if _NEGATIVE.search(text):
        return "expected an index that counts from the front, from 0"
    if text.startswith("value") and any(sign in text for sign in '[]"'):
        return (
            "expected value.list[0].field for one element, value.list[].field for one event per element, or "
            'value."name" for a name with dots or brackets'
        )
    return "expected value.some.field, key, header:name, topic or a constant =text"


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
    label_probability: str | None = None
    """Probability with which the label is asked for."""
    label_requested: str | None = None
    """Whether the label was asked for; read beside a probability only."""
    min_label_probability: float = 1.0
    """Smallest probability that is valid."""
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


# Why a record can be invalid: a closed set, the same for every format.


REASONS: Mapping[str, str] = {
    "schema_registry_framing": "starts with the Confluent wire byte where plain JSON or text was expected",
    "invalid_utf8": "is not UTF-8",
    "invalid_json": "is not JSON, is nested too deeply, or has a number out of range",
    "not_an_object": "is JSON, but not an object",
    "missing_id": "has no id where the mapping looks for it",
    "missing_model": "has no model where the mapping looks for it",
    "missing_prediction": "has no predicted class where the mapping looks for it",
    "missing_label": "has no true class where the mapping looks for it",
    "missing_id_part": "has no content at one of the places that make its id together",
    "missing_model_part": "has no content at one of the places that make its model together",
    "missing_prediction_part": "has no content at one of the places that make its predicted class together",
    "missing_label_part": "has no content at one of the places that make its true class together",
    "invalid_id": "its id is not 1 to 128 bytes of text without control characters, nor a number",
    "invalid_model": "its model is not 1 to 128 bytes of visible text without controls, nor a number",
    "invalid_class": "its class is not 1 to 128 bytes of visible text without controls, nor a number",
    "invalid_timestamp": "its timestamp is not one in the configured unit, or outside 1970 to 9999",
    "invalid_scores": "its scores are not an object of class → probability, or too many",
    "invalid_score": "its score, of which a threshold makes the class, is no finite number or probability",
    "invalid_class_scores": "its scores, of which the largest makes the class, are no finite numbers",
    "missing_elements": "has no array, or an empty one, where the mapping looks for one event per element",
    "element_counts_differ": "arrays that the mapping reads element by element differ in length",
    "too_many_elements": "has more elements than are read of one record",
    "not_in_envelope": "has not the form of the envelope that the settings name for its topic",
    "fold_without_scheme": "is a prediction of one fold, and the settings have no folds.scheme",
    "invalid_fold": "its fold is not a whole number from 0 to folds.k - 1",
    "invalid_segment": "one of its segments is not 1 to 128 bytes of text without control characters",
    "invalid_label_probability": "its label_probability is no number from min_label_probability to 1",
    "invalid_label_requested": "its label_requested is neither true nor false, nor 1 or 0",
    "invalid_key": "its key names no schema that is known, or is not what that schema says",
    "header_encoding": "has a header whose name is not UTF-8",
    "schema_missing": "names no schema, neither in its header nor before its contents",
    "schema_unavailable": "names a schema that was still waited for when the record's log was gone",
    "schema_unknown": "names a schema that the registry does not have",
    "schema_unusable": "names a schema that is not one of its format, or that no reader is made of",
    "invalid_avro": "is not what its Avro schema says",
    "invalid_protobuf": "is not what its Protocol Buffers schema says",
    "record_structure": "its lengths do not fit one another",
    "record_too_large": "has more bytes than kafka.max_record_bytes",
    "too_many_headers": "has more headers than are read",
    "unknown_kind": "what tells predictions from labels says neither",
}
"""Every reason a record can be invalid for, and what it says about the record."""
