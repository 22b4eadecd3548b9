"""Mapping of a topic: the paths in its records of each field of a prediction or label, and their notation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from streamwatch.core.records.events import CARRIED, CARRIED_FIELDS, CarriedNumber

# The notation of paths: `value.a.b`, `value.a[0].b`, `value.a[name=x].b`, `value.a[].b`, `value.a.*`,
# `value`, `key`, `key.a`, `header:x`, `topic`, `=text`.
#
# A field of a mapping has one path, or several whose texts are joined: `[value.model, value.version]`. A
# prefix and a suffix may be cut off a text, and a text may be the name of a field instead of its content.


class Named(NamedTuple):
    """Step to the first object of an array whose field has this text, as in `[key=model]`."""

    field: str
    text: str


Step: TypeAlias = str | int | Named
"""Step of a path: a field's name, an index, or an element chosen by one of its fields."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A path whose text is cut: `txn-17` → `17`. A text without the prefix or suffix is kept."""

    path: str
    strip_prefix: str = ""
    strip_suffix: str = ""


@dataclass(frozen=True, slots=True)
class KeyOf:
    """Names of an object's fields (`value.scores`), or of those that `*` matches; each field is an event."""

    key_of: str

    @property
    def contents(self) -> str:
        """Path of the fields' contents, with its `*`."""
        return self.key_of if "*" in self.key_of else f"{self.key_of}.{ANY}"


Part: TypeAlias = str | Trimmed | KeyOf
Paths: TypeAlias = Part | tuple[Part, ...]
"""Origin of one text: a path, or several whose texts are joined, where a path that may lack a content ends in
`?`."""
OPTIONAL: Final = "?"
"""Suffix of a path, among several, whose content may be absent. A field of this name is put in quotes."""
ANY: Final = "*"
"""Wildcard for a field's name, or a part of it. A field of this name is put in quotes."""

PATH: Final = (
    r'^(key(\.("([^"]|"")+"|[^.\[\]"*][^.\[\]*]*))*|topic|header:.+|=.+'
    r'|value(\.("([^"]|"")+"|[^.\[\]"][^.\[\]]*)|\[([0-9]*|[^\[\]="]+=[^\[\]"]+)\])*)$'
)
"""The notation as a regular expression, for JSON Schema; it does not limit `[]` and `*` to one use."""
_STEP = re.compile(
    r'\.(?:"((?:[^"]|"")+)"|([^.\[\]"][^.\[\]]*))|\[(?:([0-9]{0,9})|([^\[\]="]+)=([^\[\]"]+))\]'
)
_NEGATIVE = re.compile(r"\[-\d+\]")


@dataclass(frozen=True, slots=True)
class InValue:
    """A path of names of fields in nested objects of the value; empty for the value itself."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InArray:
    """A path in the value that leads through arrays.

    Attributes
    ----------
    path
        Steps from the value.
    each
        Steps after `[]`, from each element of the array that `path` leads to. None: there is no `[]`, and
        `path` leads to one content of the whole record.
    """

    path: tuple[Step, ...]
    each: tuple[Step, ...] | None = None


@dataclass(frozen=True, slots=True)
class InFields:
    """Path to each field of an object whose name has a prefix and a suffix.

    Attributes
    ----------
    path
        Steps from the value to the object.
    prefix, suffix
        Text before and after `*`.
    each
        Steps from each field's content. None: the location is the text in the name that `*` matches.
    """

    path: tuple[Step, ...]
    prefix: str
    suffix: str
    each: tuple[Step, ...] | None = ()


@dataclass(frozen=True, slots=True)
class InKey:
    """The record's key, as text; or a field of it."""

    path: tuple[str, ...] = ()
    """Names of fields in nested objects, where the key is one; empty for the key itself."""


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


FieldLocation: TypeAlias = InValue | InArray | InFields | InKey | InHeader | InTopic | Constant


class Affixes(NamedTuple):
    """Prefix and suffix that are cut off a text that has them."""

    prefix: str = ""
    suffix: str = ""

    def off(self, text: str) -> str:
        """Cut prefix and suffix off a text."""
        return text.removeprefix(self.prefix).removesuffix(self.suffix)


@dataclass(frozen=True, slots=True)
class Joined:
    """Several paths whose texts are joined (see `joined_text`), or one whose text is cut.

    Attributes
    ----------
    parts
        The paths, in the order of their texts.
    optional
        Whether the content of each may be absent.
    affixes
        Prefix and suffix that are cut off each text.
    """

    parts: tuple[FieldLocation, ...]
    optional: tuple[bool, ...]
    affixes: tuple[Affixes, ...]


AnyLocation: TypeAlias = FieldLocation | Joined


def parse_paths(paths: Paths) -> AnyLocation:
    """Parse the notation of one path, or of several that are joined.

    Raises
    ------
    ValueError
        A path is not in the notation.
    """
    match paths:
        case str():
            return parse_field_location(paths)
        case KeyOf():
            return _names_of(paths)
        case Trimmed():
            return Joined(*_columns([(parse_field_location(paths.path), False, _affixes(paths))]))
        case tuple():
            return Joined(*_columns([_part(each) for each in paths]))


def _columns(
    parts: Sequence[tuple[FieldLocation, bool, Affixes]],
) -> tuple[tuple[FieldLocation, ...], tuple[bool, ...], tuple[Affixes, ...]]:
    locations, optional, affixes = zip(*parts, strict=True)
    return locations, optional, affixes


def _part(part: Part) -> tuple[FieldLocation, bool, Affixes]:
    """Parse one of several paths: its location, whether it is optional, what is cut off its text."""
    if isinstance(part, KeyOf):
        return _names_of(part), False, Affixes()
    path = part if isinstance(part, str) else part.path
    affixes = Affixes() if isinstance(part, str) else _affixes(part)
    return parse_field_location(path.removesuffix(OPTIONAL)), path.endswith(OPTIONAL), affixes


def _affixes(part: Trimmed) -> Affixes:
    return Affixes(part.strip_prefix, part.strip_suffix)


def _names_of(part: KeyOf) -> InFields:
    """Return the location of names of fields."""
    is_in_value = part.key_of.startswith("value")
    location = parse_field_location(part.contents) if is_in_value else None
    if not isinstance(location, InFields) or location.each:
        raise ValueError(
            f"key_of: expected an object, such as value.scores, or value.pred_* for fields that are called "
            f"so, got {part.key_of!r}"
        )
    return replace(location, each=None)


def parse_field_location(text: str) -> FieldLocation:  # noqa: PLR0911 - a form each
    """Parse the notation of one path.

    Raises
    ------
    ValueError
        The text is in none of the forms, which the message lists.
    """
    if text == "key" or text.startswith("key."):
        return _in_key(text)
    if text == "topic":
        return InTopic()
    if text.startswith("=") and len(text) > 1:
        return Constant(text[1:])
    if text.startswith("header:") and len(text) > len("header:"):
        return InHeader(text[len("header:") :])
    if text == "value":
        return InValue(())
    steps = _steps(text.removeprefix("value")) if text.startswith("value") else []
    if not steps:
        raise ValueError(f"{_expected(text)}, got {text!r}")
    several = [at for at, step in enumerate(steps) if step is None or isinstance(step, _Pattern)]
    if len(several) > 1:
        raise ValueError(
            f"expected [] or * at most once (an event per element of one array, or per field of one object), "
            f"got {text!r}"
        )
    for at in several:
        before, after = _plain(steps[:at]), _plain(steps[at + 1 :])
        sign = steps[at]
        if isinstance(sign, _Pattern):
            return InFields(before, sign.prefix, sign.suffix, after)
        return InArray(before, after)
    names = tuple(step for step in steps if isinstance(step, str))
    return InValue(names) if len(names) == len(steps) else InArray(_plain(steps))


def _plain(steps: Sequence[_Pattern | Step | None]) -> tuple[Step, ...]:
    return tuple(step for step in steps if not (step is None or isinstance(step, _Pattern)))


def notation(paths: Paths | None) -> str:
    """Write one path, or several, in the notation of settings; `null` for None."""
    match paths:
        case None:
            return "null"
        case str():
            return paths
        case KeyOf(key_of):
            return f"{{key_of: {key_of}}}"
        case Trimmed(path, prefix, suffix):
            lost = {"strip_prefix": prefix, "strip_suffix": suffix}
            rest = "".join(f", {key}: {text}" for key, text in lost.items() if text)
            return f"{{path: {path}{rest}}}"
        case tuple():
            return f"[{', '.join(map(notation, paths))}]"


def _in_key(text: str) -> InKey:
    if text == "key":
        return InKey()
    steps = _steps(text.removeprefix("key"))
    names = tuple(step for step in steps if isinstance(step, str))
    if not names or len(names) < len(steps):
        raise ValueError(f"expected key or key.field, fields in objects only, got {text!r}")
    return InKey(names)


def is_each(location: FieldLocation | None) -> bool:
    """Tell whether a path leads to contents in each element of an array, or each field of an object."""
    return isinstance(location, InFields) or (isinstance(location, InArray) and location.each is not None)


def parts_of(location: AnyLocation | None) -> tuple[FieldLocation, ...]:
    """Return the single paths of a location: none, one, or those joined."""
    if location is None:
        return ()
    return location.parts if isinstance(location, Joined) else (location,)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Parsed names of fields with a `*`: the text before and after it."""

    prefix: str
    suffix: str


def _steps(text: str) -> list[_Pattern | Step | None]:
    """Parse the steps of a path after `value`, None for `[]`; empty if the text is no path."""
    steps: list[_Pattern | Step | None] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            return []
        quoted, name, index, field_, text_ = found.groups()
        if field_ is not None:
            steps.append(Named(field_, text_))
        elif index is not None:
            steps.append(int(index) if index else None)
        elif quoted is not None:
            steps.append(quoted.replace('""', '"'))
        elif ANY not in name:
            steps.append(name)
        elif name.count(ANY) == 1:
            steps.append(_Pattern(*name.split(ANY)))
        else:
            return []
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
    if text.startswith("value") and text.count(ANY) > 1:
        return 'expected one * in a name, or value."name" for a name that has one'
    return "expected value.some.field, value, key, header:name, topic or a constant =text"


TimestampUnit: TypeAlias = Literal["ms", "s", "us", "ns", "iso8601"]


@dataclass(frozen=True, slots=True)
class KindRule:
    """Rule that distinguishes predictions from labels on a topic that has both, by the text at one path."""

    field: str = "value.kind"
    prediction: str = "prediction"
    label: str = "label"


@dataclass(frozen=True, slots=True)
class ClassOfScore:
    """Class by a threshold: `above` where the number at `score` is at least `threshold`, else `below`."""

    score: str
    threshold: float | str
    """A number, or the path of one."""
    above: str
    below: str
    probability: bool = False
    """Whether the number is the probability of `above`, from which scores of both classes are made."""


@dataclass(frozen=True, slots=True)
class ClassOfLargest:
    """The class with the largest score.

    `largest` is the path of an object of class → number, or of an array of numbers in the order of
    `classes`. A tie goes to the first class: by name in an object, by position in an array.
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
    """Paths of the fields, as `value.a.b`, `key`, `header:x`, `topic` or a constant `=fraud-v3`.

    Several paths of one field are joined to one text. The defaults fit flat JSON with the fields' own names.
    None means that records do not carry the field. A field that only the other kind of event has
    (`prediction` on a topic of labels) is ignored.
    """

    id: Paths = "value.id"
    model: Paths | None = "value.model"
    """Optional on labels: a label without a model is for every model that predicted the id."""
    prediction: Paths | ClassOfScore | ClassOfLargest = "value.prediction"
    label: Paths | ClassOfScore = "value.label"
    timestamp: str | None = "value.timestamp"
    timestamp_unit: TimestampUnit = "ms"
    scores: str | ScoreArray | None = "value.scores"
    fold: str | None = "value.fold"
    """Fold of the model that predicted; invalid where settings have no scheme of folds."""
    label_probability: str | None = None
    """Probability with which the label is requested."""
    label_requested: str | None = None
    """Whether the label was requested; read only where `label_probability` is given."""
    min_label_probability: float = 1.0
    """Smallest valid `label_probability`."""
    segments: Mapping[str, str] = field(default_factory=dict[str, str])
    """Paths of the values by which predictions are divided for evaluation, by the segment's name."""
    classes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Aliases, as they are written in records → the class meant (`{"true": "fraud"}`)."""
    kind: KindRule | None = None
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Path → the texts of which it must have one; the mapping makes nothing of other records."""
    optional: bool = False
    """Whether the mapping makes nothing of a record, or element, without a class; if not, that is invalid."""


@dataclass(frozen=True, slots=True)
class SidedMapping:
    """One of the mappings of a topic, and whether it makes predictions or labels."""

    side: Literal["prediction", "label"]
    mapping: TopicMapping


def threshold_of(mapping: TopicMapping, slot: str) -> str | None:
    """Return the path of the threshold in a field's class rule; None without a rule, or for a number."""
    found: object = getattr(mapping, slot)
    return found.threshold if isinstance(found, ClassOfScore) and isinstance(found.threshold, str) else None


def all_paths(mapping: TopicMapping) -> list[Paths]:
    """Return every path of a mapping, possibly several times."""
    found = [*(paths_of(mapping, slot) for slot in SLOTS), *mapping.segments.values(), *mapping.when]
    found += [threshold_of(mapping, slot) for slot in ("prediction", "label")]
    found += [None if mapping.kind is None else mapping.kind.field]
    return [path for path in found if path is not None]


SLOTS: Final = (
    *("id", "model", "prediction", "label", "timestamp", "scores", "fold"),
    *CARRIED_FIELDS,
)
"""Fields of a mapping that name a path."""


def carried_numbers(mapping: TopicMapping) -> list[CarriedNumber]:
    """Return the carried numbers for whose first field the mapping names a path."""
    return [each for each in CARRIED if getattr(mapping, each.fields[0]) is not None]


def carried_slots(mapping: TopicMapping) -> list[str]:
    """Return the mapping's fields of carried numbers, in order."""
    return [field for each in carried_numbers(mapping) for field in each.fields]


def paths_of(mapping: TopicMapping, slot: str) -> Paths | None:
    """Return the path, or paths, of a field, also where a class rule applies to it; None without any."""
    found: object = getattr(mapping, slot)
    match found:
        case ClassOfScore(score):
            return score
        case ClassOfLargest(largest):
            return largest
        case ScoreArray(array):
            return array
        case str() | tuple() | Trimmed() | KeyOf() | None:
            return cast("Paths | None", found)
        case _:
            raise TypeError(f"{slot}: expected a path, got {found!r}")


# Why a record can be invalid: a closed set, the same for every format.


REASONS: Mapping[str, str] = {
    "schema_registry_framing": "starts with the Confluent wire byte where plain JSON or text was expected",
    "invalid_utf8": "is not UTF-8",
    "invalid_json": "is not JSON (NaN is none), is nested too deeply, or has a number out of range",
    "not_an_object": "is JSON, but not an object",
    "missing_id": "has no id where the mapping looks for it",
    "missing_model": "has no model where the mapping looks for it",
    "missing_prediction": "has no predicted class where the mapping looks for it",
    "missing_label": "has no true class where the mapping looks for it",
    "missing_id_part": "has no content at one of the paths that make its id together",
    "missing_model_part": "has no content at one of the paths that make its model together",
    "missing_prediction_part": "has no content at one of the paths that make its predicted class together",
    "missing_label_part": "has no content at one of the paths that make its true class together",
    "invalid_id": "its id is not 1 to 128 bytes of text without control characters, nor a number",
    "invalid_model": "its model is not 1 to 128 bytes of visible text without controls, nor a number",
    "invalid_class": "its class is not 1 to 128 bytes of visible text without controls, nor a number",
    "invalid_timestamp": "its timestamp is not one in the unit timestamp_unit, or outside 1970 to 9999",
    "invalid_scores": "its scores are no probabilities by class in the form that the mapping names, or are "
    "too many",
    "invalid_score": "its score, of which a threshold makes the class, is no finite number or probability",
    "missing_threshold": "has no threshold of its score where the mapping looks for it",
    "invalid_threshold": "the threshold of its score is no finite number",
    "invalid_class_scores": "its scores, of which the largest makes the class, are no finite numbers by "
    "class in the form that the mapping names",
    "missing_elements": "has nothing, or nothing in it, where the mapping looks for one event per element or "
    "field",
    "element_counts_differ": "arrays that the mapping reads element by element differ in length",
    "too_many_elements": "has more elements than are read of one record",
    "invalid_text": "has a text that is not written as the topic's `decode` says",
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
    "unknown_kind": "the field that distinguishes predictions from labels holds neither",
}
"""Reason for which a record is invalid → its explanation, as the rest of a sentence about the record."""
