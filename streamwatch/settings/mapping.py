"""The mapping of a topic's records: where each field of a prediction or label lives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from streamwatch.edge.decoders.fields import is_plain
from streamwatch.edge.decoders.places import OPTIONAL, PLACE, parse_field_location
from streamwatch.settings.sections import Section

_FIELD: Final = re.compile(r"(?!key$|topic$)[A-Za-z_]\w*")
WRITTEN_AS: Final = ("place", "places", "score", "largest", "array")
"""Tags of the forms in which a field is written; no keys of the file."""


def placed(text: str) -> str:
    """Check the notation of a place."""
    parse_field_location(text)
    return text


def as_text(value: object) -> object:
    """Classes written as numbers or booleans are meant as their text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


def place_of_several(text: str) -> str:
    """Check the notation of one of several places."""
    parse_field_location(text.removesuffix(OPTIONAL))
    return text


FieldLocation = Annotated[str, AfterValidator(placed), Field(json_schema_extra={"pattern": PLACE})]
Class = Annotated[str, BeforeValidator(as_text, json_schema_input_type=str | int | bool)]


class ScoreSection(Section):
    """Class made of a score: `above` if it is at least the threshold, else `below`."""

    score: FieldLocation
    """Place of the score, which is a number."""
    threshold: float
    """Smallest score that gives `above`."""
    above: Class
    below: Class


class PredictedScoreSection(ScoreSection):
    """Predicted class made of a score."""

    probability: bool = False
    """The score is the probability of `above`, as log loss and calibration require."""


class LargestSection(Section):
    """Class with the largest of several scores; the first one if several are equal."""

    largest: FieldLocation
    """Place of the scores: an object (class → number), or an array together with `classes`."""
    classes: tuple[Class, ...] = ()
    """Classes in the order of the array."""


class ScoreArraySection(Section):
    """Probabilities as an array."""

    array: FieldLocation
    """Place of the array."""
    classes: Annotated[tuple[Class, ...], Field(min_length=1)]
    """Classes in the order of the array."""


def form_of(value: Any) -> str | None:
    """Name the form in which a field is written."""
    if value is None or isinstance(value, str):
        return "place"
    if isinstance(value, list | tuple):
        return "places"
    keys = type(value).model_fields if isinstance(value, Section) else value
    return next((form for form in WRITTEN_AS if form in keys), None) if isinstance(keys, dict) else None


def _forms(expected: str) -> Discriminator:
    return Discriminator(form_of, custom_error_type="form", custom_error_message=f"Expected {expected}")


_Place = Annotated[FieldLocation, Tag("place")]
_PlaceOrNone = Annotated[FieldLocation | None, Tag("place")]
_Part = Annotated[
    str, AfterValidator(place_of_several), Field(json_schema_extra={"pattern": PLACE.replace("$", r"\??$")})
]
_Places = Annotated[tuple[_Part, ...], Field(min_length=2), Tag("places")]
_Score = Annotated[ScoreSection, Tag("score")]
_PredictedScore = Annotated[PredictedScoreSection, Tag("score")]
_Largest = Annotated[LargestSection, Tag("largest")]
_Array = Annotated[ScoreArraySection, Tag("array")]
Text = Annotated[_Place | _Places, _forms("a place or a list of places")]
OptionalText = Annotated[_PlaceOrNone | _Places, _forms("a place, a list of places or null")]
PredictedClass = Annotated[
    _Place | _Places | _PredictedScore | _Largest,
    _forms("a place, a list of places, {score, threshold, above, below} or {largest: place of the scores}"),
]
TrueClass = Annotated[
    _Place | _Places | _Score, _forms("a place, a list of places or {score, threshold, above, below}")
]
Scores = Annotated[_PlaceOrNone | _Array, _forms("a place or {array: place, classes: […]}")]


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
    """Rule that distinguishes predictions from labels on a topic that carries both."""

    field: FieldLocation = "value.kind"
    """Place of the field that says which of the two a record is."""
    prediction: Class = "prediction"
    """Value of the field in a prediction."""
    label: Class = "label"
    """Value of the field in a label."""


class MappingSection(Section):
    """Location of each field: `value.a.b` (dotted path), `key`, `header:x`, `topic`, or a constant `=v3`.

    `value.list[0].b` is in one element of an array; `value.list[].b` makes an event of each element, and an
    `id` beside the array, not in it, is then followed by `#` and the number of the element, from 0.
    `value."a.b"` is a field with a dot in its name.

    An id, model or class of several fields is a list of places, whose texts are joined:
    `[value.model.name, value.model.version]` gives `fraud/7`. A place that ends in `?` may be empty.
    """

    id: Text = "value.id"
    """Id that a prediction and its label share."""
    model: OptionalText = "value.model"
    """Name of the model. A label without it applies to every model that predicted the id."""
    prediction: PredictedClass = "value.prediction"
    """Predicted class; or {score: value.p, threshold: 0.5, above: fraud, below: legit}, with probability:
    true if the score is the probability of `above`; or {largest: value.scores}, with classes: [legit, fraud]
    if the scores are an array."""
    label: TrueClass = "value.label"
    """True class, or {score, threshold, above, below}."""
    timestamp: FieldLocation | None = "value.timestamp"
    """Event time. If a record has none, Kafka's timestamp is used."""
    timestamp_unit: Literal["ms", "s", "us", "ns", "iso8601"] = "ms"
    """Unit of `timestamp`: ms, s, us or ns since 1970, or iso8601."""
    scores: Scores = "value.scores"
    """Probability of each class, if records have them; {array: value.p, classes: [legit, fraud]} if they are
    an array."""
    fold: FieldLocation | None = "value.fold"
    """Fold of the model that predicted, if models predict in folds (`folds`). Set to null to ignore the
    field."""
    segments: Segments = Field(default_factory=dict[str, str])
    """Fields by whose values models are also evaluated: a list (`[country, value.channel]`), or name → place.
    A record without the field counts for none of its values."""
    classes: dict[Class, Class] = Field(default_factory=dict[str, str])
    """Aliases of classes: the class as written in records → the class that is meant."""
    kind: KindSection | None = None
    """How to distinguish predictions from labels, on a topic that carries both."""
    when: dict[FieldLocation, Texts] = Field(default_factory=dict[str, tuple[str, ...]])
    """Condition: place → text, or list of texts. The mapping skips records with any other value there, or
    none."""
    optional: bool = False
    """Skip records without the class instead of counting them as invalid."""
