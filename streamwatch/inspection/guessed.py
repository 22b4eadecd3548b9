"""A guess of where predictions and labels live, and how sure each part of it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp

from streamwatch.core.events import Side
from streamwatch.edge.decoders.mapping import KeyOf, Paths, TimestampUnit, Trimmed
from streamwatch.edge.decoders.texts import TextRule


@dataclass(frozen=True, slots=True)
class Choice:
    """One location chosen, why, how surely (0.5 to 1), and the next best where it is close.

    `further` are locations whose texts follow that of the first one, as of a name and its version. `form` is
    how a mapping names what stands at the location, where that is not the location itself.
    """

    location: str
    why: str = ""
    confidence: float = 1.0
    runner_up: str = ""
    further: tuple[str, ...] = ()
    form: Trimmed | KeyOf | None = None

    @property
    def locations(self) -> Paths:
        """The location, or all of them, as a mapping has them."""
        if self.form is not None:
            return self.form
        return (self.location, *self.further) if self.further else self.location

    @property
    def is_close(self) -> bool:
        """Tell whether the runner-up deserves a look."""
        return bool(self.runner_up) and self.confidence < CLOSE


CLOSE = 0.8


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers at a location, one per class: of an array in the order of `classes`, of an object by name."""

    location: str
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoreChoice:
    """Classes that a score stands for: `above` from the threshold on, else `below`."""

    threshold: float | str
    """A number, or its location."""
    above: str
    below: str


def confidence(best: float, second: float | None) -> float:
    """Confidence from the distance of two ranks: 0.5 where they are equal, 0.98 at most."""
    return 0.98 if second is None else min(0.98, 1 / (1 + exp(-4 * (best - second))))


@dataclass(frozen=True, slots=True)
class TopicGuess:
    """Mapping of one topic.

    `model` is a location, a constant (`=name`) or None; `classes` are aliases as records write them; `kind`
    is the location that distinguishes predictions from labels, with both texts. `has_fold_field`: records
    have what the default mapping takes for a fold. `optional`: many have no class. `largest`: the prediction
    is the class with the largest of several numbers. `envelope` is what values are wrapped in,
    `format` what they are written in where that is not JSON, `key_format` the same of keys, `decode` texts in
    them that hold more. `when`: location
    → texts of the records that are meant. `others` are further mappings of the topic: of other models that
    predict in the same records.
    """

    topic: str
    side: Side
    id: Choice
    model: Choice | None = None
    prediction: Choice | None = None
    score: ScoreChoice | None = None
    label: Choice | None = None
    timestamp: Choice | None = None
    timestamp_unit: TimestampUnit = "ms"
    scores: Numbers | None = None
    classes: Mapping[str, str] = field(default_factory=dict[str, str])
    kind: tuple[str, str, str] | None = None
    has_fold_field: bool = False
    optional: bool = False
    largest: Numbers | None = None
    envelope: str | None = None
    format: str | None = None
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    others: tuple[TopicGuess, ...] = ()
    key_format: str | None = None
    decode: tuple[TextRule, ...] = ()

    @property
    def value_locations(self) -> list[str]:
        """Locations in the value that a mapping of the topic looks at."""
        own = [location for location in self._locations if location.startswith("value")]
        return own + [location for each in self.others for location in each.value_locations]

    @property
    def uses_key(self) -> bool:
        """Tell whether a mapping of the topic looks at keys."""
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
    """Everything guessed from one sample.

    `problems` are what could not be guessed, with the candidates; where there is any the mapping is not
    complete or would not join. `notes` are worth knowing and prevent nothing.
    """

    topics: tuple[TopicGuess, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
