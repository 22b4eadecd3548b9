"""The mapping of a topic's records: where each field of a prediction or label lives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from streamwatch.edge.decoders.fields import is_plain
from streamwatch.edge.decoders.places import PLACE, parse_field_location
from streamwatch.settings.sections import Section

_FIELD: Final = re.compile(r"(?!key$|topic$)[A-Za-z_]\w*")
WRITTEN_AS: Final = ("place", "score", "largest", "array")
"""Tags of the forms in which a class or scores are written; no keys of the file."""


def placed(text: str) -> str:
    """Check the notation of a place."""
    parse_field_location(text)
    return text


def as_text(value: object) -> object:
    """Classes written as numbers or booleans are meant as their text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


FieldLocation = Annotated[str, AfterValidator(placed), Field(json_schema_extra={"pattern": PLACE})]
Class = Annotated[str, BeforeValidator(as_text, json_schema_input_type=str | int | bool)]


class ScoreSection(Section):
    """A class made of a score: `above` where it is at least the threshold, else `below`."""

    score: FieldLocation
    """Where the score lies, a number."""
    threshold: float
    """The least score of `above`."""
    above: Class
    below: Class


class PredictedScoreSection(ScoreSection):
    """A predicted class made of a score."""

    probability: bool = False
    """Whether the score is the probability of `above`: log loss, calibration and the like need it."""


class LargestSection(Section):
    """The class with the largest of several scores; of equal ones the first."""

    largest: FieldLocation
    """Where the scores lie: an object of class → number, or an array beside `classes`."""
    classes: tuple[Class, ...] = ()
    """Of an array, the classes in its order."""


class ScoreArraySection(Section):
    """Probabilities as an array."""

    array: FieldLocation
    """Where it lies."""
    classes: Annotated[tuple[Class, ...], Field(min_length=1)]
    """The classes in its order."""


def form_of(value: Any) -> str | None:
    """Name the form in which a class or scores are written."""
    if value is None or isinstance(value, str):
        return "place"
    keys = type(value).model_fields if isinstance(value, Section) else value
    return next((form for form in WRITTEN_AS if form in keys), None) if isinstance(keys, dict) else None


def _forms(expected: str) -> Discriminator:
    return Discriminator(form_of, custom_error_type="form", custom_error_message=f"Expected {expected}")


_Place = Annotated[FieldLocation, Tag("place")]
_Score = Annotated[ScoreSection, Tag("score")]
_PredictedScore = Annotated[PredictedScoreSection, Tag("score")]
_Largest = Annotated[LargestSection, Tag("largest")]
_Array = Annotated[ScoreArraySection, Tag("array")]
PredictedClass = Annotated[
    _Place | _PredictedScore | _Largest,
    _forms("a place, {score, threshold, above, below} or {largest: place of the scores}"),
]
TrueClass = Annotated[_Place | _Score, _forms("a place or {score, threshold, above, below}")]
Scores = Annotated[
    Annotated[FieldLocation | None, Tag("place")] | _Array, _forms("a place or {array: place, classes: […]}")
]


def as_texts(value: object) -> object:
    """One text and a list of one say the same."""
    return value if isinstance(value, list | tuple) else [value]


Texts = Annotated[
    tuple[Class, ...],
    BeforeValidator(as_texts, json_schema_input_type=str | int | bool | list[str | int | bool]),
]


def as_places(value: object) -> object:
    """Read a list of fields as name → place: `country` and `value.country` are the same."""
    if not isinstance(value, list | tuple):
        return value
    places: dict[str, str] = {}
    for each in cast("Sequence[object]", value):
        if not isinstance(each, str):
            raise ValueError(f"a segment must be a field or a place, got {each!r}")  # noqa: TRY004
        place = f"value.{each}" if _FIELD.fullmatch(each) else each
        name = re.split(r"[.:]", place)[-1].strip('"')
        if name in places:
            raise ValueError(f"two segments are called {name}: write them as name: place")
        places[name] = place
    return places


def named(segments: dict[str, str]) -> dict[str, str]:
    """Check the names of segments, which become values of a label."""
    for name in segments:
        if not is_plain(name):
            raise ValueError(f"a segment's name must be 1 to 128 bytes without control characters: {name!r}")
    return segments


Segments = Annotated[
    dict[str, FieldLocation],
    AfterValidator(named),
    BeforeValidator(as_places, json_schema_input_type=dict[str, str] | list[str]),
]


class KindSection(Section):
    """Rule by which predictions and labels are told apart on a topic that carries both."""

    field: FieldLocation = "value.kind"
    """The place that tells."""
    prediction: Class = "prediction"
    """What stands there in a prediction."""
    label: Class = "label"
    """What stands there in a label."""


class MappingSection(Section):
    """Location of each field: `value.a.b` (dotted path), `key`, `header:x`, `topic`, or a constant `=v3`.

    `value.list[0].b` is in one element of an array; `value.list[].b` makes an event of each element, and an
    `id` beside the array, not in it, is then followed by `#` and the number of the element, from 0.
    `value."a.b"` is a field with a dot in its name.
    """

    id: FieldLocation = "value.id"
    """What a prediction and its label have in common."""
    model: FieldLocation | None = "value.model"
    """The model's name. A label without it is for every model that predicted the id."""
    prediction: PredictedClass = "value.prediction"
    """The predicted class; or {score: value.p, threshold: 0.5, above: fraud, below: legit}; or {largest:
    value.scores}, with classes: [legit, fraud] if that is an array. A score that is the probability of
    `above` is said to be one by probability: true."""
    label: TrueClass = "value.label"
    """The true class; or a score, likewise."""
    timestamp: FieldLocation | None = "value.timestamp"
    """When it happened, if the record says so; else Kafka's timestamp counts."""
    timestamp_unit: Literal["ms", "s", "us", "ns", "iso8601"] = "ms"
    """Unit of `timestamp`: ms, s, us, ns (since 1970) or iso8601."""
    scores: Scores = "value.scores"
    """Probability per class, if there are any; or {array: value.p, classes: [legit, fraud]} for an array."""
    fold: FieldLocation | None = "value.fold"
    """Which fold of the model predicted, where it has several (`folds`); null: the field is not looked at."""
    segments: Segments = Field(default_factory=dict[str, str])
    """What tells predictions apart, so that models are evaluated for each value of it, too: a list of fields
    (`[country, value.channel]`), or name → place. A record without it counts for none of its values."""
    classes: dict[Class, Class] = Field(default_factory=dict[str, str])
    """Aliases: the class as records write it → the class meant."""
    kind: KindSection | None = None
    """Only on a topic that carries both predictions and labels: how to tell them apart."""
    when: dict[FieldLocation, Texts] = Field(default_factory=dict[str, tuple[str, ...]])
    """Place → text, or texts: records that have another there, or none, give nothing by this mapping."""
    optional: bool = False
    """A record without the class gives nothing by this mapping, and is not invalid for that."""
