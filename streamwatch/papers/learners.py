"""Learners of the experiments, and evaluation of many runs by the daemon's estimators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors.ddm import DdmSpec
from streamwatch.core.estimators.kernel.admission import Scores
from streamwatch.core.estimators.kernel.table import ModelTable, Trace
from streamwatch.core.estimators.measures.measures import Totals
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


# Learners of the experiments: a temporally augmented surrogate, a linear discriminant, naive Bayes.


ALPHA = 0.999
_LARGE = 2.0**200


def augmented(
    true_class: NDArray[np.integer], answers: NDArray[np.integer], classes: int, order: int
) -> NDArray[np.int64]:
    """Predict by a surrogate of the Temporally Augmented classifier (Žliobaitė et al. 2015, §3.2); (n,).

    It predicts the most frequent label of earlier outcomes with the same answer and the same last `order`
    labels, by counts that fade by .999; while none of these is .05 or more, the classifier's
    answer. For order 1 it is the daemon's own.
    """
    contexts = classes ** (order + 1)
    counts = [[0.0] * classes for _ in range(contexts)]
    unit, found = 1.0, np.empty(len(true_class), np.int64)
    for t, (context, truth, answer) in enumerate(_contexts(true_class, answers, classes, order)):
        row = counts[context]
        most = max(row)
        # Counts fade as the weight of a new label grows by 1/α.
        known = most / unit >= 0.05
        found[t] = (answer if row[answer] == most else row.index(most)) if known else answer
        row[truth] += unit
        unit /= ALPHA
        if unit > _LARGE:
            counts = [[count / unit for count in row] for row in counts]
            unit = 1.0
    return found


def _contexts(
    true_class: NDArray[np.integer], answers: NDArray[np.integer], classes: int, order: int
) -> Iterator[tuple[int, int, int]]:
    """Yield (number of the answer with the last labels, truth, answer); labels before the first are 0."""
    past, span = 0, classes**order
    for truth, answer in zip(true_class.tolist(), answers.tolist(), strict=True):
        yield answer * span + past, truth, answer
        past = (past * classes + truth) % span


# Linear discriminant with one covariance for all classes.


class LinearDiscriminant:
    """Linear discriminant by class means and a pooled covariance from running sums.

    Parameters
    ----------
    classes, dimensions
        Number of classes, and of attributes.
    """

    def __init__(self, classes: int, dimensions: int) -> None:
        self._count = np.zeros(classes)
        self._sum = np.zeros((classes, dimensions))
        self._products = np.zeros((dimensions, dimensions))

    def learn(self, x: Floats, true_class: NDArray[np.integer]) -> None:
        """Learn instances (n, d) with their classes (n,)."""
        member = np.eye(len(self._count))[true_class]
        self._count += member.sum(axis=0)
        self._sum += member.T @ x
        self._products += x.T @ x

    def predict(self, x: Floats) -> NDArray[np.int64]:
        """Predict the most probable classes, (n,); 0 before the first instance is learned."""
        n = self._count.sum()
        if n == 0:
            return np.zeros(len(x), np.int64)
        means = self._sum / np.maximum(self._count, 1.0)[:, None]
        within = self._products - means.T @ (self._count[:, None] * means)
        # A ridge keeps the covariance invertible until there are more instances than attributes.
        covariance = within / max(n - len(means), 1.0) + (1.0 / (n + 1.0)) * np.eye(x.shape[1])
        weights = np.linalg.solve(covariance, means.T)
        prior = np.log((self._count + 1.0) / (n + len(means)))
        answers = x @ weights - 0.5 * (means.T * weights).sum(axis=0) + prior
        return answers.argmax(axis=1)


# Gaussian naive Bayes, tested on each instance before it learns it, over all instances or over a window.
#
# Sums over the instances before each one are differences of cumulative sums, so that a whole stream is one
# vectorised computation.


LEAST_VARIANCE = 0.01


def scores(x: Floats, true_class: NDArray[np.integer], classes: int, window: int | None = None) -> Floats:
    """Compute P(class | x) before each instance is learned, (n, classes).

    Parameters
    ----------
    x
        Attributes, (n, d).
    true_class
        Classes, (n,).
    classes
        Number of classes; one without instances has the prior of add-one smoothing and variance 1.
    window
        Number of instances that are remembered; None: all.
    """
    evidence = np.stack([_evidence(x, true_class == k, classes, window) for k in range(classes)], axis=1)
    evidence -= evidence.max(axis=1, keepdims=True)
    shares = np.exp(evidence)
    return shares / shares.sum(axis=1, keepdims=True)


def predictions(
    x: Floats, true_class: NDArray[np.integer], classes: int, window: int | None = None
) -> NDArray[np.int64]:
    """Predict classes, (n,); parameters are those of `scores`."""
    return scores(x, true_class, classes, window).argmax(axis=1)


def restarted(
    x: Floats, true_class: NDArray[np.integer], classes: int, starts: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Predict classes, (n,), with a learner that restarts at the instances `starts` (0-based)."""
    found = np.zeros(len(x), np.int64)
    edges = [0, *sorted({int(s) for s in starts if 0 < s < len(x)}), len(x)]
    for begin, end in pairwise(edges):
        found[begin:end] = predictions(x[begin:end], true_class[begin:end], classes)
    return found


def _evidence(x: Floats, member: NDArray[np.bool_], classes: int, window: int | None) -> Floats:
    """Compute ln P(class)·P(x | class), estimated from the instances before each, (n,)."""
    weights = member[:, None].astype(np.float64)
    centre = x.mean(axis=0)  # centred, so that cumulative squares lose no digits
    shifted = x - centre
    count = _before(weights, window)
    total, squares = _before(shifted * weights, window), _before(shifted**2 * weights, window)
    seen = np.minimum(np.arange(len(x)), len(x) if window is None else window)
    n = np.maximum(count, 1.0)
    mean = total / n
    variance = np.where(count < 2, 1.0, np.maximum(squares / n - mean**2, LEAST_VARIANCE))
    mean = np.where(count < 1, shifted, mean)  # a class without instances has density 1 at any x
    prior = np.log((count[:, 0] + 1.0) / (seen + classes))
    return prior - 0.5 * (np.log(variance) + (shifted - mean) ** 2 / variance).sum(axis=1)


def _before(values: Floats, window: int | None) -> Floats:
    """Compute sums over the rows before each one, within the window."""
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    if window is None:
        return sums[:-1]
    starts = np.maximum(np.arange(len(values)) - window, 0)
    return sums[:-1] - sums[starts]


# Naive Bayes that restarts at every alarm, of a detector or at random.


LOOK_AHEAD = 4_000
"""Number of instances computed at first until an alarm; it affects running time only."""


def at_alarms(
    x: Floats, true_class: NDArray[np.integer], classes: int, spec: MonitorsSpec, detector: int
) -> tuple[NDArray[np.int64], list[int]]:
    """Predict with a learner that restarts when a detector on its losses alarms, as does the detector.

    Returns the predictions (n,), and the first instance (0-based) of each new learner.
    """
    answers, starts, begin = np.zeros(len(x), np.int64), [], 0
    while begin < len(x):
        length, found = LOOK_AHEAD, []
        while True:
            part = slice(begin, begin + length)
            predicted = predictions(x[part], true_class[part], classes)
            found = alarms_of(spec, predicted != true_class[part])[detector]
            if found or begin + length >= len(x):
                break
            length *= 2
        end = begin + found[0] if found else len(x)
        answers[begin:end] = predicted[: end - begin]
        if found and end < len(x):
            starts.append(end)
        begin = end
    return answers, starts


def chance_alarms(rng: np.random.Generator, n: int, probability: float, warm_up: int = 30) -> list[int]:
    """Draw the instances (0-based) of random alarms, at least `warm_up` instances apart.

    An alarm comes at every step with this probability, except in a learner's first `warm_up` (Žliobaitė et
    al. 2015, §6.9).
    """
    starts, at = [], 0
    if probability <= 0.0:
        return starts
    while True:
        at += warm_up - 1 + int(rng.geometric(probability))
        if at >= n:
            return starts
        starts.append(at)
