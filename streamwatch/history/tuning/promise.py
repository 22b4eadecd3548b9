"""The least strict detector that keeps a promise.

A history is one draw of what the model does; another month would have had another error. So streams are drawn
from histories that are themselves resampled, and the rate that is reported is an interval over both.

The streams by which a threshold is chosen make it look better than it is: of several thresholds the first is
taken on which there happened to be few alarms (the winner's curse). So the rate that is reported is that on
other streams, of other resampled histories.
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
from streamwatch.history.tuning.history import TOGETHER, CannotPromise, check_history
from streamwatch.history.tuning.resampling import Losses, resampled

# Rates of false alarms with intervals, from counts on resampled histories.


CONFIDENCE: Final = 0.98
"""Of the interval of a rate; its upper end keeps the promise. By resampling it comes out too narrow where
losses go together: one of 90 % holds in 60 to 80 of 100 histories (this one: docs/how-to/tune.md)."""


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
    counts are too small to distinguish the two, the variance of the nearest detector with 5 a history is
    taken. Without an alarm, high is that of Poisson's law.
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


# Parameters that are tuned: one of every detector, by how strict it is.


def _confidence(strictness: float) -> float:
    return math.exp(-strictness)


def _same(strictness: float) -> float:
    return strictness


@dataclass(frozen=True, slots=True)
class Tuned:
    """A detector and the parameter of it that decides how often it alarms."""

    base: DetectorSpec
    parameter: str
    least: float
    """Strictness from which on one looks: more strictness, fewer alarms."""
    most: float
    value: Callable[[float], float] = _same
    """Strictness → parameter."""

    def spec(self, strictness: float, name: str | None = None) -> DetectorSpec:
        """The detector that is so strict."""
        base: Any = self.base
        changed = {self.parameter: float(f"{self.value(strictness):.4g}")}
        if hasattr(base, f"warning_{self.parameter}"):  # a warning comes before its alarm
            changed[f"warning_{self.parameter}"] = float(f"{self.value(strictness * 2 / 3):.4g}")
        return replace(base, name=name or base.name, **changed)

    def grid(self, low: float, high: float, number: int) -> NDArray[np.float64]:
        """Strictnesses at equal ratios."""
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
"""By the name of the kind in settings."""


# Alarms of several detectors on streams like a history, and delays after its error rose.


CHUNK = 1 << 20
"""Outcomes that are drawn and evaluated at once."""


def table_of(detectors: Sequence[DetectorSpec], models: int) -> ModelTable:
    """Models of two classes that these detectors watch, and nothing else."""
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
    """Count alarms on one stream like each history; shape (detectors, histories).

    A stream has `before` outcomes whose alarms do not count, and `length` whose alarms do.
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
    """Losses whose error is higher by `rise`: of the hits so many turn into errors, each by itself."""
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
    """Outcomes from a rise of the error to the first alarm after it; shape (detectors, runs).

    inf where none came within `after` outcomes. Detectors have seen `before` outcomes without a change, and
    alarms among those do not count.
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
"""Resampled histories whose rates are compared."""
CANDIDATES: Final = 12
"""Strictnesses tried at once; another number would be another kernel to compile."""
WIDER: Final = 1.75
"""Times by which both ends of an interval are moved out where losses go together: the few alarms
fall into rare stretches, which vary more than the blocks of one recording show. Without it one promise in
eleven was broken (docs/how-to/tune.md)."""
LOOSE_OUTCOMES: Final = 2_000_000
"""Outcomes of the first look."""
GAPS: Final = 2
"""Outcomes of a stream whose alarms count, and as many before, in promised outcomes per alarm. After its
start and after an alarm, `ewma` alarms less for a while, which takes more of a short stream than of the time
between alarms: it alarmed 1.4 times as often on long streams as from the start of streams of .8 such gaps."""
RISES: Final = (0.02, 0.05, 0.10)
"""Drops of the accuracy whose delay is reported."""
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
    low: float
    high: float
    """Interval of false alarms per outcome, over what the history leaves open.

    `low` is 0 if none was seen; `high` is at most what was promised. There is no expectation beside it: where
    losses go together, one computed from a single history is too low.
    """
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
    """False alarms per outcome on streams drawn from the history, which is too low where losses go together:
    resampling in blocks loses the longest stretches of errors. Only the interval is reported."""
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
