"""Errors of classifiers on the testbed, compared with the paper's (Cervantes et al., Table 3, Figure 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Final

import numpy as np

from streamwatch.papers.classification import peers
from streamwatch.papers.classification.ensembles import (
    Classes,
    GaussianBayes,
    alone,
    dynamic_weighted_majority,
    nearest,
)
from streamwatch.papers.learners import SLIDING, accuracy_of, spec_of, watch
from streamwatch.papers.result import (
    Cell,
    Effort,
    Experiment,
    Figure,
    Floats,
    Line,
    Measured,
    Panel,
    Result,
    Table,
    over_runs,
)
from streamwatch.papers.streams.gaussians import Drawn, draw
from streamwatch.papers.streams.testbed import KINDS, StreamKind

# Classifiers of the experiment, in the order of the paper's Table 3.


RATE: Final = 0.01
"""Learning rate of the support vector machine; the paper prints none, but this one reproduces its errors."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Classifier that restarts with every stream."""

    name: str
    """Name in the paper."""
    answers: Callable[[Floats, Classes, np.random.Generator], Classes]
    """Attributes (n, d), classes 0 and 1 (n,) and a generator → predictions before learning, (n,)."""
    slow: bool = False
    """Whether it takes milliseconds per instance, so that it runs on fewer streams."""


def _neighbour(window: int, x: Floats, true_class: Classes, _rng: np.random.Generator) -> Classes:
    return nearest(x, true_class, window)


CANDIDATES: Final = (
    Candidate("NB", lambda x, true_class, _rng: alone(x, true_class, GaussianBayes)),
    Candidate("SGD", lambda x, true_class, _rng: peers.support_vectors(x, true_class, RATE)),
    Candidate("DWM", lambda x, true_class, _rng: dynamic_weighted_majority(x, true_class, GaussianBayes)),
    Candidate("OZAB", peers.bag_of_trees, slow=True),
    *(Candidate(f"NN{window}", partial(_neighbour, window)) for window in (100, 1_500, 6_000)),
)


# Table 3 of Cervantes et al. as printed: errors of classifiers over 10,000 instances, percent.
#
# Source: Cervantes, Gagné, Isasi, Parizeau, "Evaluating and characterizing incremental learning from non-
# stationary data", Table 3 ("values are final AE_preq in %", means of ten streams each).


CLASSIFIERS: Final = ("NB", "SGD", "DWM", "OZAB", "NN100", "NN1500", "NN6000")
"""Columns of `ERRORS` in the paper's order; errors of the optimal classifier are in `printed_optimal`."""
ERRORS: Final[dict[str, tuple[float, ...]]] = {
    "NSGT": (25.27, 7.68, 4.21, 4.20, 4.83, 6.77, 10.97),
    "NSGT-F": (41.73, 14.14, 6.90, 4.39, 4.77, 11.79, 12.04),
    "NSGR": (49.61, 0.04, 0.90, 0.54, 0.02, 0.02, 36.95),
    "NSLC": (6.44, 4.25, 4.91, 4.72, 6.19, 6.12, 7.77),
    "NSGT-I": (25.05, 8.02, 5.85, 4.48, 4.80, 9.58, 10.28),
    "NSPC": (5.94, 6.77, 6.24, 6.16, 9.00, 8.73, 8.90),
    "NSPC-A": (6.09, 5.89, 6.09, 5.98, 8.45, 8.28, 8.82),
    "NSGT-5D": (25.43, 9.35, 7.34, 7.63, 12.18, 11.16, 11.88),
    "NSCX": (14.28, 12.94, 6.90, 6.08, 6.47, 8.62, 10.19),
}
"""Errors by stream, in the order of `CLASSIFIERS`, percent."""


# Predictions of a classifier on some streams, and its error with the daemon's estimator.


@dataclass(frozen=True, slots=True)
class Tried:
    """Predictions of one classifier on streams of one kind."""

    drawn: Sequence[Drawn]
    """Stream of each run."""
    answers: Sequence[Classes]
    """Predictions of each run, (n,)."""

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

        A few runs may agree by chance, and their spread then understates the error.
        """
        found = over_runs(self.errors(), 2)
        return Measured(found.value, float(np.fmax(found.error, sqrt(self.variance()))), 2)


# Reasons for differences from the paper: parameters that it does not print, and differences of river.


FEW: Final = 3
"""Number of streams, at full size, for classifiers that take milliseconds per instance."""
RATES: Final = (0.0001, 0.001, 0.01, 0.1)
PERIODS: Final = (10, 20, 50)
FIRST: Final = "naive Bayes, gradient, ensembles"
NEIGHBOURS: Final = "nearest neighbour in a window"
NOTES: Final = {
    FIRST: (
        "The prequential error as the daemon computes it, without forgetting. Means are over ten streams "
        "of 10,000 instances, as in the paper, except for OZAB and MOA (three). NB: Gaussian naive Bayes. "
        "SGD: river's linear support vector machine, learning rate .01, λ = .0001. DWM: Kolter and Maloof "
        "2007 over Gaussian naive Bayes, p = 50, β = .5, θ = .01. OZAB: ten of river's Hoeffding trees, "
        "each watched by river's ADWIN. MOA: version 2024.07, at its defaults except for that learning "
        "rate. NB and SGD have the printed errors. DWM has the error of MOA's present version; its period, "
        "which the paper does not print, explains most of the difference (see below). OZAB has the printed "
        "error in MOA, too; the difference here is due to river's trees and ADWIN."
    ),
    NEIGHBOURS: (
        "One neighbour among the instances in the window, whose length is in the name; attributes are "
        "divided by their range in the window, as in MOA. The paper prints neither, but with one neighbour "
        "and this scale, its errors are reproduced. Without the scale, NN100 errs less on NSGT-5D, where "
        "the most informative attribute has the widest range."
    ),
}

Pairs = Sequence[tuple[str, Sequence[Drawn]]]
"""Names of streams of the testbed, each with its runs."""


def unprinted(pairs: Pairs, effort: Effort) -> Table:
    """Build the table of errors by learning rate of SGD and period of DWM, which the paper does not print."""
    rows: list[tuple[Cell, ...]] = []
    for name, drawn in pairs:
        some = drawn[: effort.size(FEW, 2)]
        effort.progress(f"{name}: learning rates and periods")
        printed = dict(zip(CLASSIFIERS, ERRORS[name], strict=True))
        rows.append(
            (
                name,
                f"{printed['SGD']:.2f}",
                *(_of(some, partial(peers.support_vectors, rate=rate)).percent() for rate in RATES),
                f"{printed['DWM']:.2f}",
                *(
                    _of(some, partial(dynamic_weighted_majority, expert=GaussianBayes, period=p)).percent()
                    for p in PERIODS
                ),
            )
        )
    return Table(
        "Parameters that the paper does not print: learning rate of SGD, period of DWM",
        (
            "stream",
            "SGD, paper",
            *(f"rate {rate:g}" for rate in RATES),
            "DWM, paper",
            *(f"p = {period}" for period in PERIODS),
        ),
        tuple(rows),
        "Means over three streams. At a rate of .01, SGD has the printed error on every stream; at .0001, "
        "MOA's present default, it has hardly begun to learn. With a period of 20, DWM is close to the "
        "printed error where the classes move (NSGT, NSGT-I, NSGT-5D, NSCX); with 50, MOA's present "
        "default, it is well above. No period reproduces all nine.",
    )


def bags(pairs: Pairs, found: Mapping[str, Tried], effort: Effort) -> Table:
    """Build the table that compares river's own bagging with ADWIN with the one whose ADWINs watch errors.

    Parameters
    ----------
    pairs
        Streams.
    found
        Predictions of the bagging that watches errors, by stream.
    effort
        Seed and size.
    """
    rows: list[tuple[Cell, ...]] = []
    for name, drawn in pairs:
        some = drawn[: effort.size(2, 2)]
        answers: list[Classes] = []
        for r, each in enumerate(some):
            effort.progress(f"{name}: river's ADWINBaggingClassifier, stream {r + 1} of {len(some)}")
            answers.append(peers.rivers_bag(each.x, each.true_class, effort.rng("river", name, r)))
        printed = dict(zip(CLASSIFIERS, ERRORS[name], strict=True))
        rows.append(
            (
                name,
                f"{printed['OZAB']:.2f}",
                found[name].percent(),
                Tried(some, answers).percent(),
            )
        )
    return Table(
        "OZAB: with ADWIN on errors, and river's own version with ADWIN on hits",
        ("stream", "paper", "watches errors", "river's ADWINBaggingClassifier"),
        tuple(rows),
        "river 0.26 gives ADWIN a 1 if a member of the ensemble is right, so the member that is most often "
        "right restarts when a member improves. In the paper and in MOA, the member that is most often "
        "wrong restarts when a member gets worse. On NSGR, where everything learned is wrong after half a "
        "turn, river's ensemble does not unlearn; elsewhere, its trees adapt by themselves, and both "
        "versions err equally. Means over three streams, and over two for river's version.",
    )


def _of(drawn: Sequence[Drawn], learner: Callable[[Floats, Classes], Classes]) -> Tried:
    return Tried(drawn, [learner(each.x, each.true_class) for each in drawn])


LAP: Final = 10_000
"""Instances of the paper's streams."""
_MEMORY: Final = 500
"""Window of the curves, as in the paper's Figure 2."""
_FIRST: Final = ("NB", "SGD", "DWM", "OZAB")
_NEIGHBOURS: Final = ("NN100", "NN1500", "NN6000")


@dataclass(frozen=True, slots=True)
class _Stream:
    """Results on one stream of the testbed."""

    kind: StreamKind
    drawn: list[Drawn]
    optimal: Tried
    found: dict[str, Tried]
    """Results by classifier."""
    moa: dict[str, Tried]
    """Results of MOA's classifiers; empty without MOA."""


def run(effort: Effort) -> Result:
    """Run every classifier on every stream; then vary unprinted parameters, and run river's own bagging."""
    peers.refuse_without_river()
    outcomes = effort.size(LAP, 400)
    streams = [_tried(kind, outcomes, effort) for kind in KINDS]
    pairs = [(each.kind.name, each.drawn) for each in streams]
    tables = (
        _beside(streams, outcomes, _FIRST, FIRST, optimal=True),
        _beside(streams, outcomes, _NEIGHBOURS, NEIGHBOURS, optimal=False),
        _distances(streams),
        unprinted(pairs, effort),
        bags(pairs, {each.kind.name: each.found["OZAB"] for each in streams}, effort),
    )
    return Result(tables, (_figure(streams, outcomes),))


def _tried(kind: StreamKind, outcomes: int, effort: Effort) -> _Stream:
    drawn = [
        draw(kind.mixture, outcomes, int(effort.rng(kind.name, r).integers(2**31)))
        for r in range(effort.size(10, 3))
    ]
    found: dict[str, Tried] = {}
    for candidate in CANDIDATES:
        some = drawn[: effort.size(FEW, 2)] if candidate.slow else drawn
        answers: list[Classes] = []
        for r, each in enumerate(some):
            effort.progress(f"{kind.name}: {candidate.name}, stream {r + 1} of {len(some)}")
            rng = effort.rng(candidate.name, kind.name, r)
            answers.append(candidate.answers(each.x, each.true_class, rng))
        found[candidate.name] = Tried(some, answers)
    beside: dict[str, Tried] = {}
    if effort.moa is not None:
        some = drawn[: effort.size(FEW, 2)]
        effort.progress(f"{kind.name}: MOA's classifiers, {len(some)} streams")
        answers_of_moa = peers.answers_of(effort.moa, [(each.x, each.true_class) for each in some])
        beside = {name: Tried(some, each) for name, each in answers_of_moa.items()}
    return _Stream(kind, drawn, Tried(drawn, [each.optimal_class for each in drawn]), found, beside)


def _beside(
    streams: Sequence[_Stream], outcomes: int, names: Sequence[str], what: str, *, optimal: bool
) -> Table:
    with_moa = [name for name in names if name in streams[0].moa]
    headings = ["stream", *(("Opt., paper", "Opt.") if optimal else ())]
    for name in names:
        headings += [f"{name}, paper", name, *([f"{name}, MOA"] if name in with_moa else ())]
    rows: list[tuple[Cell, ...]] = []
    for each in streams:
        cells: list[Cell] = [each.kind.name]
        if optimal:
            cells += [
                f"{each.kind.printed_optimal:.2f}",
                each.optimal.percent(),
            ]
        for name in names:
            cells += [f"{_printed(each, name):.2f}", each.found[name].percent()]
            cells += [each.moa[name].percent()] if name in with_moa else ()
        rows.append(tuple(cells))
    title = f"Errors over {outcomes:,} instances, percent: {what} (Table 3)"
    return Table(title, tuple(headings), tuple(rows), NOTES[what])


def _printed(stream: _Stream, name: str) -> float:
    return ERRORS[stream.kind.name][CLASSIFIERS.index(name)]


def _distances(streams: Sequence[_Stream]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in CLASSIFIERS:
        cells: list[Cell] = [name]
        for tried in ([each.found for each in streams], [each.moa for each in streams]):
            if name not in tried[0]:
                cells += ["–", "–"]
                continue
            all_of_it = [each[name] for each in tried]
            away = np.stack(  # (streams, runs)
                [
                    each.errors() - _printed(stream, name)
                    for stream, each in zip(streams, all_of_it, strict=True)
                ]
            )
            mean = over_runs(np.abs(away).mean(axis=0), 2)
            least = sqrt(sum(each.variance() for each in all_of_it)) / len(streams)
            far = int(np.abs(away.mean(axis=1)).argmax())
            cells += [
                Measured(mean.value, float(np.fmax(mean.error, least)), 2),
                f"{away[far].mean():+.2f} on {streams[far].kind.name}",
            ]
        rows.append(tuple(cells))
    headings = ("classifier", "found", "farthest", "MOA 2024.07", "MOA's farthest")
    return Table(
        "Distance from the paper's errors, points, mean over streams",
        headings,
        tuple(rows),
        (
            "The mean absolute distance over the streams drawn. Chance alone gives a positive value: .18 "
            "where the error is 5 %. –: not run, because longer windows take MOA too long."
        ),
    )


def _figure(streams: Sequence[_Stream], outcomes: int) -> Figure:
    first = min(_MEMORY, outcomes // 2)
    shown = np.arange(first - 1, outcomes, max(1, outcomes // 100))
    panels = []
    for each in streams:
        lines = [Line(name, shown + 1.0, _curve(tried)[shown]) for name, tried in each.found.items()]
        lines.append(Line("optimal", shown + 1.0, _curve(each.optimal)[shown], dashed=True))
        changes = tuple(float(at) for at in each.kind.known_changes(outcomes))
        panels.append(Panel(each.kind.name, "instances", "error over the last 500", tuple(lines), changes))
    return Figure("classifiers", "Classifiers on the testbed, mean over streams drawn", tuple(panels))


def _curve(tried: Tried) -> Floats:
    """Compute the error over the last `_MEMORY` instances, mean over runs, (n,)."""
    truth = np.stack([each.true_class for each in tried.drawn])
    return watch(spec_of(size=_MEMORY), truth, np.stack(tried.answers)).error(SLIDING).mean(axis=0)


KIND = Experiment(
    "classifiers",
    "Classifiers on the testbed",
    "Cervantes, Gagné, Isasi, Parizeau, §4, Table 3, Figure 2",
    (
        "Naive Bayes, gradient descent and nearest neighbours have the printed errors; DWM and OZAB "
        "have parameters that the paper does not print."
    ),
    run,
)
