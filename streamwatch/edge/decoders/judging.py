"""Judges the contents of a record's fields: finds classes, makes an event, or `Invalid` with the reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, cast

from streamwatch.core.ports import Record
from streamwatch.core.records.events import (
    CARRIED_FIELDS,
    Event,
    Invalid,
    Label,
    NullRecord,
    Prediction,
    WrongFold,
    as_float32,
    fold_name,
)
from streamwatch.edge.decoders.fields import (
    FRAMED,
    INCOMPLETE,
    NAME,
    canonical_text,
    fold_tests,
    is_name,
    judged_fold,
    number_of,
    probability,
    timestamp_ms,
)
from streamwatch.edge.decoders.mapping import (
    ClassOfLargest,
    ClassOfScore,
    KeyOf,
    Paths,
    ScoreArray,
    TimestampUnit,
    TopicMapping,
    Trimmed,
    carried_numbers,
)
from streamwatch.edge.keys import IdKeys
from streamwatch.folds import Scheme

# Rules that find a record's class: its name, a score and a threshold, or the largest of several scores.
#
# Names of models and classes repeat, so valid ones are remembered, in tables of bounded size.


MAX_REMEMBERED = 4_096


def judged(raw: Any, missing: str, invalid: str) -> tuple[str, str]:
    """Return (canonical text, "") for valid content, or ("", reason): `missing` for none, else `invalid`."""
    if raw is None:
        return "", missing
    if raw is FRAMED:
        return "", "schema_registry_framing"
    if raw is INCOMPLETE:
        return "", f"{missing}_part"
    text = canonical_text(raw)
    return ("", invalid) if text is None else (text, "")


class Names:
    """The valid names of models, or of classes, met so far.

    Parameters
    ----------
    aliases
        Name as records write it → the name meant.
    invalid
        The reason for content that is no valid name.
    """

    def __init__(self, aliases: Mapping[str, str], invalid: str) -> None:
        self._aliases = dict(aliases)
        self._invalid = invalid
        # 1, 1.0 and True are equal as keys: each type has its own table.
        self._tables: dict[type, dict[Any, str]] = {str: {}, int: {}, float: {}, bool: {}}

    def judged(self, raw: Any, missing: str) -> tuple[str, str]:
        """Return (the name meant, "") or ("", reason), which is `missing` where there is no content."""
        table = self._tables.get(type(raw))
        if table is not None:
            cached = table.get(raw)
            if cached is not None:
                return cached, ""
        text, reason = judged(raw, missing, self._invalid)
        if not reason and not is_name(text):
            text, reason = "", self._invalid
        if reason or table is None:
            return text, reason
        if len(table) >= MAX_REMEMBERED:
            table.clear()
        name = table[raw] = self._aliases.get(text, text)
        return name, ""


ClassRule: TypeAlias = Callable[[Any, str], tuple[str, str]]
"""(content, reason for an absent one) → (class, "") or ("", reason)."""
MAX_SCORES: Final = 4_096
"""Scores of a record at most; checking each takes a microsecond or two."""


def class_rule(rule: Paths | ClassOfScore | ClassOfLargest, classes: Names) -> ClassRule:
    """Make the function that applies a mapping's rule; paths without a rule lead to the class itself.

    Raises
    ------
    ValueError
        A class is no valid name, or is named twice.
    """
    match rule:
        case ClassOfScore(_, threshold, above, below, probability):
            _check_names((above, below))
            return ByThreshold(threshold, above, below, probability=probability)
        case ClassOfLargest(_, names):
            _check_names(names)
            return ByLargest(classes, names)
        case str() | tuple() | Trimmed() | KeyOf():
            return classes.judged


def by_class(raw: Any, classes: Sequence[str]) -> dict[str, Any] | None:
    """Pair the scores of an array with classes; None unless it is an array with one score for each class."""
    if not isinstance(raw, list):
        return None
    values = cast("list[Any]", raw)
    return dict(zip(classes, values, strict=True)) if len(values) == len(classes) else None


@dataclass(frozen=True, slots=True)
class ScoreAndThreshold:
    """A score, and the threshold that the same record carries."""

    score: Any
    threshold: Any


class ByThreshold:
    """`ClassRule`: the class `above` for a score of at least `threshold`, else `below`.

    A score that is a `probability` must be in [0, 1], and is the probability of `above`. Where `threshold` is
    a path, because records carry it, contents are `ScoreAndThreshold`.
    """

    def __init__(self, threshold: float | str, above: str, below: str, *, probability: bool = False) -> None:
        self._threshold = None if isinstance(threshold, str) else threshold
        self._above, self._below = above, below
        self._probability = probability

    def __call__(self, raw: Any, missing: str) -> tuple[str, str]:
        """Judge one content."""
        if raw is None:
            return "", missing
        threshold = self._threshold
        if isinstance(raw, ScoreAndThreshold):
            if raw.threshold is None:
                return "", "missing_threshold"
            threshold, raw = number_of(raw.threshold), raw.score
        number = number_of(raw)
        if number is None or (self._probability and probability(number) is None):
            return "", "invalid_score"
        if threshold is None:
            return "", "invalid_threshold"
        return self._above if number >= threshold else self._below, ""

    def scores(self, raw: Any) -> dict[str, float] | None:
        """Return probabilities of both classes for valid content; None unless scores are probabilities."""
        number = raw.score if isinstance(raw, ScoreAndThreshold) else raw
        score = probability(number_of(number)) if self._probability else None
        return None if score is None else {self._above: score, self._below: 1.0 - score}


class ByLargest:
    """`ClassRule`: the class with the largest score; scores of one class under several aliases add up.

    Parameters
    ----------
    classes
        Valid classes and aliases, for the names of an object's fields.
    names
        Classes of an array's scores, in order; if empty, contents are objects.
    """

    def __init__(self, classes: Names, names: Sequence[str]) -> None:
        self._classes = classes
        self._names = names
        self.is_tied = False
        """Whether several classes shared the largest score of the last valid content."""

    def __call__(self, raw: Any, missing: str) -> tuple[str, str]:
        """Judge one content."""
        if raw is None:
            return "", missing
        found = by_class(raw, self._names) if self._names else raw
        if not isinstance(found, dict) or not 0 < len(cast("dict[str, Any]", found)) <= MAX_SCORES:
            return "", "invalid_class_scores"
        scores = self._scores(cast("dict[str, Any]", found))
        if scores is None:
            return "", "invalid_class_scores"
        largest = max(scores.values())
        tied = [name for name, score in scores.items() if score == largest]
        self.is_tied = len(tied) > 1
        return tied[0] if self._names else min(tied), ""

    def _scores(self, found: Mapping[str, Any]) -> dict[str, float] | None:
        scores: dict[str, float] = {}
        for shown, content in found.items():
            name, reason = self._classes.judged(shown, "invalid_class_scores")
            number = number_of(content)
            if reason or number is None:
                return None
            scores[name] = scores.get(name, 0.0) + number
        return scores if all(map(math.isfinite, scores.values())) else None


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if not is_name(name):
            raise ValueError(f"a class must be {NAME}, got {name!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"expected classes that differ from each other, got {', '.join(names)}")


# Events of records.


Row: TypeAlias = tuple[Any, ...]
"""Contents of the fields of one side, in the order of `fields.slot_locations`."""

_TRUTH: Final[Mapping[str, bool]] = MappingProxyType({"true": True, "1": True, "false": False, "0": False})
"""Texts that say whether a label was requested."""


class _Extras(NamedTuple):
    """Segments and other values that a prediction carries besides its class."""

    segments: dict[str, str] | None
    carried: Sequence[Any]
    """Values of `core.records.events.CARRIED_FIELDS`."""


_NOTHING: Final = _Extras(None, [None] * len(CARRIED_FIELDS))


class Judge:
    """Judges rows (the contents of a mapping's fields); remembers valid names.

    Parameters
    ----------
    mapping
        The topic's mapping: its class rules and aliases, the unit of timestamps, and which segments, scores
        and carried numbers rows have.
    keys
        Function from valid ids to the keys that events carry; None: ids are kept.
    folds
        Scheme that decides which fold tests which id; without it, predictions with a fold are invalid.

    Raises
    ------
    ValueError
        An alias, or a class that the mapping names, is no valid name; or a class rule names a class twice.
    """

    def __init__(self, mapping: TopicMapping, keys: IdKeys | None, folds: Scheme | None) -> None:
        for name in mapping.classes.values():
            if not is_name(name):
                raise ValueError(f"a class must be {NAME}, got {name!r}")
        self._keys = keys
        self._folds = folds
        self._unit: TimestampUnit = mapping.timestamp_unit
        self.models = Names({}, "invalid_model")
        self.classes = Names(mapping.classes, "invalid_class")
        self._predicted = class_rule(mapping.prediction, self.classes)
        self._largest = self._predicted if isinstance(self._predicted, ByLargest) else None
        self._tied = 0
        self._true = class_rule(mapping.label, self.classes)
        self._segments = tuple(mapping.segments)
        self._mapping = mapping
        self._carried = [(each.fields, _CARRIED[each.name]) for each in carried_numbers(mapping)]
        self._score_classes = mapping.scores.classes if isinstance(mapping.scores, ScoreArray) else None

    def take_tied(self) -> int:
        """Return, and reset, the number of predictions in which several classes shared the largest score."""
        tied, self._tied = self._tied, 0
        return tied

    def prediction(self, row: Row, record: Record, record_ms: int) -> Event:
        """Judge the row of a prediction."""
        scores, fold, *parts = row[4:]
        id_, name, predicted_class, stamp, reason = self._shared(
            row[:4], self._predicted, "missing_prediction", needs_model=True
        )
        if not reason and scores is not None:
            scores = self.scores(scores)
            reason = "invalid_scores" if scores is None else ""
        elif not reason and isinstance(self._predicted, ByThreshold):
            scores = self._predicted.scores(row[2])
        extras = _NOTHING
        if not reason and parts:
            extras, reason = self._extras(parts)
        number = -1
        if not reason and fold is not None:
            number, reason = judged_fold(fold, self._folds)
        if reason:
            return self.invalid(record, reason, row[1])
        if number >= 0:
            if not fold_tests(id_, number, self._folds):
                return WrongFold(record_ms)
            name = fold_name(name, number)
        if self._largest is not None and self._largest.is_tied:
            self._tied += 1
        key = self.key(id_)
        segments, carried = extras
        return Prediction(key, name, predicted_class, record_ms, stamp, scores, segments, "", *carried)

    def label(self, row: Row, record: Record, record_ms: int) -> Event:
        """Judge the row of a label."""
        id_, name, true_class, stamp, reason = self._shared(
            row, self._true, "missing_label", needs_model=False
        )
        if reason:
            return self.invalid(record, reason, row[1])
        return Label(self.key(id_), true_class, record_ms, name or None, stamp)

    def _shared(
        self, row: Row, rule: ClassRule, missing: str, *, needs_model: bool
    ) -> tuple[str, str, str, int | None, str]:
        """Judge id, model, class and timestamp; return them, "" for an absent model, and a reason or ""."""
        id_, model, shown, stamp = row
        name = found = ""
        id_, reason = judged(id_, "missing_id", "invalid_id")
        if not reason and (needs_model or model is not None):
            name, reason = self.models.judged(model, "missing_model")
        if not reason:
            found, reason = rule(shown, missing)
        if not reason and stamp is not None:
            stamp = timestamp_ms(stamp, self._unit)
            reason = "invalid_timestamp" if stamp is None else ""
        return id_, name, found, stamp, reason

    def key(self, id_: str) -> str:
        """Return the key that events carry for an id."""
        return id_ if self._keys is None else self._keys((id_,))[0]

    def null(
        self, record: Record, record_ms: int, id_: Any, model: Any, *, withdraws: bool
    ) -> NullRecord | Invalid:
        """Make the event of a record without a value, or of a deleted row, from the id and model found."""
        name: str | None = None
        reason = ""
        if id_ is not None:
            id_, reason = judged(id_, "missing_id", "invalid_id")
        if model is not None and not reason:
            name, reason = self.models.judged(model, "missing_model")
        if reason:
            return self.invalid(record, reason, model)
        key = None if id_ is None else self.key(id_)
        return NullRecord(record.topic, key, name, record_ms, withdraws=withdraws)

    def invalid(self, record: Record, reason: str, model: Any) -> Invalid:
        """Make the event of an invalid record, with its model if that is a valid name."""
        name, wrong = self.models.judged(model, "missing_model")
        return Invalid(record.topic, record.partition, record.offset, reason, model=None if wrong else name)

    def _extras(self, parts: Sequence[Any]) -> tuple[_Extras, str]:
        """Return what a prediction carries besides its class, and "", or the reason why it is invalid."""
        carried: dict[str, Any] = dict.fromkeys(CARRIED_FIELDS)
        reason = ""
        for fields, judge in self._carried:
            found, wrong = judge(parts[: len(fields)], self._mapping)
            carried |= zip(fields, found, strict=True)
            reason, parts = reason or wrong, parts[len(fields) :]
        segments: dict[str, str] = {}
        for name, raw in zip(self._segments, parts, strict=True):
            value = canonical_text(raw)
            if value is not None:
                segments[name] = value
            elif raw is not None:
                reason = reason or "invalid_segment"
        return _Extras(segments or None, list(carried.values())), reason

    def scores(self, raw: Any) -> dict[str, float] | None:
        """Return probabilities by class, added up over aliases of one class; None if one is invalid."""
        if self._score_classes is not None:
            raw = by_class(raw, self._score_classes)
        if not isinstance(raw, dict) or len(raw) > MAX_SCORES:
            return None
        scores: dict[str, float] = {}
        for shown, number in raw.items():
            name, reason = self.classes.judged(shown, "invalid_scores")
            value = probability(number)
            if reason or value is None:
                return None
            scores[name] = scores.get(name, 0.0) + value
        if len(scores) < len(raw):  # sums, which are probabilities of classes, too
            for name, total in scores.items():
                value = probability(total)
                if value is None:
                    return None
                scores[name] = value
        return scores


_Asked: TypeAlias = tuple[float | None, bool | None]
_NOT_SAMPLED: Final[_Asked] = (None, None)


def _sampling_of(contents: Sequence[Any], mapping: TopicMapping) -> tuple[_Asked, str]:
    """Return (probability of a request for the label, whether it was made), and "" or a reason."""
    probability_, requested = contents
    if probability_ is None:
        return _NOT_SAMPLED, ""
    number = number_of(probability_)
    if number is None or not mapping.min_label_probability <= number <= 1:
        return _NOT_SAMPLED, "invalid_label_probability"
    asked = None if requested is None else _TRUTH.get(canonical_text(requested) or "")
    if requested is not None and asked is None:
        return _NOT_SAMPLED, "invalid_label_requested"
    return (as_float32(number), asked), ""


_CARRIED: Final[Mapping[str, Callable[[Sequence[Any], TopicMapping], tuple[Sequence[Any], str]]]] = (
    MappingProxyType({"sampling": _sampling_of})
)
"""Name in `CARRIED` of `core.records.events` → function from its fields to (values, "" or the reason)."""
