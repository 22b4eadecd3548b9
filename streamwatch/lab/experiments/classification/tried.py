"""What a classifier answered to some streams, and its error with the daemon's own estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from streamwatch.lab.experiments.classification.experts import Classes
from streamwatch.lab.experiments.result import Floats, Measured, over_runs
from streamwatch.lab.experiments.watching import accuracy_of
from streamwatch.lab.streams.draws import Drawn


@dataclass(frozen=True, slots=True)
class Tried:
    """Answers of one classifier to the streams of one kind."""

    drawn: Sequence[Drawn]
    """One a run."""
    answers: Sequence[Classes]
    """(n,) a run."""

    def errors(self) -> Floats:
        """Prequential error over all instances, percent, (runs,)."""
        return np.array(
            [
                100.0 * (1.0 - accuracy_of(each.true_class, answers))
                for each, answers in zip(self.drawn, self.answers, strict=True)
            ]
        )

    def variance(self) -> float:
        """Variance of the mean error over the runs, percent², if losses were independent."""
        rate = float(self.errors().mean()) / 100.0
        return 100.0**2 * rate * (1.0 - rate) / sum(len(answers) for answers in self.answers)

    def percent(self) -> Measured:
        """Mean error over the runs, percent; its standard error is at least that of independent losses.

        Few runs may agree by chance, and tell nothing of their error then.
        """
        found = over_runs(self.errors(), 2)
        return Measured(found.value, float(np.fmax(found.error, sqrt(self.variance()))), 2)
