"""The least strict detector that keeps a promise.

A history is one draw of what the model does; another month would have had another error. So streams are drawn
from histories that are themselves resampled, and the rate that is told is an interval over both.

The streams by which a threshold is chosen make it look better than it is: of several thresholds the first is
taken on which there happened to be few alarms (the winner's curse). So the rate that is told is that on other
streams, of other resampled histories.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.specs import DetectorSpec
from streamwatch.lab.tuning.counting import count_alarms, delays
from streamwatch.lab.tuning.rates import rate_intervals
from streamwatch.lab.tuning.resampling import Losses, resampled
from streamwatch.lab.tuning.strictness import Tuned
from streamwatch.lab.tuning.suitability import TOGETHER, CannotPromise, check_history

HISTORIES: Final = 48
"""Resampled histories whose rates are compared."""
CANDIDATES: Final = 12
"""Strictnesses tried at once; another number would be another kernel to compile."""
WIDER: Final = 1.75
"""Times by which both ends of an interval are moved out where losses go together: what alarms there are rare
stretches, which the blocks of one recording know less of than their spread tells. Without it one promise in
eleven was broken (docs/how-to/tune.md)."""
LOOSE_OUTCOMES: Final = 2_000_000
"""Outcomes of the first look."""
GAPS: Final = 2
"""Outcomes of a stream whose alarms count, and as many before, in promised outcomes per alarm. After its
start and after an alarm, `ewma` alarms less for a while, which takes more of a short stream than of the time
between alarms: it alarmed 1.4 times as often on long streams as from the start of streams of .8 such gaps."""
RISES: Final = (0.02, 0.05, 0.10)
"""Drops of the accuracy whose delay is told."""
RUNS: Final = 48
MOST_AFTER: Final = 100_000
"""Outcomes after a drop that are looked at."""


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
    length = math.ceil(max(LOOSE_OUTCOMES / HISTORIES, GAPS * outcomes_per_alarm))
    specs = _specs(tuned, fine)
    _, _, surely = _rates(specs, histories, block, length, rng)
    others = [resampled(losses, block, len(losses), rng) for _ in range(HISTORIES)]
    rate, lower, upper = _rates(specs, others, block, length, rng)
    keeps = np.flatnonzero((surely <= promised) & (rate <= promised))
    if not len(keeps):
        raise CannotPromise(
            f"{kind}: even {tuned.parameter} {tuned.value(float(fine[-1])):.4g} alarms up to once in "
            f"{1.0 / surely[-1]:,.0f} outcomes"
        )
    j = int(keeps[0])
    return Threshold(
        spec=specs[j],
        tried=tuple(specs),
        index=j,
        block=block,
        rate=float(rate[j]),
        low=float(lower[j]),
        high=min(float(upper[j]), promised),
        simulated=length * HISTORIES,
    )


def _rates(
    specs: list[DetectorSpec],
    histories: Sequence[Losses],
    block: float,
    length: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(rate, low, high) of each detector on streams drawn from these histories, as `rate_intervals`."""
    counts = count_alarms(specs, histories, block, length, rng, before=length)
    rate, low, high = rate_intervals(counts, length)
    return (rate, low / WIDER, high * WIDER) if block > TOGETHER else (rate, low, high)


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
