"""Detectors that are compared, each at several strictnesses: the daemon's, river's, MOA's, one by betting."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from streamwatch.core.specs import DetectorSpec
from streamwatch.history.tuning.promise import TUNED
from streamwatch.papers.benchmark.edetector import Betting, candidate
from streamwatch.papers.detection.candidates import Alarms, Candidate, Together, defaults, own_alarms
from streamwatch.papers.detection.peers import moa_detectors, river_detector, river_detectors, river_kinds
from streamwatch.papers.detection.streams import Losses
from streamwatch.papers.result import Floats

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
