"""Histories: the losses of every model in the order of evaluation, and how they are resampled.

Blocks begin anywhere in the history, have geometric lengths, and wrap around its end (Politis, Romano 1994).
"""

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
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import DAY_MS, LandmarkSpec, MonitorsSpec
from streamwatch.edge.daemon_api import Address, answer, of_models, understood

Losses = NDArray[np.int8]
MEANS: Final = 20
"""Least number of means from which their variance is estimated."""
GROWTH: Final = 1e-4
"""Probability of taking a constant variance for a growing one, at each comparison."""


def autocorrelation(losses: Losses, lags: int) -> NDArray[np.float64]:
    """Compute the autocorrelation of a history at lags 1 … `lags`, (lags,); NaN if losses are all equal."""
    centred = losses - losses.mean()
    n = len(centred)
    size = 1 << (n + lags).bit_length()
    spectrum = np.fft.rfft(centred, size)
    sums = np.fft.irfft(spectrum * spectrum.conj(), size)[: lags + 1]
    return np.full(lags, np.nan) if sums[0] <= 0.0 else sums[1:] / sums[0]


def mean_block(losses: Losses) -> float:
    """Compute the mean length of blocks, 1 … n/3 outcomes, that estimates the variance of a mean best.

    b = (2G²/D)^{1/3} n^{1/3} with D = 2g(0)², g(0) = Σ λ(k/M)R(k), G = Σ λ(k/M)|k|R(k), λ the flat-top
    window, M twice the lag after which correlations are within noise (Politis, White 2004; corrected by
    Patton, Politis, White 2009). A history of independent losses gives 1.
    """
    n = len(losses)
    run = max(5, math.ceil(math.sqrt(math.log10(n))))
    most = math.ceil(math.sqrt(n)) + run
    rho = autocorrelation(losses, min(most, n - 1))
    if np.isnan(rho).any():
        return 1.0
    noise = 2.0 * math.sqrt(math.log10(n) / n)
    quiet = np.abs(rho) < noise
    starts = np.flatnonzero(np.convolve(quiet, np.ones(run), "valid") == run)
    last = int(starts[0]) if len(starts) else int(np.flatnonzero(~quiet)[-1]) + 1
    width = min(2 * last, len(rho))
    if width == 0:
        return 1.0
    lags = np.arange(1, width + 1)
    window = np.minimum(1.0, 2.0 * (1.0 - lags / width))
    weighted = window * rho[:width]
    g0 = 1.0 + 2.0 * float(weighted.sum())
    g1 = 2.0 * float((weighted * lags).sum())
    if g0 <= 0.0 or g1 <= 0.0:
        return 1.0
    return float(np.clip((g1 / g0) ** (2.0 / 3.0) * n ** (1.0 / 3.0), 1.0, n / 3.0))


def lasting_block(losses: Losses) -> float:
    """Compute the mean length of blocks, 1 … n/3, that also preserves slow swings, such as daily cycles.

    `mean_block` tests single correlations. Those of a slow swing are each within noise, although their sum
    makes means over the swing vary. So the variance of means over s outcomes, times s, is computed for
    s = b, 2b, 4b … as long as there are 20 means. It stops growing where the dependence ends: at the least s
    after which it does not grow by the χ² law of a variance (`GROWTH` at each comparison). Blocks are four
    times as long, so that they cut at most every fourth swing. If it never grows, the result is that of
    `mean_block`.
    """
    n = len(losses)
    block = mean_block(losses)
    scales = [math.ceil(block)]
    while n // (2 * scales[-1]) >= MEANS:
        scales.append(2 * scales[-1])
    variances = [_variance_of_sums(losses, scale) for scale in scales]
    reached = 0
    for later in range(1, len(scales)):
        means = n // scales[later]
        surely = stats.chi2.ppf(1.0 - GROWTH, means - 1) / (means - 1)
        while reached < later and variances[later] > surely * variances[reached]:
            reached += 1
    return min(4.0 * scales[reached], n / 3.0) if reached else block


def _variance_of_sums(losses: Losses, scale: int) -> float:
    """Variance of sums over `scale` outcomes, per outcome; 0 with fewer than two sums."""
    whole = losses[: len(losses) // scale * scale].reshape(-1, scale).sum(axis=1, dtype=np.int64)
    return float(whole.var(ddof=1)) / scale if len(whole) > 1 else 0.0


def resampled(losses: Losses, block: float, length: int, rng: np.random.Generator) -> Losses:
    """Resample a history in blocks of mean length `block`; shape (length,)."""
    n = len(losses)
    if block <= 1.0:
        return losses[rng.integers(0, n, length)]
    begins = rng.random(length) < 1.0 / block
    begins[0] = True
    since = np.arange(length)
    first = np.maximum.accumulate(np.where(begins, since, 0))
    started = np.zeros(length, np.int64)
    started[begins] = rng.integers(0, n, int(begins.sum()))
    return losses[(started[first] + since - first) % n]


# Histories: the losses of every model in the order of evaluation, with their event times.


@dataclass(frozen=True, slots=True)
class History:
    """Losses of one model."""

    losses: Losses
    """0 and 1, shape (n,)."""
    event_ms: NDArray[np.int64]
    """Event times in milliseconds, shape (n,); all equal if the recording has none."""

    def between(self, since_ms: int | None, until_ms: int | None) -> History:
        """Return the outcomes from `since_ms` to before `until_ms`; None: no limit."""
        kept = np.ones(len(self.losses), np.bool_)
        if since_ms is not None:
            kept &= self.event_ms >= since_ms
        if until_ms is not None:
            kept &= self.event_ms < until_ms
        return History(self.losses[kept], self.event_ms[kept])

    @property
    def outcomes_per_day(self) -> float | None:
        """Outcomes per day from the first event time to the last; None if these are equal."""
        span = int(np.ptp(self.event_ms)) if len(self.event_ms) else 0
        return len(self.losses) / (span / DAY_MS) if span else None


@dataclass(frozen=True, slots=True)
class Unfit:
    """Past of one model from which no history can be built, and the reason."""

    outcomes: int
    error: float
    """Mean loss; NaN without outcomes."""
    why: str


def outcomes_only(monitors: MonitorsSpec) -> MonitorsSpec:
    """Build a specification with hardly any estimators, for a replay of which only outcomes are used."""
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


_YEAR_2000_MS: Final = 946_684_800_000


class Histories:
    """Collects the losses of all models during a replay."""

    def __init__(self) -> None:
        self._losses: defaultdict[str, list[bool]] = defaultdict(list)
        self._times: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Add outcomes, in the order of evaluation."""
        for outcome in outcomes:
            self._losses[outcome.model].append(outcome.true_class != outcome.predicted_class)
            self._times[outcome.model].append(outcome.event_ms)

    def of_models(self) -> dict[str, History]:
        """Return the history of each model so far.

        A model whose times are all before 2000 has none: a recording without times counts its lines as
        milliseconds of 1970.
        """
        found: dict[str, History] = {}
        for model, losses in self._losses.items():
            times = np.array(self._times[model], np.int64)
            if times.max() < _YEAR_2000_MS:
                times[:] = 0
            found[model] = History(np.array(losses, np.int8), times)
        return found


# Whether a history supports a promise.


LONGER: Final = 5.0
"""Length of blocks of dependent losses, in blocks that estimate the variance of a mean best.

Shorter blocks cut the long runs of errors that raise alarms.
"""
TOGETHER: Final = 1.5
"""Mean length of blocks above which losses count as dependent."""


class CannotPromise(ValueError):  # noqa: N818  (it says why)
    """Promise that a history does not support; the message says why."""


def check_history(losses: Losses, outcomes_per_alarm: float) -> float:
    """Compute the mean length of the blocks in which a history is resampled.

    Raises
    ------
    CannotPromise
        If the history is too short, has too few errors or hits, or changes, or if `outcomes_per_alarm` is
        out of the range that it supports.
    """
    n, errors = len(losses), int(losses.sum())
    if n < 1_000:
        raise CannotPromise(f"the history has {n:,} outcomes; at least 1,000 are needed")
    if min(errors, n - errors) < 50:
        which = "errors" if errors < n - errors else "hits"
        raise CannotPromise(f"the history has {min(errors, n - errors)} {which}; at least 50 are needed")
    _refuse_long(n, mean_block(losses))
    _refuse_change(losses, mean_block(losses))  # before `lasting_block`, as a change looks slow
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
    return block


def _refuse_long(n: int, block: float) -> None:
    if n < 100 * block:
        raise CannotPromise(
            f"losses go together over some {block:,.0f} outcomes, so that {n:,} are worth {n / block:,.0f} "
            f"independent stretches; at least 100 are needed"
        )


def _refuse_change(losses: Losses, block: float) -> None:
    """Raise CannotPromise if a tenth of the history differs from the rest (p < .001 over all ten)."""
    parts = np.array_split(losses.astype(np.float64), 10)
    length = len(losses) / 10
    mean = losses.mean()
    # The variance of a mean of dependent losses is estimated from means over several blocks.
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


# A history from a daemon's past, which has counts by stretches of time.
#
# The past has no order within a stretch, so it suffices for independent losses only. If losses depended on
# one another, counts of stretches would vary more. Where that cannot be ruled out, the past is refused.


MOST_DISPERSION: Final = 1.2
"""Largest upper limit of the variance of counts, relative to that of independent losses."""
LEAST_CELLS: Final = 20
"""Least number of cells from which the variance is estimated."""
_EXPECTED: Final = 5.0
"""Expected number of errors, and of hits, of a cell, for the χ² law of its count."""
_INSTEAD: Final = "tune from recorded outcomes"


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one model by stretches of time, oldest first; arrays have shape (n,)."""

    start_s: NDArray[np.int64]
    """Start of each stretch, in seconds since the epoch."""
    seconds: NDArray[np.int64]
    """Length of each stretch."""
    outcomes: NDArray[np.int64]
    errors: NDArray[np.int64]
    in_folds: bool
    """Whether outcomes of several folds are counted together."""

    def between(self, since_ms: int | None, until_ms: int | None) -> Counts:
        """Return the stretches that are wholly between two times; None: no limit."""
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
    """Convert stretches that do not overlap, in order of time."""
    outcomes = stretches["outcomes"].astype(np.int64)
    return Counts(
        stretches["start_s"].astype(np.int64),
        stretches["seconds"].astype(np.int64),
        outcomes,
        outcomes - stretches["right"],
        in_folds,
    )


def counts_of_daemon(address: Address) -> dict[str, Counts]:
    """Get the past of all models from a running daemon, by model.

    Raises
    ------
    DaemonUnreachable
        If no daemon answers there.
    """
    with understood(address):
        models = sorted(answer(address, "/api/v1/models")["models"])
        return {model: _counts(past) for model, past in of_models(address, models, "/past").items()}


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
    """Build a history from the past of every model, or a reason against it; equal seeds, equal histories."""
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
    """Build losses with these counts, in random order within each stretch, at times evenly spread over it.

    Raises
    ------
    CannotPromise
        If there are no counts, if they are of several folds, or if losses may depend on one another.
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
    """Raise CannotPromise if counts may vary more than with independent losses (Pearson's χ² over cells)."""
    total, errors = int(counts.outcomes.sum()), int(counts.errors.sum())
    rarer = min(errors, total - errors)
    if not rarer:
        return  # `check_history` refuses it
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
