"""Detectors that are compared, each at several strictnesses, and controls that see no loss.

A metric by which one of the first four controls is good is a poor measure of a detector (river, pull 1963: an
alarm at every hundredth outcome has an F1 of .40 on streams that drift every 400).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.special import gammaln

from streamwatch.core.specs import DetectorSpec
from streamwatch.history.tuning.promise import TUNED
from streamwatch.papers.detection.candidates import Alarms, Candidate, Together, defaults, own_alarms
from streamwatch.papers.detection.peers import moa_detectors, river_detector, river_detectors, river_kinds
from streamwatch.papers.detection.streams import Losses
from streamwatch.papers.result import Floats

EVERY: int = 1_000
"""Outcomes between the alarms of the control that fires at equal distances."""
LATE: int = 100
"""Delay of the oracle in outcomes."""


@dataclass(frozen=True, slots=True)
class Control:
    """Detector that ignores losses."""

    name: str
    alarms: Callable[[int, Sequence[tuple[int, int]], np.random.Generator], list[int]]
    """Number of outcomes, drifts as (start, end), generator → outcomes (1-based) of alarms, ascending."""


def every(n: int) -> Control:
    """Build the control that alarms at every n-th outcome."""
    name = "at every outcome" if n == 1 else f"every {n:,} outcomes"
    return Control(name, lambda outcomes, _drifts, _rng: list(range(n, outcomes + 1, n)))


def at_random(rate: float) -> Control:
    """Build the control that alarms at each outcome with probability `rate`."""

    def alarms(outcomes: int, _drifts: Sequence[tuple[int, int]], rng: np.random.Generator) -> list[int]:
        return [int(at) + 1 for at in np.flatnonzero(rng.random(outcomes) < rate)]

    return Control(f"at random, 1 in {1 / rate:,.0f}", alarms)


def oracle(late: int) -> Control:
    """Build the control that alarms once for every drift, `late` outcomes after it begins."""

    def alarms(outcomes: int, drifts: Sequence[tuple[int, int]], _rng: np.random.Generator) -> list[int]:
        return [start + late for start, _ in drifts if start + late <= outcomes]

    return Control(f"oracle, {late} late", alarms)


NEVER = Control("never", lambda _outcomes, _drifts, _rng: [])
CONTROLS: tuple[Control, ...] = (NEVER, every(1), every(EVERY), at_random(1.0 / EVERY), oracle(LATE))


# Detector of a rise of the error by betting, with a stated rate of false alarms.
#
# For every outcome j since the last alarm at which the error may have risen, the losses are predicted by two
# mixtures, one up to j and one from there on (Krichevsky, Trofimov 1981: Bernoulli losses whose error has
# Jeffreys' prior), and compared with the best constant error for all of them (universal inference: Wasserman,
# Ramdas, Balakrishnan 2020):
#
#     E_j(t) = KT(l_1 … l_j) · KT(l_{j+1} … l_t) / max_p p^k (1 − p)^(t − k),  k the losses among all t
#
# If losses are independent and their error is constant, whatever it is, the mean of all E_j over the
# `within` outcomes at which it may have risen is at most a martingale that begins at 1, so by Ville's
# inequality the probability that it ever reaches 1/δ within them is at most δ. Only j after which the error
# was higher than before are counted, which makes the mean smaller. Verdicts (docs/verdicts.md) use the same
# method. It needs no tuning, and guarantees nothing if losses depend on earlier ones.


CLOCK = 32
"""Outcomes between two tests, and between two outcomes at which the error may have risen, as in ADWIN."""


@dataclass(frozen=True, slots=True)
class Betting:
    """Parameters of the detector: a false alarm within `within` outcomes has probability at most `delta`.

    It restarts without memory after an alarm, and after `within` outcomes without one.

    Raises
    ------
    ValueError
        If `delta` is not in (0, 1) or `within` is below two clocks.
    """

    delta: float = 0.05
    within: int = 100_000

    def __post_init__(self) -> None:
        if not 0.0 < self.delta < 1.0 or self.within < 2 * CLOCK:
            raise ValueError(
                f"expected delta in (0, 1) and within from {2 * CLOCK} on, got {self.delta}, {self.within}"
            )

    @property
    def name(self) -> str:
        """Name of the detector in tables."""
        return f"e-detector, {self.delta:g} in {self.within:,}"


def log_mixture(losses: Floats, hits: Floats) -> Floats:
    """Logarithm of the probability of a sequence with these numbers of losses and hits (Jeffreys' prior)."""
    return gammaln(losses + 0.5) + gammaln(hits + 0.5) - gammaln(losses + hits + 1.0) - math.log(math.pi)


def log_best(losses: float, hits: float) -> float:
    """Logarithm of the largest probability of such a sequence under a constant error."""
    total = losses + hits
    return sum(part * math.log(part / total) for part in (losses, hits) if part)


def evidence(counts: Floats, before: int = CLOCK) -> float:
    """Logarithm of the sum of E_j over the j after which the error is higher; −∞ without any.

    Parameters
    ----------
    counts
        Number of losses among the first 0, `before`, 2 · `before` … t outcomes; j are the numbers of outcomes
        between 0 and t.
    before
        Outcomes between two entries.
    """
    steps = len(counts) - 1
    j = np.arange(1, steps, dtype=np.float64)
    first, total = counts[1:-1], counts[-1]
    after = total - first
    n_first, n_after = before * j, before * (steps - j)
    higher = after * n_first > first * n_after
    if not higher.any():
        return -math.inf
    logs = log_mixture(first[higher], n_first[higher] - first[higher])
    logs += log_mixture(after[higher], n_after[higher] - after[higher])
    logs -= log_best(float(total), float(before * steps - total))
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def alarms(losses: Losses, betting: Betting) -> Alarms:
    """Return the outcomes (1-based) of the alarms of each run; `losses` is (runs, outcomes)."""
    level = math.log(betting.within / CLOCK) - math.log(betting.delta)
    found: Alarms = []
    for run in losses:
        looks = len(run) // CLOCK
        counts = np.concatenate([[0.0], run[: looks * CLOCK].reshape(looks, CLOCK).sum(axis=1).cumsum()])
        begin, those = 0, list[int]()
        for look in range(2, looks + 1):
            if look - begin < 2:
                continue
            if (look - begin) * CLOCK > betting.within:
                begin = look
            elif evidence(counts[begin : look + 1] - counts[begin]) >= level:
                those.append(look * CLOCK)
                begin = look
        found.append(those)
    return found


def candidate(betting: Betting) -> Candidate:
    """Build a candidate of the detector."""
    return Candidate(betting.name, "betting", lambda losses: alarms(losses, betting))


# Detectors that are compared, each at several strictnesses: the daemon's, river's, MOA's, one by betting.


OURS: Final = "streamwatch"
MOA_CLASSES: Final = (
    "PageHinkleyDM",
    "ADWINChangeDetector",
    "DDM",
    "EDDM",
    "RDDM",
    "CusumDM",
    "EWMAChartDM",
    "GeometricMovingAverageDM",
    "HDDM_A_Test",
    "HDDM_W_Test",
    "STEPD",
    "SEEDChangeDetector",
)
"""MOA's detectors of losses, which CapyMOA wraps."""
BUDGET: Final = 12
"""Number of strictnesses at which each detector is tried."""
VERDICTS: Final = Betting()
"""Parameters of the detector by betting: those of verdicts at their defaults."""


def own(specs: Sequence[DetectorSpec], note: str = "") -> tuple[Candidate, ...]:
    """Build candidates of the daemon's detectors, one of each kind; `note` is added to their names."""
    asked = Together(partial(own_alarms, tuple(specs)), 1)
    return tuple(
        Candidate(spec.name + note, OURS, partial(asked.alarms, index)) for index, spec in enumerate(specs)
    )


def in_both_directions() -> tuple[Candidate, ...]:
    """Build candidates of the daemon's detectors that can also find a fall of the error, set to do so."""
    specs: list[DetectorSpec] = []
    for spec in defaults():
        looks: Any = spec
        specs.append(replace(looks, direction="both") if hasattr(spec, "direction") else spec)
    made = own(specs, ", both")
    return tuple(each for each, spec in zip(made, specs, strict=True) if hasattr(spec, "direction"))


def at_defaults(moa: Path | None) -> list[Candidate]:
    """Build every detector at the defaults of its library; MOA's if `moa`, its folder, is given.

    Raises
    ------
    MoaError
        If the folder has no jar file of MOA's.
    """
    theirs = () if moa is None else moa_detectors(moa, MOA_CLASSES)
    return [*own(defaults()), candidate(VERDICTS), *river_detectors(), *theirs]


# Strictness of detectors: one parameter of each, over a range from far too lax to far too strict.


def _grid(low: float, high: float) -> Floats:
    return np.geomspace(low, high, BUDGET)


_GRIDS: Final[dict[str, Floats]] = {
    "page_hinkley": _grid(20.0, 400.0),
    "adwin": _grid(3.0, 150.0),
    "ddm": _grid(2.5, 15.0),
    "cusum": _grid(20.0, 400.0),
    "hddm_a": _grid(5.0, 250.0),
    "hddm_w": _grid(5.0, 250.0),
    "ewma": _grid(2.5, 12.0),
    "stepd": _grid(5.0, 150.0),
    "kswin": _grid(5.0, 60.0),
}
"""Strictnesses of the daemon's detectors, on the scale of `streamwatch tune` (`history.tuning.promise`)."""
_CONFIDENCES: Final = [math.exp(-s) for s in _grid(3.0, 250.0)]
_SUMS: Final = [float(s) for s in _grid(20.0, 400.0)]
_SIGMAS: Final = [float(s) for s in _grid(2.5, 15.0)]
_LEVELS: Final = [float(s) for s in _grid(2.0, 4.0)]
"""Alarm levels of MOA's DDM and RDDM, which accept at most 4."""
_RIVER: Final[dict[str, tuple[str, Sequence[float]]]] = {
    "PageHinkley": ("threshold", _SUMS),
    "ADWIN": ("delta", _CONFIDENCES),
    "DDM": ("drift_threshold", _SIGMAS),
    "EDDM": ("beta", [float(b) for b in np.linspace(0.9, 0.3, BUDGET)]),
    "HDDMA": ("drift_confidence", _CONFIDENCES),
    "HDDMW": ("drift_confidence", _CONFIDENCES),
    "FHDDM": ("confidence_level", _CONFIDENCES),
}
_MOA: Final[dict[str, Callable[[int], str]]] = {
    "PageHinkleyDM": lambda k: f"l={_SUMS[k]:.5g}",
    "ADWINChangeDetector": lambda k: f"a={_CONFIDENCES[k]!r}",
    "DDM": lambda k: f"o={_LEVELS[k]:.5g}",
    "RDDM": lambda k: f"o={_LEVELS[k]:.5g}",
    "CusumDM": lambda k: f"l={_SUMS[k]:.5g}",
    "HDDM_A_Test": lambda k: f"d={_CONFIDENCES[k]!r}",
    "HDDM_W_Test": lambda k: f"d={_CONFIDENCES[k]!r}",
    "STEPD": lambda k: f"o={_CONFIDENCES[k]!r}",
    "SEEDChangeDetector": lambda k: f"d={_CONFIDENCES[k]!r}",
}
"""Options of MOA's detectors by number of the strictness; EDDM, EWMAChartDM and GeometricMovingAverageDM are
left out."""


def _rung(name: str, number: int) -> DetectorSpec:
    return TUNED[name].spec(float(_GRIDS[name][number]))


@dataclass(frozen=True, slots=True)
class Ladder:
    """Detector at `BUDGET` strictnesses."""

    name: str
    library: str
    rungs: tuple[Callable[[Losses], Alarms], ...]
    """Function from losses to alarms for each strictness, from lax to strict."""


def at_rungs(moa: Path | None, rungs: Mapping[tuple[str, str], int]) -> list[Candidate]:
    """Build each detector at its rung, given by (library, name); detectors without one are left out.

    Raises
    ------
    MoaError
        If the folder has no jar file of MOA's.
    """
    specs = [_rung(spec.name, rungs.get((OURS, spec.name), 0)) for spec in defaults()]
    found = [each for each in own(specs) if (OURS, each.name) in rungs]
    for name, make in river_kinds().items():
        number = rungs.get(("river", name))
        if number is not None:
            key, values = _RIVER[name]
            found.append(river_detector(name, partial(make, **{key: values[number]})))
    names = [name for name in _MOA if ("MOA", name) in rungs]
    if moa is not None and names:
        asked = moa_detectors(moa, [f"{name}:{_MOA[name](rungs['MOA', name])}" for name in names])
        found += [Candidate(name, "MOA", each.alarms) for name, each in zip(names, asked, strict=True)]
    return found


def ladders(moa: Path | None) -> list[Ladder]:
    """Build the ladder of every detector whose strictness can be chosen.

    Raises
    ------
    MoaError
        If the folder has no jar file of MOA's.
    """
    by_number = [own([_rung(spec.name, k) for spec in defaults()]) for k in range(BUDGET)]
    found = [
        Ladder(spec.name, OURS, tuple(those[index].alarms for those in by_number))
        for index, spec in enumerate(defaults())
    ]
    for name, make in river_kinds().items():
        key, values = _RIVER[name]
        rungs = tuple(river_detector(name, partial(make, **{key: value})).alarms for value in values)
        found.append(Ladder(name, "river", rungs))
    if moa is None:
        return found
    names = list(_MOA)
    classes = [f"{name}:{_MOA[name](k)}" for name in names for k in range(BUDGET)]
    asked = moa_detectors(moa, classes)
    for index, name in enumerate(names):
        those = asked[index * BUDGET : (index + 1) * BUDGET]
        found.append(Ladder(name, "MOA", tuple(each.alarms for each in those)))
    return found
