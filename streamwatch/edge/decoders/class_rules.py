"""Rules that find a record's class: its name, a score and a threshold, or the largest of several scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from streamwatch.edge.decoders.field_locations import FRAMED, INCOMPLETE
from streamwatch.edge.decoders.fields import NAME, canonical_text, is_name, number_of, probability
from streamwatch.edge.decoders.mapping import ClassOfLargest, ClassOfScore, KeyOf, Paths, Trimmed

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
