"""Q and McNemar of two learners over time (Gama, Sebastião, Rodrigues 2009, §3.3, Figures 4 to 7).

Two naive Bayes learners on the SEA concepts: one keeps all it learned, the other restarts at every alarm of a
detector on its losses, as in the paper's Figure 6.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.comparisons.measures import (
    CRITICAL,
    Sums,
    mcnemar,
    mcnemar_calibrated,
    q_statistic,
)
from streamwatch.core.estimators.comparisons.observe import CHALLENGER_WRONG, CHAMPION_WRONG
from streamwatch.core.estimators.comparisons.table import ComparisonTable
from streamwatch.core.specs import FadingSpec, LandmarkSpec, MonitorsSpec, SlidingSpec
from streamwatch.history.recordings.file import BROKEN
from streamwatch.papers import learners as naive_bayes
from streamwatch.papers.learners import ADWIN_DRIFT, at_alarms, spec_of
from streamwatch.papers.result import (
    Effort,
    Experiment,
    Figure,
    Floats,
    Line,
    Panel,
    Result,
    Table,
    over_runs,
    share,
)
from streamwatch.papers.streams.sources import drifts, sea

LOOK = 50
"""Pairs between two evaluations (looks)."""
_FORGETTING = (
    LandmarkSpec(),
    SlidingSpec(250),
    FadingSpec(0.995),
    SlidingSpec(1_000),
    SlidingSpec(100),
    FadingSpec(0.999),
    FadingSpec(0.99),
)
_LANDMARK, _WINDOW_250, _FADED_995, _WINDOW_1000, _WINDOW_100, _FADED_999, _FADED_99 = range(7)


@dataclass(frozen=True, slots=True)
class _Looks:
    """Statistics at every look of every run, arrays (looks, runs)."""

    at: NDArray[np.int64]
    sums: dict[int, list[Sums]]

    def of(self, measure: Callable[[Sums], Floats], mechanism: int) -> Floats:
        """Compute a measure under a forgetting mechanism, (looks, runs)."""
        return np.stack([measure(sums) for sums in self.sums[mechanism]])


def run(effort: Effort) -> Result:
    """Compare a learner that never forgets with one that restarts at alarms."""
    per_concept = effort.size(15_000, 5_000)
    runs = effort.runs("two naive Bayes learners on SEA", 30, 5)
    pairs = [_losses(effort, r, per_concept) for r in runs]
    losses = np.stack(pairs)  # (runs, 2, n)
    looks = _looked(losses)
    changes = drifts(per_concept)
    tables = (_q_table(looks, changes, per_concept), _mcnemar_table(looks, changes, per_concept))
    return Result(tables, (_figure(looks, changes),))


def _losses(effort: Effort, r: int, per_concept: int) -> NDArray[np.bool_]:
    """Compute the losses of both learners, (2, n)."""
    x, truth = sea(effort.rng("sea", r), per_concept)
    whole = naive_bayes.predictions(x, truth, 2) != truth
    answers, _ = at_alarms(x, truth, 2, spec_of(), ADWIN_DRIFT)
    return np.stack([whole, answers != truth])


def _looked(losses: NDArray[np.bool_]) -> _Looks:
    """Pass the pairs to the daemon's comparisons, with the learner that never forgets as champion."""
    table = ComparisonTable(replace(MonitorsSpec(), forgetting=_FORGETTING))
    rows = np.array([table.add_row(balanced=False) for _ in losses], np.int64)
    sums: dict[int, list[Sums]] = {mechanism: [] for mechanism in range(len(_FORGETTING))}
    n = losses.shape[2]
    for begin in range(0, n, LOOK):
        champion, challenger = losses[:, 0, begin : begin + LOOK].T, losses[:, 1, begin : begin + LOOK].T
        size = champion.size
        table.fold(
            np.tile(rows, len(champion)),
            (CHAMPION_WRONG * champion | CHALLENGER_WRONG * challenger).astype(np.uint8).ravel(),
            (champion.astype(np.float64) - challenger).ravel(),
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
        )
        for mechanism, found in sums.items():
            found.append(table.sums(rows, mechanism))
    return _Looks(np.minimum(np.arange(LOOK, n + LOOK, LOOK), n), sums)


def _q_table(looks: _Looks, changes: tuple[int, ...], per_concept: int) -> Table:
    ends = [int(np.searchsorted(looks.at, end)) for end in (*changes, changes[-1] + per_concept)]
    found = [
        ("all outcomes", looks.of(q_statistic, _LANDMARK)),
        ("last 250", looks.of(q_statistic, _WINDOW_250)),
        ("fading .995", looks.of(q_statistic, _FADED_995)),
    ]
    rows = []
    for name, q in found:
        likeness = [_correlation(found[1][1][:, r], q[:, r]) for r in range(q.shape[1])]
        rows.append((name, *(over_runs(q[end], 3) for end in ends), over_runs(likeness, 3)))
    return Table(
        "Q = ln(S_A/S_B): A continues to learn, B restarts at alarms; positive if B errs less",
        ("sums over", *(f"end of concept {i + 1}" for i in range(len(ends))), "correlation with last 250"),
        tuple(rows),
        "The paper's Figures 4 and 5 show Q of two neural networks on data that are not public; its "
        "finding, that a window of 250 and a factor of .995 agree while the sum over all outcomes lags "
        "behind, is confirmed by the last column. Before the first change, both learners err equally.",
    )


def _mcnemar_table(looks: _Looks, changes: tuple[int, ...], per_concept: int) -> Table:
    named = (
        ("all outcomes", mcnemar, _LANDMARK),
        ("last 1,000", mcnemar, _WINDOW_1000),
        ("last 100", mcnemar, _WINDOW_100),
        ("fading .999", mcnemar, _FADED_999),
        ("fading .99", mcnemar, _FADED_99),
        ("fading .999, calibrated", mcnemar_calibrated, _FADED_999),
    )
    before = looks.at <= changes[0]
    change = changes[0]
    after = (looks.at > change) & (looks.at <= change + per_concept)
    rows = []
    for name, measure, mechanism in named:
        m = np.nan_to_num(looks.of(measure, mechanism))
        beyond = m > CRITICAL
        first = [_first(looks.at[after] - change, beyond[after][:, r]) for r in range(m.shape[1])]
        since = [_share_since_first(beyond[:, r]) for r in range(m.shape[1])]
        rows.append(
            (
                name,
                over_runs((abs(m[before]) > CRITICAL).mean(axis=0), 3),
                over_runs(first, 0),
                share(sum(value == value for value in first), len(first)),  # noqa: PLR0124 - NaN
                over_runs(since, 3),
            )
        )
    return Table(
        f"McNemar's statistic above {CRITICAL} in favour of the learner that restarts",
        (
            "counts over",
            "looks beyond it, either sign, before any change",
            f"outcomes to it after change 1 (at {change:,})",
            "runs in which it comes",
            "looks beyond it since it first was",
        ),
        tuple(rows),
        "The paper's Figures 6 and 7 print no numbers. Its findings: over all outcomes, the statistic does "
        "not return below the threshold (last column). Windows and factors of equal memory (1,000 and "
        ".999, 100 and .99) reject at about the same point, and different memories give different results. "
        "Under fading, the expectation of the plain statistic is 1/(1 + α) instead of 1 if the learners "
        "are equal, so it is conservative; the calibrated one is not. All are evaluated every 50 outcomes, "
        "for which a test at a fixed level is not valid.",
    )


def _figure(looks: _Looks, changes: tuple[int, ...]) -> Figure:
    at = looks.at.astype(np.float64)

    def first_run(label: str, measure: Callable[[Sums], Floats], mechanism: int) -> Line:
        return Line(label, at, looks.of(measure, mechanism)[:, 0])

    q = (
        first_run("all outcomes", q_statistic, _LANDMARK),
        first_run("last 250", q_statistic, _WINDOW_250),
        first_run("fading .995", q_statistic, _FADED_995),
    )
    windows = (
        first_run("all outcomes", mcnemar, _LANDMARK),
        first_run("last 1,000", mcnemar, _WINDOW_1000),
        first_run("fading .999", mcnemar, _FADED_999),
    )
    verticals = tuple(float(change) for change in changes)
    return Figure(
        "comparison",
        "Two naive Bayes learners on SEA, one run: positive where the one that begins anew errs less",
        (
            Panel("Q", "pairs", "Q", q, verticals, (0.0,)),
            Panel("signed McNemar", "pairs", "M", windows, verticals, (CRITICAL, -CRITICAL)),
        ),
    )


def _correlation(one: Floats, other: Floats) -> float:
    both = ~(np.isnan(one) | np.isnan(other))
    return float(np.corrcoef(one[both], other[both])[0, 1])


def _first(waits: NDArray[np.int64], beyond: NDArray[np.bool_]) -> float:
    return float(waits[beyond.argmax()]) if beyond.any() else float("nan")


def _share_since_first(beyond: NDArray[np.bool_]) -> float:
    return float(beyond[beyond.argmax() :].mean()) if beyond.any() else float("nan")


KIND = Experiment(
    "comparison",
    "Q and McNemar of two learners over time",
    "Gama, Sebastião, Rodrigues 2009, §3.3",
    "A window of 250 and a factor of .995 agree; Q and McNemar's statistic over all outcomes lag behind.",
    run,
)


# Recorded predictions of several classifiers on one stream.


Classes: TypeAlias = NDArray[np.int64]
TRUTH = "y_true"
LEAST = 2_000
"""Least number of outcomes of a recording; with fewer, windows of 1,000 are hardly filled."""


class AnswersError(ValueError):
    """Recording that an experiment cannot evaluate; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Labels and predictions of classifiers on one stream."""

    labels: tuple[str, ...]
    """Names of the classes, sorted."""
    true_class: Classes
    """Labels by index in `labels`, (n,)."""
    answers: dict[str, Classes]
    """Predictions by classifier, (n,), by index in `labels`."""

    @property
    def tree(self) -> str:
        """Name of the classifier used as the papers' Hoeffding tree: `ht@8`, as for Elec2, else the first."""
        return "ht@8" if "ht@8" in self.answers else next(iter(self.answers))


def read_recording(path: Path | None, *, answers: bool = True) -> Recording:
    """Read a CSV, .gz or not, with the labels in `y_true` and a column of predictions per classifier.

    A column `i` is ignored. `answers`: whether there must be a classifier.

    Raises
    ------
    AnswersError
        If `path` is None, the file cannot be read, columns or rows are missing, or a prediction is no label.
    """
    if path is None:
        raise AnswersError(
            f"expected --recording FILE, a CSV with a column {TRUTH} and one per classifier; got none"
        )
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8-sig") as lines:
            rows = list(csv.reader(lines))
    except (*BROKEN, UnicodeDecodeError, csv.Error) as error:
        raise AnswersError(f"{path} cannot be read: {error}") from error
    while rows and not rows[-1]:  # blank lines at the end
        rows.pop()
    header = rows[0] if rows else []
    if TRUTH not in header or len(rows) < 2:
        raise AnswersError(f"{path}: expected rows below a header with {TRUTH}, got {', '.join(header)}")
    if len(rows) <= LEAST:
        raise AnswersError(f"{path}: expected at least {LEAST:,} rows, got {len(rows) - 1:,}")
    if wrong := [number for number, row in enumerate(rows, 1) if len(row) != len(header)]:
        raise AnswersError(f"{path}: expected {len(header)} cells in line {wrong[0]}")
    columns = dict(zip(header, np.array(rows[1:]).T, strict=True))
    labels = tuple(sorted(set(columns[TRUTH].tolist())))
    others = {name: column for name, column in columns.items() if name not in {TRUTH, "i"}}
    if answers and not others:
        raise AnswersError(f"{path}: expected a column of answers per classifier beside {TRUTH}, got none")
    if len(labels) < 2:
        raise AnswersError(f"{path}: expected at least two classes in {TRUTH}, got {', '.join(labels)} only")
    for name, column in others.items():
        if unknown := sorted(set(column.tolist()) - set(labels)):
            raise AnswersError(f"{path}: {name} answers {unknown[0]!r}, which is never a label")
    return Recording(
        labels,
        np.searchsorted(labels, columns[TRUTH]),
        {name: np.searchsorted(labels, column) for name, column in others.items()},
    )
