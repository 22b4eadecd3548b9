"""Parameters that are tuned: one of every detector, by how strict it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors.cusum import CusumSpec
from streamwatch.core.estimators.detectors.ddm import DdmSpec
from streamwatch.core.estimators.detectors.ewma import EwmaSpec
from streamwatch.core.estimators.detectors.hddm_a import HddmASpec
from streamwatch.core.estimators.detectors.hddm_w import HddmWSpec
from streamwatch.core.estimators.detectors.kswin import KswinSpec
from streamwatch.core.estimators.detectors.stepd import StepdSpec
from streamwatch.core.specs import AdwinDriftSpec, DetectorSpec, PageHinkleySpec


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
