"""Losses of every model, in the order in which they were evaluated, with their event times."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from streamwatch.core.estimators.past import Stretches
from streamwatch.core.events import Outcome
from streamwatch.core.specs import LandmarkSpec, MonitorsSpec
from streamwatch.history.reporting.sources import ask, model_paths
from streamwatch.history.tuning.resampling import Losses, lasting_block, mean_block

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


# Whether a history supports a promise.


LONGER: Final = 5.0
"""Times the block that estimates the variance of a mean best. An alarm takes a stretch of many errors, which
shorter blocks cut in two."""
TOGETHER: Final = 1.5
"""Blocks longer than this are of losses that depend on each other."""
MOST_OUTCOMES: Final = 2_000_000_000
"""Outcomes beyond which nothing is simulated: some minutes."""


class CannotPromise(ValueError):  # noqa: N818  (it says why)
    """The history does not support the promise; the message says why."""


def check_history(losses: Losses, outcomes_per_alarm: float) -> float:
    """Mean length of blocks that a history is resampled in.

    Raises
    ------
    CannotPromise
        If the history is too short, one-sided or changing for a false alarm every so many outcomes.
    """
    n, errors = len(losses), int(losses.sum())
    if n < 1_000:
        raise CannotPromise(f"the history has {n:,} outcomes; at least 1,000 are needed")
    if min(errors, n - errors) < 50:
        which = "errors" if errors < n - errors else "hits"
        raise CannotPromise(f"the history has {min(errors, n - errors)} {which}; at least 50 are needed")
    _refuse_long(n, mean_block(losses))
    _refuse_change(losses, mean_block(losses))  # before slow swings, as a change is one, too
    alone, lasting = mean_block(losses), lasting_block(losses)
    _refuse_long(n, lasting)
    block = max(LONGER * alone if alone > TOGETHER else alone, lasting)
    if n < 100 * block:
        raise CannotPromise(
            f"losses go together, so that streams are drawn in blocks of {block:,.0f} outcomes, lest they "
            f"cut stretches of errors that alarm; {n:,} outcomes have {n / block:,.0f} of them, at least 100 "
            f"are needed"
        )
    if outcomes_per_alarm > 100 * n:
        raise CannotPromise(
            f"one alarm in {outcomes_per_alarm:,.0f} outcomes is promised from {n:,}; "
            f"at most {100 * n:,} can be, as rarer things cannot be known from it"
        )
    if outcomes_per_alarm < 1_000:
        raise CannotPromise(
            f"one alarm in {outcomes_per_alarm:,.0f} outcomes is more than detectors are made for; "
            f"promise at most one in 1,000"
        )
    if 30 * outcomes_per_alarm > MOST_OUTCOMES:
        raise CannotPromise(
            f"one alarm in {outcomes_per_alarm:,.0f} outcomes takes too long to be simulated; "
            f"promise more, or at less traffic"
        )
    return block


def _refuse_long(n: int, block: float) -> None:
    if n < 100 * block:
        raise CannotPromise(
            f"losses go together over some {block:,.0f} outcomes, so that {n:,} are worth {n / block:,.0f} "
            f"independent stretches; at least 100 are needed"
        )


def _refuse_change(losses: Losses, block: float) -> None:
    """Compare tenths of the history: the largest difference of one from the rest, corrected for all ten."""
    parts = np.array_split(losses.astype(np.float64), 10)
    length = len(losses) / 10
    mean = losses.mean()
    # the variance of a mean of losses that go together is seen in means over several blocks
    scale = max(1, min(round(5 * block), int(length // 10)))
    whole = losses[: len(losses) // scale * scale].reshape(-1, scale).mean(axis=1)
    spread = math.sqrt(float(whole.var(ddof=1)) * scale / length * 0.9)
    z = [(float(part.mean()) - mean) / spread for part in parts]
    worst = int(np.argmax(np.abs(z)))
    if 2 * 10 * stats.norm.sf(abs(z[worst])) < 0.001:
        raise CannotPromise(
            f"the history changes: its {worst + 1}. tenth has an error of {parts[worst].mean():.3f}, "
            f"all of it {mean:.3f}; give a part in which the model did not change"
        )


# A history from a daemon's past: counts by stretches of time, and when they say enough.
#
# The past has no order within a stretch, so it does for losses that do not go together, and for no others.
# Were they to go together, counts of stretches would vary more than those of independent losses. That is
# looked at first, and refused where it cannot be ruled out.


MOST_DISPERSION: Final = 1.2
"""Variance of counts over that of independent losses, which its upper limit may reach."""
LEAST_CELLS: Final = 20
"""Cells from which the variance is estimated."""
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
