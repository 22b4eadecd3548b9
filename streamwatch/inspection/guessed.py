"""Guessed mappings of topics, with the confidence of each choice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp

from streamwatch.core.records.events import Side
from streamwatch.edge.decoders.mapping import KeyOf, Paths, TimestampUnit, Trimmed
from streamwatch.edge.decoders.texts import TextRule


@dataclass(frozen=True, slots=True)
class Choice:
    """Location chosen for a field of a mapping."""

    location: str
    why: str = ""
    """Reason, for a comment."""
    confidence: float = 1.0
    """Confidence in [0.5, 1]."""
    runner_up: str = ""
    """Next best location; empty without one."""
    further: tuple[str, ...] = ()
    """Locations whose texts are joined to that of the first, such as that of a version."""
    form: Trimmed | KeyOf | None = None
    """Form of the location in a mapping; None: the location itself."""

    @property
    def locations(self) -> Paths:
        """Location, form or list of locations, as in a mapping."""
        if self.form is not None:
            return self.form
        return (self.location, *self.further) if self.further else self.location

    @property
    def is_close(self) -> bool:
        """Return whether the runner-up is to be shown, as the confidence is below `CLOSE`."""
        return bool(self.runner_up) and self.confidence < CLOSE


CLOSE = 0.8


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers for each class at a location."""

    location: str
    classes: tuple[str, ...] = ()
    """Classes in the order of an array; empty for an object, which names them."""


@dataclass(frozen=True, slots=True)
class ScoreChoice:
    """Classes made of a score: `above` if it is at least the threshold, else `below`."""

    threshold: float | str
    """Threshold, or its location."""
    above: str
    below: str


def confidence(best: float, second: float | None) -> float:
    """Confidence in the better of two ranks by their distance: 0.5 if equal, 0.98 at most or if alone."""
    return 0.98 if second is None else min(0.98, 1 / (1 + exp(-4 * (best - second))))


@dataclass(frozen=True, slots=True)
class TopicGuess:
    """Guessed mapping of a topic."""

    topic: str
    side: Side
    id: Choice
    model: Choice | None = None
    """Location, or a constant `=name`; None for labels that apply to every model."""
    prediction: Choice | None = None
    score: ScoreChoice | None = None
    """Classes made of the score at `prediction`; None if it is a class."""
    label: Choice | None = None
    timestamp: Choice | None = None
    timestamp_unit: TimestampUnit = "ms"
    scores: Numbers | None = None
    classes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Aliases: class as written in records → class that is meant."""
    kind: tuple[str, str, str] | None = None
    """Location that distinguishes predictions from labels, and its texts for both."""
    has_fold_field: bool = False
    """Whether records have the field that the default mapping takes for a fold."""
    optional: bool = False
    """Whether many records have no class."""
    largest: Numbers | None = None
    """Numbers whose largest is the prediction; None if it is a plain field."""
    envelope: str | None = None
    format: str | None = None
    """Format of values; None: JSON."""
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Condition: location → texts of the records with a class."""
    others: tuple[TopicGuess, ...] = ()
    """Mappings of further models that predict in the same records."""
    key_format: str | None = None
    """Format of keys; None: text or JSON."""
    decode: tuple[TextRule, ...] = ()
    """Texts in values that contain structured data."""

    @property
    def value_locations(self) -> list[str]:
        """Locations in the value that mappings of the topic read."""
        own = [location for location in self._locations if location.startswith("value")]
        return own + [location for each in self.others for location in each.value_locations]

    @property
    def uses_key(self) -> bool:
        """Return whether a mapping of the topic reads keys."""
        return any(re.match(r"key\b", location) for location in self._locations) or any(
            each.uses_key for each in self.others
        )

    @property
    def _locations(self) -> list[str]:
        choices = (self.id, self.model, self.prediction, self.label, self.timestamp)
        locations = [
            location for choice in choices if choice for location in (choice.location, *choice.further)
        ]
        locations += [numbers.location for numbers in (self.scores, self.largest) if numbers is not None]
        if self.score is not None and isinstance(self.score.threshold, str):
            locations.append(self.score.threshold)
        return [*locations, *self.when, *([] if self.kind is None else [self.kind[0]])]


@dataclass(frozen=True, slots=True)
class Guess:
    """Guess of the mappings of all topics."""

    topics: tuple[TopicGuess, ...] = ()
    problems: tuple[str, ...] = ()
    """Reasons why mappings are incomplete or would not join, with candidates."""
    notes: tuple[str, ...] = ()
    """Remarks on the samples that prevent nothing."""
