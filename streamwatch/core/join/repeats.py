"""Predictions whose id and model were there before, in a sample: only one prediction of each id counts.

Some are delivered twice. Where there are many, two models share a name, or ids are used again: numbers then
look right and mean something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from streamwatch.core.events import Prediction

MANY: Final = 0.01
"""Share of the predictions above which repeated ones are told; the alert PredictionsRepeated has the same."""
FEWEST: Final = 3
"""Repeated predictions of a sample below which nothing is said."""
CAUSE: Final = (
    "two versions or deployments share one name, or ids are used again; with the same class it may be "
    "producers that deliver at least once"
)
CHANGE: Final = (
    "topics.predictions … mapping: {model: [place of the name, place of the version]} if a second field "
    "tells them apart (streamwatch inspect finds it); otherwise an id for each prediction; if models revise "
    "their predictions, join: {conflicts: last} or {conflicts: both}"
)


@dataclass(frozen=True, slots=True)
class RepeatedModel:
    """Predictions of one model, how many of them repeat an id, and how many of these with another class."""

    model: str
    predictions: int
    repeated: int
    conflicts: int

    @property
    def said(self) -> str:
        """Figures for a person, as what follows a subject."""
        classes = f"{self.conflicts:,} with another class" if self.conflicts else "all with the same class"
        share = f"{self.repeated / self.predictions:.1%}"
        return (
            f"repeats ids in {share} of its predictions ({self.repeated:,} of {self.predictions:,}, "
            f"{classes}): one of each id counts"
        )


@dataclass(slots=True)
class Repeats:
    """Counts the repeated predictions of a sample, against the first one of their id and model."""

    _classes: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _predictions: Counter[str] = field(default_factory=Counter[str])
    _duplicates: Counter[str] = field(default_factory=Counter[str])
    _conflicts: Counter[str] = field(default_factory=Counter[str])

    def add(self, prediction: Prediction) -> None:
        """Count one prediction."""
        key, model = (prediction.id, prediction.model), prediction.model
        self._predictions[model] += 1
        if key not in self._classes:
            self._classes[key] = prediction.predicted_class
        elif self._classes[key] == prediction.predicted_class:
            self._duplicates[model] += 1
        else:
            self._conflicts[model] += 1

    def many(self, *, revised: bool = False) -> Sequence[RepeatedModel]:
        """Models with many repeated predictions, sorted; those with another class are none if `revised`."""
        found: list[RepeatedModel] = []
        for model, count in sorted(self._predictions.items()):
            conflicts = 0 if revised else self._conflicts[model]
            repeated = self._duplicates[model] + conflicts
            if repeated >= FEWEST and repeated > MANY * count:
                found.append(RepeatedModel(model, count, repeated, conflicts))
        return found
