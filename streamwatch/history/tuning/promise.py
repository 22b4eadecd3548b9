"""Search for the least strict detector that keeps a promised rate of false alarms.

A history is one sample of a model's losses; another month would have had another error. So streams are drawn
from histories that are themselves resampled, and the reported rate is an interval over both.

The streams by which a threshold is chosen make it look better than it is, as the first threshold with few
alarms by chance is taken (winner's curse). So the reported rate is measured on other streams, of other
resampled histories.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from streamwatch.core.estimators.detectors.cusum import CusumSpec
from streamwatch.core.estimators.detectors.ddm import DdmSpec
from streamwatch.core.estimators.detectors.ewma import EwmaSpec
from streamwatch.core.estimators.detectors.hddm_a import HddmASpec
from streamwatch.core.estimators.detectors.hddm_w import HddmWSpec
from streamwatch.core.estimators.detectors.kswin import KswinSpec
from streamwatch.core.estimators.detectors.stepd import StepdSpec
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import AdwinDriftSpec, DetectorSpec, MonitorsSpec, PageHinkleySpec
from streamwatch.history.tuning.history import TOGETHER, CannotPromise, Losses, check_history, resampled

# Rates of false alarms with intervals, from counts on resampled histories.


CONFIDENCE: Final = 0.98
"""Confidence of the interval of a rate, whose upper end keeps the promise.

Resampling makes intervals too narrow if losses depend on one another: one of 90 % holds in 60 to 80 of 100
histories (for this one see docs/evidence/tuning.md).
"""


def rate_intervals(
    counts: NDArray[np.int64], length: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Compute (rate, low, high) of false alarms per outcome of each detector, each of shape (detectors,).

    Counts vary by chance (Poisson) and between histories. The interval covers the variance between histories
    and the chance in the mean: it is of a gamma law with the mean of the counts and this relative variance.
    For detectors with fewer than 5 alarms per history, the variance between histories is at least that of
    the last detector with more. Without an alarm, `high` is that of Poisson's law.

    Parameters
    ----------
    counts
        Alarms on one stream per history, shape (detectors, histories), from lax to strict detectors.
    length
        Outcomes of each stream.
    """
    means = counts.mean(axis=1)
    total = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = np.maximum(0.0, (counts.var(axis=1, ddof=1) - means) / means**2)
    known = np.flatnonzero(means >= 5.0)
    if len(known):
        between[means < 5.0] = np.maximum(between[known[-1]], np.nan_to_num(between[means < 5.0]))
    low, high = np.zeros(len(means)), np.zeros(len(means))
    tail = (1.0 - CONFIDENCE) / 2.0
    for j, mean in enumerate(means):
        if total[j] == 0:
            high[j] = -math.log(tail) / counts.shape[1]
            continue
        shape = 1.0 / (between[j] + 1.0 / total[j])
        low[j], high[j] = (mean / shape) * stats.gamma.ppf([tail, 1.0 - tail], shape)
    return means / length, low / length, high / length


# Parameter of each detector that is tuned, as a function of a strictness.


def _confidence(strictness: float) -> float:
    return math.exp(-strictness)


def _same(strictness: float) -> float:
    return strictness


@dataclass(frozen=True, slots=True)
class Tuned:
    """Kind of detector, and its parameter that is tuned."""

    base: DetectorSpec
    parameter: str
    least: float
    """Least strictness that is tried; a higher strictness raises fewer alarms."""
    most: float
    """Greatest strictness that is tried."""
    value: Callable[[float], float] = _same
    """Function from strictness to the parameter."""

    def spec(self, strictness: float, name: str | None = None) -> DetectorSpec:
        """Build the detector of this strictness."""
        base: Any = self.base
        changed = {self.parameter: float(f"{self.value(strictness):.4g}")}
        warning = f"warning_{self.parameter.removeprefix('alarm_')}"
        if hasattr(base, warning):  # a warning must precede the alarm
            changed[warning] = float(f"{self.value(strictness * 2 / 3):.4g}")
        return replace(base, name=name or base.name, **changed)

    def grid(self, low: float, high: float, number: int) -> NDArray[np.float64]:
        """Return strictnesses from `low` to `high` at equal ratios, shape (number,)."""
        return np.geomspace(low, high, number)


TUNED: Final = {
    "page_hinkley": Tuned(PageHinkleySpec(), "threshold", 3.0, 3_000.0),
    "adwin": Tuned(AdwinDriftSpec(), "delta", 1.0, 120.0, _confidence),
    "ddm": Tuned(DdmSpec(), "alarm_level", 2.0, 40.0),
    "cusum": Tuned(CusumSpec(), "threshold", 3.0, 3_000.0),
    "hddm_a": Tuned(HddmASpec(), "delta", 1.0, 300.0, _confidence),
    "hddm_w": Tuned(HddmWSpec(), "delta", 1.0, 300.0, _confidence),
    "ewma": Tuned(EwmaSpec(), "alarm_level", 1.5, 40.0),
    "stepd": Tuned(StepdSpec(), "significance", 2.0, 300.0, _confidence),
    "kswin": Tuned(KswinSpec(), "significance", 2.0, 60.0, _confidence),
}
"""Tuned parameters by kind of detector, as named in settings."""


# Alarms of several detectors on streams like a history, and their delays after a rise of its error.


CHUNK = 1 << 20
"""Number of outcomes that are drawn and evaluated at once."""


def table_of(detectors: Sequence[DetectorSpec], models: int) -> ModelTable:
    """Build a table of models with two classes that has only these detectors."""
    table = ModelTable(
        MonitorsSpec(
            (), tuple(detectors), (), max_models=models, max_classes=2, shadow_max_classes=0, opponents=()
        )
    )
    for _ in range(models):
        table.add_model()
    return table


def count_alarms(
    detectors: Sequence[DetectorSpec],
    histories: Sequence[Losses],
    block: float,
    length: int,
    rng: np.random.Generator,
    before: int = 0,
) -> NDArray[np.int64]:
    """Count alarms on one stream per history, shape (detectors, histories).

    A stream has `before` outcomes whose alarms are not counted, then `length` whose alarms are.
    """
    table = table_of(detectors, len(histories))
    counts = np.zeros((len(detectors), len(histories)), np.int64)
    for row, history in enumerate(histories):
        for start in range(0, before + length, CHUNK):
            part = resampled(history, block, min(CHUNK, before + length - start), rng).astype(np.int32)
            rows = np.full(len(part), row, np.int32)
            for alarm in table.fold(rows, np.zeros_like(part), part):
                counts[alarm.detector, row] += alarm.outcome > before
    return counts


def worsened(losses: Losses, rise: float, rng: np.random.Generator) -> Losses:
    """Raise the error of losses by `rise`, by turning hits into errors independently."""
    hits = 1.0 - losses.mean()
    return np.where((losses == 0) & (rng.random(losses.shape) < rise / hits), 1, losses).astype(np.int8)


def delays(  # noqa: PLR0913, PLR0917  (an experiment is described by as many)
    detectors: Sequence[DetectorSpec],
    losses: Losses,
    block: float,
    rise: float,
    runs: int,
    before: int,
    after: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Measure outcomes from a rise of the error to the first alarm after it, shape (detectors, runs).

    inf without an alarm within `after` outcomes. Each run has `before` outcomes before the rise, whose alarms
    are not counted.
    """
    table = table_of(detectors, runs)
    found = np.full((len(detectors), runs), np.inf)
    for row in range(runs):
        calm = resampled(losses, block, before, rng)
        risen = worsened(resampled(losses, block, after, rng), rise, rng)
        stream = np.concatenate([calm, risen]).astype(np.int32)
        rows = np.full(len(stream), row, np.int32)
        for alarm in table.fold(rows, np.zeros_like(stream), stream):
            late = alarm.outcome - before
            if late > 0:
                found[alarm.detector, row] = min(found[alarm.detector, row], late)
    return found


HISTORIES: Final = 48
"""Number of resampled histories."""
CANDIDATES: Final = 12
"""Number of strictnesses tried at once; each other number would need another compiled kernel."""
WIDER: Final = 1.75
"""Factor by which both ends of an interval are widened if losses depend on one another.

Alarms then fall into rare stretches, which vary more than the blocks of one recording show. Without it one
promise in eleven was broken.
"""
LOOSE_OUTCOMES: Final = 2_000_000
"""Outcomes of the first, coarse search, over all histories."""
GAPS: Final = 2
"""Length of the counted part of a stream, and of the part before it, in promised outcomes per alarm.

After its start and after an alarm, `ewma` alarms less for a while, which matters more on short streams: it
alarmed 1.4 times as often on long streams as from the start of streams of .8 such lengths.
"""
SEARCHES: Final = 2
"""Number of times that fine strictnesses are simulated: for the choice, and for the rate that is printed."""
MOST_OUTCOMES: Final = 20_000_000_000
"""Most outcomes that are simulated for one kind on one history, which takes two hours or so."""
RISES: Final = (0.02, 0.05, 0.10)
"""Drops of the accuracy for which delays are reported."""
RUNS: Final = 48
MOST_AFTER: Final = 100_000
"""Most outcomes after a drop in which an alarm is waited for."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Delay until a drop of the accuracy is found."""

    drop: float
    median: float
    """Median delay in outcomes; inf if fewer than half of the drops were found."""
    seen: float
    """Share of drops that were found."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Detector that keeps the promise, with its rate of false alarms and its delays."""

    kind: str
    spec: DetectorSpec
    parameter: str
    value: float
    low: float
    high: float
    """Upper end of the interval (`low`, `high`) of false alarms per outcome; at most the promise.

    `low` is 0 if there was none. The rate itself is not given: if losses depend on one another, the one
    computed from a single history is too low.
    """
    simulated: int
    """Number of outcomes on which the interval was measured."""
    delays: tuple[Delay, ...]


@dataclass(frozen=True, slots=True)
class Threshold:
    """Least strict detector that keeps a promise, among those tried."""

    spec: DetectorSpec
    tried: tuple[DetectorSpec, ...]
    index: int
    """Index of `spec` in `tried`."""
    block: float
    """Mean length of the blocks in which streams were drawn."""
    rate: float
    """False alarms per outcome on streams drawn from the history.

    It is too low if losses depend on one another, as resampling in blocks loses the longest runs of errors;
    so only the interval is reported.
    """
    low: float
    high: float
    """Upper end of the interval (`low`, `high`) of the rate; at most the promise."""
    simulated: int
    """Number of outcomes on which the interval was measured."""


def _length(outcomes_per_alarm: float) -> int:
    """Return the length of the counted part of a stream, which is also that of the part before it."""
    return math.ceil(max(LOOSE_OUTCOMES / HISTORIES, GAPS * outcomes_per_alarm))


def simulated_outcomes(outcomes_per_alarm: float) -> int:
    """Compute the number of outcomes that `least_strict` simulates for a promise."""
    coarse = LOOSE_OUTCOMES // HISTORIES * HISTORIES
    return coarse + SEARCHES * HISTORIES * 2 * _length(outcomes_per_alarm)


def least_strict(
    kind: str, tuned: Tuned, losses: Losses, outcomes_per_alarm: float, rng: np.random.Generator
) -> Threshold:
    """Find the least strict detector of a kind whose interval of false alarms is at most the promised rate.

    Parameters
    ----------
    kind, tuned
        Name of the kind, and the parameter that is tuned.
    losses
        Losses of the history, 0 and 1, shape (n,), in order.
    outcomes_per_alarm
        Promised mean number of outcomes per false alarm, or more.
    rng
        Generator of the resampled histories.

    Raises
    ------
    CannotPromise
        As `check_history`; if the simulation would take too long; and if even the strictest detector alarms
        more often.
    """
    block = check_history(losses, outcomes_per_alarm)
    if (needed := simulated_outcomes(outcomes_per_alarm)) > MOST_OUTCOMES:
        raise CannotPromise(
            f"one alarm in {outcomes_per_alarm:,.0f} outcomes takes {needed:,} simulated ones, at most "
            f"{MOST_OUTCOMES:,} are possible; promise more alarms, or at less traffic"
        )
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
    length = _length(outcomes_per_alarm)
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
    """Compute `rate_intervals` on streams drawn from these histories, widened if losses are dependent."""
    counts = count_alarms(specs, histories, block, length, rng, before=length)
    rate, low, high = rate_intervals(counts, length)
    return (rate, low / WIDER, high * WIDER) if block > TOGETHER else (rate, low, high)


def advise(
    kind: str, tuned: Tuned, losses: Losses, outcomes_per_alarm: float, rng: np.random.Generator
) -> Advice:
    """Find the least strict detector that keeps a promise (`least_strict`), and measure its delays."""
    found = least_strict(kind, tuned, losses, outcomes_per_alarm, rng)
    spec = replace(found.spec, name=tuned.base.name)
    after = int(min(MOST_AFTER, max(2_000, outcomes_per_alarm)))
    before = int(min(20_000, len(losses)))
    by_rise: list[Delay] = []
    for rise in RISES:
        if rise < 1.0 - losses.mean():
            late = delays(found.tried, losses, found.block, rise, RUNS, before, after, rng)[found.index]
            by_rise.append(Delay(rise, float(np.median(late)), float(np.isfinite(late).mean())))
    return Advice(
        kind=kind,
        spec=spec,
        parameter=tuned.parameter,
        value=float(getattr(spec, tuned.parameter)),
        low=found.low,
        high=found.high,
        simulated=found.simulated,
        delays=tuple(by_rise),
    )


def _specs(tuned: Tuned, strictnesses: NDArray[np.float64]) -> list[DetectorSpec]:
    return [tuned.spec(float(s), f"candidate {i}") for i, s in enumerate(strictnesses)]
