"""The least strict detector that keeps a promise, and what may be promised of a history.

A history is one draw of what the model does; another month would have had another error. So streams are drawn
from histories that are themselves resampled, and the rate that is told is an interval over both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from streamwatch.core.specs import DetectorSpec
from streamwatch.lab.tuning.counting import count_alarms, delays
from streamwatch.lab.tuning.resampling import Losses, lasting_block, mean_block, resampled
from streamwatch.lab.tuning.strictness import Tuned

HISTORIES: Final = 48
"""Resampled histories whose rates are compared."""
CANDIDATES: Final = 12
"""Strictnesses tried at once; another number would be another kernel to compile."""
CONFIDENCE: Final = 0.98
"""Of the interval of a rate; its upper end keeps the promise. By resampling it comes out too narrow where
losses go together: one of 90 % holds in 60 to 80 of 100 histories (this one: docs/how-to/tune.md)."""
LONGER: Final = 5.0
"""Times the block that estimates the variance of a mean best. An alarm takes a stretch of many errors, which
shorter blocks cut in two."""
WIDER: Final = 1.75
"""Times by which both ends of an interval are moved out where losses go together: what alarms there are rare
stretches, which the blocks of one recording know less of than their spread tells. Without it one promise in
eleven was broken (docs/how-to/tune.md)."""
LOOSE_OUTCOMES: Final = 2_000_000
"""Outcomes of the first look."""
_TOGETHER: Final = 1.5
"""Blocks longer than this are of losses that depend on each other."""
MOST_OUTCOMES: Final = 2_000_000_000
"""Outcomes beyond which nothing is simulated: some minutes."""
RISES: Final = (0.02, 0.05, 0.10)
"""Drops of the accuracy whose delay is told."""
RUNS: Final = 48
MOST_AFTER: Final = 100_000
"""Outcomes after a drop that are looked at."""


class CannotPromise(ValueError):  # noqa: N818  (it says why)
    """The history does not support the promise; the message says why."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Outcomes for which a drop of the accuracy goes unseen."""

    drop: float
    median: float
    """Outcomes; inf where fewer than half were seen."""
    seen: float
    """Share seen within the outcomes looked at."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A detector that keeps the promise."""

    kind: str
    spec: DetectorSpec
    parameter: str
    value: float
    rate: float
    """False alarms per outcome expected."""
    low: float
    high: float
    """Interval of the rate, over what the history leaves open; `high` is at most what was promised."""
    simulated: int
    """Outcomes it was seen on."""
    delays: tuple[Delay, ...]


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
    block = max(LONGER * alone if alone > _TOGETHER else alone, lasting)
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


def rate_intervals(
    counts: NDArray[np.int64], length: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(rate, low, high) per outcome of each detector, from counts on streams of as many histories.

    Parameters
    ----------
    counts
        Shape (detectors, histories).
    length
        Outcomes of each stream.

    Counts vary by chance (Poisson) and from history to history; only the second, and the chance in the mean,
    are in the interval: a gamma law with the mean of the counts and the relative variance that is left. Where
    counts are too small to tell the two apart, the variance of the nearest detector with 5 a history is
    taken. Without an alarm, high is that of Poisson's law.
    """
    means = counts.mean(axis=1)
    total = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = np.maximum(0.0, (counts.var(axis=1, ddof=1) - means) / means**2)
    told = np.flatnonzero(means >= 5.0)
    if len(told):
        between[means < 5.0] = np.maximum(between[told[-1]], np.nan_to_num(between[means < 5.0]))
    low, high = np.zeros(len(means)), np.zeros(len(means))
    tail = (1.0 - CONFIDENCE) / 2.0
    for j, mean in enumerate(means):
        if total[j] == 0:
            high[j] = -math.log(tail) / counts.shape[1]
            continue
        shape = 1.0 / (between[j] + 1.0 / total[j])
        low[j], high[j] = (mean / shape) * stats.gamma.ppf([tail, 1.0 - tail], shape)
    return means / length, low / length, high / length


@dataclass(frozen=True, slots=True)
class Threshold:
    """The least strict detector that keeps a promise, of those that were tried."""

    spec: DetectorSpec
    tried: tuple[DetectorSpec, ...]
    index: int
    """Of `spec` in `tried`."""
    block: float
    """Mean length of the blocks that streams were drawn in."""
    rate: float
    """False alarms per outcome expected."""
    low: float
    high: float
    """Interval of the rate; `high` is at most what was promised."""
    simulated: int
    """Outcomes it was seen on."""


def least_strict(
    kind: str, tuned: Tuned, losses: Losses, outcomes_per_alarm: float, rng: np.random.Generator
) -> Threshold:
    """Find the least strict detector of a kind whose rate of false alarms is surely at most the promised one.

    Parameters
    ----------
    losses
        The history: 0 and 1, shape (n,), in order.
    outcomes_per_alarm
        The promise: at most one false alarm in so many outcomes on average.

    Raises
    ------
    CannotPromise
        As `check_history`; and if even the strictest alarms more often.
    """
    block = check_history(losses, outcomes_per_alarm)
    promised = 1.0 / outcomes_per_alarm
    histories = [resampled(losses, block, len(losses), rng) for _ in range(HISTORIES)]
    coarse = tuned.grid(tuned.least, tuned.most, CANDIDATES)
    counts = count_alarms(_specs(tuned, coarse), histories, block, LOOSE_OUTCOMES // HISTORIES, rng)
    rates = counts.sum(axis=1) / LOOSE_OUTCOMES
    often = np.flatnonzero(rates > max(promised, 5.0 / LOOSE_OUTCOMES))
    low = float(coarse[often[-1]] if len(often) else coarse[0])
    seldom = np.flatnonzero((rates < promised / 3.0) & (counts.sum(axis=1) == 0))
    known = promised > 20.0 / LOOSE_OUTCOMES
    high = float(coarse[seldom[0]]) if known and len(seldom) else min(4.0 * low, tuned.most)
    fine = tuned.grid(low, max(high, low * 1.01), CANDIDATES)
    length = math.ceil(max(LOOSE_OUTCOMES, 30 * outcomes_per_alarm) / HISTORIES)
    specs = _specs(tuned, fine)
    found = count_alarms(specs, histories, block, length, rng)
    rate, lower, upper = rate_intervals(found, length)
    if block > _TOGETHER:
        lower, upper = lower / WIDER, upper * WIDER
    keeps = np.flatnonzero(upper <= promised)
    if not len(keeps):
        raise CannotPromise(
            f"{kind}: even {tuned.parameter} {tuned.value(float(fine[-1])):.4g} alarms up to once in "
            f"{1.0 / upper[-1]:,.0f} outcomes"
        )
    j = int(keeps[0])
    return Threshold(
        spec=specs[j],
        tried=tuple(specs),
        index=j,
        block=block,
        rate=float(rate[j]),
        low=float(lower[j]),
        high=float(upper[j]),
        simulated=length * HISTORIES,
    )


def advise(
    kind: str, tuned: Tuned, losses: Losses, outcomes_per_alarm: float, rng: np.random.Generator
) -> Advice:
    """Find the least strict detector that keeps a promise (`least_strict`), and how late it sees drops."""
    found = least_strict(kind, tuned, losses, outcomes_per_alarm, rng)
    spec = replace(found.spec, name=tuned.base.name)
    after = int(min(MOST_AFTER, max(2_000, outcomes_per_alarm)))
    before = int(min(20_000, len(losses)))
    told: list[Delay] = []
    for rise in RISES:
        if rise < 1.0 - losses.mean():
            late = delays(found.tried, losses, found.block, rise, RUNS, before, after, rng)[found.index]
            told.append(Delay(rise, float(np.median(late)), float(np.isfinite(late).mean())))
    return Advice(
        kind=kind,
        spec=spec,
        parameter=tuned.parameter,
        value=float(getattr(spec, tuned.parameter)),
        rate=found.rate,
        low=found.low,
        high=found.high,
        simulated=found.simulated,
        delays=tuple(told),
    )


def _specs(tuned: Tuned, strictnesses: NDArray[np.float64]) -> list[DetectorSpec]:
    return [tuned.spec(float(s), f"candidate {i}") for i, s in enumerate(strictnesses)]
