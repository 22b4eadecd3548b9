"""Losses of every model, in the order in which they were evaluated, with their event times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Outcome
from streamwatch.core.specs import LandmarkSpec, MonitorsSpec
from streamwatch.lab.tuning.resampling import Losses

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class History:
    """One model's outcomes."""

    losses: Losses
    """0 and 1, shape (n,)."""
    event_ms: NDArray[np.int64]
    """Event times, shape (n,); all alike where the recording has none."""

    def between(self, since_ms: int | None, until_ms: int | None) -> History:
        """Take the outcomes from one time to before another."""
        kept = np.ones(len(self.losses), np.bool_)
        if since_ms is not None:
            kept &= self.event_ms >= since_ms
        if until_ms is not None:
            kept &= self.event_ms < until_ms
        return History(self.losses[kept], self.event_ms[kept])

    @property
    def outcomes_per_day(self) -> float | None:
        """Outcomes a day from the first event time to the last; None where they are alike."""
        span = int(np.ptp(self.event_ms)) if len(self.event_ms) else 0
        return len(self.losses) / (span / DAY_MS) if span else None


@dataclass(frozen=True, slots=True)
class Unfit:
    """A past of one model that no history can be made of, and why."""

    outcomes: int
    error: float
    """NaN without outcomes."""
    why: str


def outcomes_only(monitors: MonitorsSpec) -> MonitorsSpec:
    """Estimators that make a replay quick, where only its outcomes are wanted."""
    return MonitorsSpec(
        (LandmarkSpec(),),
        (),
        (),
        max_models=monitors.max_models,
        max_classes=monitors.max_classes,
        per_class="",
        shadow_max_classes=0,
        opponents=(),
        folds=monitors.folds,
        history_days=0,
    )


class Histories:
    """Collects what a replay evaluates."""

    def __init__(self) -> None:
        self._losses: defaultdict[str, list[bool]] = defaultdict(list)
        self._times: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Take note of outcomes."""
        for outcome in outcomes:
            self._losses[outcome.model].append(outcome.true_class != outcome.predicted_class)
            self._times[outcome.model].append(outcome.event_ms)

    def of_models(self) -> dict[str, History]:
        """Everything so far, by model."""
        return {
            model: History(np.array(losses, np.int8), np.array(self._times[model], np.int64))
            for model, losses in self._losses.items()
        }
