"""A history from a daemon's past: counts by stretches of time, and when they say enough.

The past has no order within a stretch, so it does for losses that do not go together, and for no others. Were
they to go together, counts of stretches would vary more than those of independent losses. That is looked at
first, and refused where it cannot be ruled out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from streamwatch.core.past import Stretches
from streamwatch.lab.reporting.daemon import ask, model_paths
from streamwatch.lab.tuning.history import History, Unfit
from streamwatch.lab.tuning.suitability import CannotPromise

MOST_DISPERSION: Final = 1.2
"""Variance of counts over that of independent losses, which its upper limit may reach."""
LEAST_CELLS: Final = 20
"""Cells of which the variance is told."""
_EXPECTED: Final = 5.0
"""Errors and hits that a cell is to have, for the χ² law of its count."""
_INSTEAD: Final = "tune from recorded outcomes"


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one model by stretches of time, the oldest first."""

    start_s: NDArray[np.int64]
    """Seconds since 1970, shape (n,)."""
    seconds: NDArray[np.int64]
    outcomes: NDArray[np.int64]
    errors: NDArray[np.int64]
    in_folds: bool
    """Outcomes of several folds are counted together."""

    def between(self, since_ms: int | None, until_ms: int | None) -> Counts:
        """Take the stretches that lie wholly between two times."""
        kept = np.ones(len(self.start_s), np.bool_)
        if since_ms is not None:
            kept &= 1_000 * self.start_s >= since_ms
        if until_ms is not None:
            kept &= 1_000 * (self.start_s + self.seconds) <= until_ms
        return replace(
            self,
            start_s=self.start_s[kept],
            seconds=self.seconds[kept],
            outcomes=self.outcomes[kept],
            errors=self.errors[kept],
        )


def counts_of(stretches: Stretches, *, in_folds: bool) -> Counts:
    """Counts of stretches that do not overlap, in order of time."""
    outcomes = stretches["outcomes"].astype(np.int64)
    return Counts(
        stretches["start_s"].astype(np.int64),
        stretches["seconds"].astype(np.int64),
        outcomes,
        outcomes - stretches["right"],
        in_folds,
    )


def counts_of_daemon(url: str, token: str | None = None) -> dict[str, Counts]:
    """Ask a running daemon for the past of all its models.

    Raises
    ------
    ReportError
        If the URL is none, nobody answers there, or not as a daemon does.
    """
    base, paths = model_paths(url, token)
    return {model: _counts(ask(base, f"{path}/past", token)) for model, path in paths.items()}


def _counts(past: Any) -> Counts:
    outcomes = np.array(past["outcomes"], np.int64)
    return Counts(
        np.array(past["starts"], np.int64),
        np.array(past["seconds"], np.int64),
        outcomes,
        outcomes - np.array(past["hits"], np.int64),
        None in past["persistent"],
    )


def histories_of(counts: Mapping[str, Counts], seed: int) -> dict[str, History | Unfit]:
    """Make a history of every model's past, or say why there is none; same seed, same histories."""
    found: dict[str, History | Unfit] = {}
    for model, kept in counts.items():
        try:
            found[model] = history_of(kept, np.random.default_rng(seed))
        except CannotPromise as why:
            outcomes = int(kept.outcomes.sum())
            error = int(kept.errors.sum()) / outcomes if outcomes else float("nan")
            found[model] = Unfit(outcomes, error, str(why))
    return found


def history_of(counts: Counts, rng: np.random.Generator) -> History:
    """Losses that have these counts, in random order within each stretch, at times evenly spread over it.

    Raises
    ------
    CannotPromise
        If nothing is kept, of models in folds, and where it cannot be ruled out that losses go together.
    """
    if not len(counts.outcomes):
        raise CannotPromise(f"nothing is kept of its past (monitors.history_days); {_INSTEAD}")
    if counts.in_folds:
        raise CannotPromise(f"it predicts in folds, which the past counts together; {_INSTEAD}")
    _refuse_dependence(counts)
    losses = [
        rng.permutation(np.repeat(np.array([1, 0], np.int8), [errors, outcomes - errors]))
        for errors, outcomes in zip(counts.errors, counts.outcomes, strict=True)
    ]
    times = [
        1_000 * start + 1_000 * seconds * np.arange(outcomes) // outcomes
        for start, seconds, outcomes in zip(counts.start_s, counts.seconds, counts.outcomes, strict=True)
    ]
    return History(np.concatenate(losses), np.concatenate(times).astype(np.int64))


def _refuse_dependence(counts: Counts) -> None:
    """Compare the variance of counts with that of independent losses: Pearson's χ² over cells."""
    total, errors = int(counts.outcomes.sum()), int(counts.errors.sum())
    rarer = min(errors, total - errors)
    if not rarer:
        return  # `check_history` has words for it
    least = _EXPECTED * total / rarer
    cell = (np.cumsum(counts.outcomes) - counts.outcomes) // np.ceil(least).astype(np.int64)
    _, number = np.unique(cell, return_inverse=True)
    n = np.bincount(number, counts.outcomes)
    e = np.bincount(number, counts.errors)
    if len(n) < LEAST_CELLS:
        raise CannotPromise(
            f"its past is {len(counts.outcomes):,} stretches of time with {rarer:,} "
            f"{'errors' if errors <= total - errors else 'hits'}, too few to see whether losses go together; "
            f"{_INSTEAD}"
        )
    p = errors / total
    freedom = len(n) - 1
    square = float(((e - n * p) ** 2 / (n * p * (1.0 - p))).sum())
    seen, upper = square / freedom, square / float(stats.chi2.ppf(0.05, freedom))
    if upper > MOST_DISPERSION:
        raise CannotPromise(
            f"its past has counts of minutes to hours only, which do for independent losses; the counts vary "
            f"{seen:.2f} times as those of independent ones do, perhaps {upper:.2f} times (at most "
            f"{MOST_DISPERSION} may be possible, seen on {len(n):,} stretches); {_INSTEAD}"
        )
