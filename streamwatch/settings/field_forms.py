"""Forms in which fields of a mapping are written: paths, texts of several paths, classes made of scores."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, TypeAlias, cast, overload

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from streamwatch.edge.decoders.fields import is_plain
from streamwatch.edge.decoders.mapping import (
    OPTIONAL,
    PATH,
    KeyOf,
    Part,
    Paths,
    Trimmed,
    parse_field_location,
    parse_paths,
)
from streamwatch.settings.sections import Section

_FIELD: Final = re.compile(r"(?!key$|topic$)[A-Za-z_]\w*")
WRITTEN_AS: Final = ("path", "paths", "trimmed", "key_of", "score", "largest", "array")
"""Tags of the forms of a field of a mapping, by which pydantic chooses a type; not keys of the file."""


def checked_path(text: str) -> str:
    """Check the notation of a path."""
    parse_field_location(text)
    return text


def as_text(value: object) -> object:
    """Convert a class written as a number or boolean to text (`true` → `"true"`)."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


def path_of_several(text: str) -> str:
    """Check the notation of one of several paths, which may end in `?`."""
    parse_field_location(text.removesuffix(OPTIONAL))
    return text


FieldLocation = Annotated[str, AfterValidator(checked_path), Field(json_schema_extra={"pattern": PATH})]
Class = Annotated[str, BeforeValidator(as_text, json_schema_input_type=str | int | bool)]


class TrimmedSection(Section):
    """Text at a path, without what it begins or ends with: `txn-17` → `17`. Any other text stays whole."""

    path: Annotated[
        str,
        AfterValidator(path_of_several),
        Field(json_schema_extra={"pattern": PATH.replace("$", r"\??$")}),
    ]
    """Path of the text."""
    strip_prefix: str = ""
    """Beginning that is left out."""
    strip_suffix: str = ""
    """End that is left out."""

    @model_validator(mode="after")
    def _strips(self) -> TrimmedSection:
        if not self.strip_prefix and not self.strip_suffix:
            raise ValueError("expected strip_prefix or strip_suffix beside path, got neither")
        return self


def key_of_object(text: str) -> str:
    """Check the notation of a path in `key_of`."""
    parse_paths(KeyOf(text))
    return text


class KeyOfSection(Section):
    """Names of an object's fields, each of which is an event: a model, or an id, of its own."""

    key_of: Annotated[str, AfterValidator(key_of_object), Field(json_schema_extra={"pattern": PATH})]
    """Path of the object (`value.scores`), or of fields with a name such as `value.pred_*`; the text is what
    `*` stands for."""


def as_threshold(value: object) -> object:
    """Check that a value is a finite number, a text of one, which is converted, or a path."""
    number = value
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = None
        if number is None:
            with suppress(ValueError):
                return checked_path(value)
    if isinstance(number, int | float) and not isinstance(number, bool) and abs(number) <= sys.float_info.max:
        return number
    raise ValueError(f"expected a number, or a path such as value.cutoff, got {value!r}")


class ScoreSection(Section):
    """Class made of a score: `above` if it is at least the threshold, else `below`."""

    score: FieldLocation
    """Path of the score, which is a number."""
    threshold: Annotated[
        float | str, BeforeValidator(as_threshold, json_schema_input_type=float | FieldLocation)
    ]
    """Smallest score that gives `above`: a number, or the path of the number in the record."""
    above: Class
    below: Class


class PredictedScoreSection(ScoreSection):
    """Predicted class made of a score."""

    probability: bool = False
    """The score is the probability of `above`, as log loss and calibration require."""


class LargestSection(Section):
    """Class with the largest of several scores; the first one if several are equal."""

    largest: FieldLocation
    """Path of the scores: an object (class → number), or an array together with `classes`."""
    classes: tuple[Class, ...] = ()
    """Classes in the order of the array."""


class ScoreArraySection(Section):
    """Probabilities as an array."""

    array: FieldLocation
    """Path of the array."""
    classes: Annotated[tuple[Class, ...], Field(min_length=1)]
    """Classes in the order of the array."""


def form_of(value: Any) -> str | None:
    """Return the tag of the form of a field (`WRITTEN_AS`); None for an unknown form."""
    if value is None or isinstance(value, str):
        return "path"
    if isinstance(value, list | tuple):
        return "paths"
    keys = type(value).model_fields if isinstance(value, Section) else value
    if not isinstance(keys, dict):
        return None
    return "trimmed" if "path" in keys else next((form for form in WRITTEN_AS if form in keys), None)


def _forms(expected: str) -> Discriminator:
    return Discriminator(form_of, custom_error_type="form", custom_error_message=f"Expected {expected}")


_Path = Annotated[FieldLocation, Tag("path")]
_PathOrNone = Annotated[FieldLocation | None, Tag("path")]
_Several = Annotated[
    str, AfterValidator(path_of_several), Field(json_schema_extra={"pattern": PATH.replace("$", r"\??$")})
]
_Part = Annotated[
    Annotated[_Several, Tag("path")]
    | Annotated[TrimmedSection, Tag("trimmed")]
    | Annotated[KeyOfSection, Tag("key_of")],
    _forms("a path, {path, strip_prefix, strip_suffix} or {key_of: path}"),
]
_Paths = Annotated[tuple[_Part, ...], Field(min_length=2), Tag("paths")]
_Trimmed = Annotated[TrimmedSection, Tag("trimmed")]
_KeyOf = Annotated[KeyOfSection, Tag("key_of")]
_Score = Annotated[ScoreSection, Tag("score")]
_PredictedScore = Annotated[PredictedScoreSection, Tag("score")]
_Largest = Annotated[LargestSection, Tag("largest")]
_Array = Annotated[ScoreArraySection, Tag("array")]
Text = Annotated[
    _Path | _Paths | _Trimmed | _KeyOf,
    _forms("a path, a list of paths, {path, strip_prefix, strip_suffix} or {key_of: path}"),
]
OptionalText = Annotated[
    _PathOrNone | _Paths | _Trimmed | _KeyOf,
    _forms("a path, a list of paths, {path, strip_prefix, strip_suffix}, {key_of: path} or null"),
]
PredictedClass = Annotated[
    _Path | _Paths | _Trimmed | _PredictedScore | _Largest,
    _forms(
        "a path, a list of paths, {path, strip_prefix, strip_suffix}, {score, threshold, above, below} or "
        "{largest: path of the scores}"
    ),
]
TrueClass = Annotated[
    _Path | _Paths | _Trimmed | _Score,
    _forms("a path, a list of paths, {path, strip_prefix, strip_suffix} or {score, threshold, above, below}"),
]
Scores = Annotated[_PathOrNone | _Array, _forms("a path or {array: path, classes: […]}")]


WrittenPart: TypeAlias = str | TrimmedSection | KeyOfSection
WrittenPaths: TypeAlias = WrittenPart | tuple[WrittenPart, ...]
"""Path or paths of a text in the notation of the settings."""


@overload
def paths_written(written: WrittenPaths) -> Paths: ...
@overload
def paths_written(written: WrittenPaths | None) -> Paths | None: ...
def paths_written(written: WrittenPaths | None) -> Paths | None:
    """Convert paths of the settings to those of decoders; None stays None."""
    if written is None:
        return None
    return tuple(map(_part, written)) if isinstance(written, tuple) else _part(written)


def _part(written: WrittenPart) -> Part:
    match written:
        case TrimmedSection():
            return Trimmed(written.path, written.strip_prefix, written.strip_suffix)
        case KeyOfSection():
            return KeyOf(written.key_of)
        case str():
            return written


def as_texts(value: object) -> object:
    """Return a value that is not a list as a list of it."""
    return value if isinstance(value, list | tuple) else [value]


Texts = Annotated[
    tuple[Class, ...],
    BeforeValidator(as_texts, json_schema_input_type=str | int | bool | list[str | int | bool]),
]


def as_paths(value: object) -> object:
    """Convert a list of fields or paths to name → path; `country` and `value.country` give the same."""
    if not isinstance(value, list | tuple):
        return value
    paths: dict[str, str] = {}
    for each in cast("Sequence[object]", value):
        if not isinstance(each, str):
            raise ValueError(f"a segment must be a field or a path, got {each!r}")  # noqa: TRY004
        path = f"value.{each}" if _FIELD.fullmatch(each) else each
        name = re.split(r"[.:]", path)[-1].strip('"')
        if name in paths:
            raise ValueError(f"two segments are called {name}: write them as name: path")
        paths[name] = path
    return paths


def named_segments(segments: dict[str, str]) -> dict[str, str]:
    """Check the names of segments, which become label values of metrics."""
    for name in segments:
        if not is_plain(name):
            raise ValueError(f"a segment's name must be 1 to 128 bytes without control characters: {name!r}")
    return segments


Segments = Annotated[
    dict[str, FieldLocation],
    AfterValidator(named_segments),
    BeforeValidator(as_paths, json_schema_input_type=dict[str, str] | list[str]),
]
