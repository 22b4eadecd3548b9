"""Evaluation of many runs by the daemon's estimators, with their values after every outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.agreement import Totals
from streamwatch.core.estimators.detectors.ddm import DdmSpec
from streamwatch.core.estimators.kernel.admission import Scores
from streamwatch.core.estimators.kernel.table import ModelTable, Trace
from streamwatch.core.specs import (
    AdwinDriftSpec,
    AdwinSpec,
    DriftWeightedSpec,
    FadingSpec,
    LandmarkSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
)
from streamwatch.papers.result import Floats

LANDMARK, FADING, SLIDING, ADWIN = range(4)
"""Forgetting mechanisms of `spec_of`, in order."""
PAGE_HINKLEY, ADWIN_DRIFT = range(2)
"""Detectors of `spec_of`, in order."""


def spec_of(
    *,
    alpha: float = 0.999,
    size: int = 1_000,
    delta: float = 0.002,
    page_hinkley: PageHinkleySpec | None = None,
    weighting: DriftWeightedSpec | None = None,
) -> MonitorsSpec:
    """Build a daemon's default specification with these parameters, and with detectors as published.

    All results share one compiled loop, so no experiment compiles its own.
    """
    return replace(
        MonitorsSpec(),
        forgetting=(
            LandmarkSpec(),
            FadingSpec(alpha),
            SlidingSpec(size),
            AdwinSpec(delta, dependence="ignored"),
        ),
        detectors=(
            replace(page_hinkley or PageHinkleySpec(threshold=50.0), dependence="ignored"),
            AdwinDriftSpec(delta=delta, dependence="ignored"),
        ),
        drift_weighted=(replace(weighting or DriftWeightedSpec(), delta=delta, dependence="ignored"),),
        history_days=0,
    )


WITH_DDM = replace(spec_of(), detectors=(*spec_of().detectors, DdmSpec()))
"""Specification with DDM as a third detector, which needs a second compiled loop."""
DDM = 2
"""Index of DDM among the detectors of `WITH_DDM`."""


@dataclass(frozen=True, slots=True)
class Watched:
    """Estimates after every one of n outcomes of r runs; arrays are (r, n)."""

    traces: tuple[Trace, ...]

    def accuracy(self, mechanism: int) -> Floats:
        """Accuracy under a forgetting mechanism."""
        return np.stack([t.totals[mechanism].hits / t.totals[mechanism].n for t in self.traces])

    def error(self, mechanism: int) -> Floats:
        """Error under a forgetting mechanism."""
        return 1.0 - self.accuracy(mechanism)

    def totals(self, run: int, mechanism: int) -> Totals:
        """Agreement totals of one run, arrays (n,)."""
        return self.traces[run].totals[mechanism]

    def alarms(self, run: int, detector: int) -> NDArray[np.int64]:
        """Outcomes (1-based) at which a detector alarmed in a run."""
        return np.flatnonzero(self.traces[run].alarmed[detector]) + 1

    def weighted(self) -> Floats:
        """Drift-weighted accuracy."""
        return np.stack([t.weighted[0] for t in self.traces])


def watch(spec: MonitorsSpec, true_class: NDArray[np.integer], predicted: NDArray[np.integer]) -> Watched:
    """Evaluate runs, each as a separate model, and return the values of its estimators after each outcome.

    Parameters
    ----------
    spec
        Result of `spec_of`; any other specification is compiled first.
    true_class, predicted
        Classes 0, 1, …, shape (runs, n) or (n,) for one run.
    """
    true_class, predicted = np.atleast_2d(true_class), np.atleast_2d(predicted)
    table = ModelTable(replace(spec, max_models=1))
    traces: list[Trace] = []
    for truth, answer in zip(true_class, predicted, strict=True):
        row = table.add_model()
        rows = np.full(len(truth), row, np.int32)
        traces.append(table.trace(rows, truth.astype(np.int32), answer.astype(np.int32)))
        table.retire(row)
    return Watched(tuple(traces))


def watch_losses(spec: MonitorsSpec, losses: NDArray[np.integer] | NDArray[np.bool_]) -> Watched:
    """Evaluate runs of 0-1 losses, shape (runs, n) or (n,), as `watch` does, with arbitrary classes."""
    wrong = np.atleast_2d(losses).astype(np.int32)
    return watch(spec, np.zeros_like(wrong), wrong)


def totals_of(
    true_class: NDArray[np.integer], answers: NDArray[np.integer], scores: Floats | None = None
) -> Totals:
    """Compute the agreement totals without forgetting; `scores` are P(class | x), (n, classes)."""
    table = ModelTable(spec_of())
    rows = np.full(len(true_class), table.add_model(), np.int32)
    columns = (rows, true_class.astype(np.int32), answers.astype(np.int32))
    if scores is None:
        table.fold(*columns)
    else:
        n, k = scores.shape
        offsets, classes = np.arange(0, n * k + 1, k), np.tile(np.arange(k, dtype=np.int32), n)
        table.fold(*columns, scores=Scores(offsets, classes, scores.ravel()))
    return table.totals(np.zeros(1, np.int64), LANDMARK)


def accuracy_of(true_class: NDArray[np.integer], answers: NDArray[np.integer]) -> float:
    """Compute the prequential accuracy without forgetting at the end of one run."""
    totals = totals_of(true_class, answers)
    return float((totals.hits / totals.n)[0])


def alarms_of(spec: MonitorsSpec, losses: NDArray[np.bool_]) -> list[list[int]]:
    """Return the outcomes (1-based) at which each detector alarms on 0-1 losses, shape (n,)."""
    table = ModelTable(replace(spec, max_models=1))
    wrong = losses.astype(np.int32)
    rows = np.full(len(wrong), table.add_model(), np.int32)
    found: list[list[int]] = [[] for _ in spec.detectors]
    for alarm in table.fold(rows, np.zeros_like(wrong), wrong):
        if alarm.detector < len(found):
            found[alarm.detector].append(alarm.outcome)
    return found
