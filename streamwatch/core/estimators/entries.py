"""Types of entries of the catalogue that have parameters, and names of the sections of a snapshot."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeAlias, get_args

import numpy as np

from streamwatch.core.specs import Dependence, DetectorSpec, Direction, DriftWeightedSpec, ForgettingSpec

Scalar: TypeAlias = float | int | str


@dataclass(frozen=True, slots=True)
class Parameter:
    """Parameter of an estimator: number in an interval (integer if `whole`), one of `choices`, or text."""

    name: str
    meaning: str
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    whole: bool = False
    choices: tuple[str, ...] = ()
    text: bool = False
    """Whether the parameter is a name, which may be empty, instead of a number or choice."""
    above: str = ""
    """Name of an earlier parameter of the same estimator that this one must be larger than; empty: none."""
    help: str = ""
    """Effect of the parameter, as users read it in the documentation."""

    @property
    def bounds(self) -> Mapping[str, float]:
        """Interval as keywords of JSON Schema."""
        ends = {
            "exclusiveMinimum" if self.open_low else "minimum": self.low,
            "exclusiveMaximum" if self.open_high else "maximum": self.high,
        }
        return {key: end for key, end in ends.items() if math.isfinite(end)}

    @property
    def expected(self) -> str:
        """Expected values in words: `in (0, 1]`, `a whole number in [1, 100]`, `one of up, down`."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.text:
            return "a text"
        left = "(" if self.open_low or math.isinf(self.low) else "["
        right = ")" if self.open_high or math.isinf(self.high) else "]"
        interval = f"in {left}{_bound(self.low)}, {_bound(self.high)}{right}"
        return f"a whole number {interval}" if self.whole else interval

    def problem(self, value: Scalar) -> str | None:
        """Describe in one line what is wrong with `value`; None if it is allowed."""
        return None if self._allows(value) else f"{self.meaning} must be {self.expected}, got {value!r}"

    def problem_beside(self, value: float, others: Mapping[str, float]) -> str | None:
        """Describe in one line why `value` does not go with the other parameters; None if it does.

        Parameters
        ----------
        others
            Values of the estimator's other parameters by name; one that is missing is not compared.
        """
        least = others.get(self.above)
        if least is None or value > least:
            return None
        return f"{self.meaning} must be larger than {self.above} ({least!r}), got {value!r}"

    def _allows(self, value: Scalar) -> bool:
        if self.choices:
            return value in self.choices
        if self.text:
            return isinstance(value, str)
        if isinstance(value, str | bool) or not math.isfinite(value):
            return False
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return above and below and not (self.whole and value != int(value))


@dataclass(frozen=True, slots=True)
class Entry:
    """Mechanism, detector or drift-weighted accuracy: name in settings, spec, formula and source."""

    name: str
    spec: type[ForgettingSpec | DetectorSpec | DriftWeightedSpec]
    help: str
    formula: str
    source: str
    cost: str
    """Time per outcome, and memory per model (K classes, W outcomes in a window)."""
    parameters: tuple[Parameter, ...] = ()
    warns: bool = False
    """Whether the detector has a warning level below its alarm level."""

    def defaults(self) -> Mapping[str, Scalar]:
        """Default values of the parameters that have one."""
        given = {f.name: f.default for f in fields(self.spec) if f.default is not MISSING}
        return {p.name: given[p.name] for p in self.parameters if p.name in given}

    def problems(self, spec: object) -> list[tuple[str, str]]:
        """List (parameter name, problem) for every parameter of `spec` that is not allowed."""
        values = {p.name: getattr(spec, p.name) for p in self.parameters}
        found = (
            (p.name, p.problem(values[p.name]) or p.problem_beside(values[p.name], values))
            for p in self.parameters
        )
        return [(name, problem) for name, problem in found if problem is not None]


def _bound(value: float) -> str:
    """Format the end of an interval the way users write it: `1`, `0.5`, `inf`."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)


def fingerprint(kind: str, spec: object, schema: np.dtype[Any] | None, version: object) -> str:
    """Name of the section of one estimator, from its kind, parameters, record schema and version."""
    described = repr((spec, schema.descr if schema is not None else None, version))
    return f"{kind}/{hashlib.blake2b(described.encode(), digest_size=8).hexdigest()}"


# Parameters that several kinds of estimators share.


LEAST_ALPHA = 0.001
"""Lowest fading factor of agreement totals.

Totals are kept in a unit that grows by 1/alpha with every outcome and has to stay finite. Lower factors would
also be pointless: at this one, an outcome already keeps only a thousandth of its weight after the next.
"""

DELTA = Parameter(
    "delta",
    "confidence",
    0.0,
    1.0,
    open_low=True,
    open_high=True,
    help="Lower values make fewer cuts and fewer alarms.",
)
DEPENDENCE = Parameter(
    "dependence",
    "dependence of losses",
    choices=get_args(Dependence),
    help="followed: the threshold grows with the measured dependence of losses on earlier losses; ignored: "
    "the published threshold, which is for independent losses.",
)
ADWIN = (
    DELTA,
    Parameter(
        "min_subwindow",
        "smallest sub-window",
        5,
        1_000_000,
        whole=True,
        help="Minimum number of outcomes on either side of a cut.",
    ),
    Parameter(
        "clock", "outcomes between checks", 1, 65_536, whole=True, help="Number of outcomes between checks."
    ),
    DEPENDENCE,
)
DIRECTION = Parameter(
    "direction",
    "direction",
    choices=get_args(Direction),
    help="Changes that raise an alarm: up (more errors), down, or both.",
)
MIN_OUTCOMES = Parameter(
    "min_outcomes",
    "least outcomes before an alarm",
    1,
    1_000_000_000,
    whole=True,
    help="Minimum number of outcomes since the start or the last alarm before it can alarm.",
)
NEWEST_WEIGHT = Parameter(
    "weight",
    "weight of the newest loss (λ)",
    0.0,
    1.0,
    open_low=True,
    help="1 minus the fading factor of the mean. Smaller values remember longer and react later.",
)
ALARM_CONFIDENCE = Parameter(
    "delta",
    "confidence",
    0.0,
    1.0,
    open_low=True,
    open_high=True,
    help="Lower values make fewer alarms.",
)
WARNING_CONFIDENCE = Parameter(
    "warning_delta",
    "confidence of a warning",
    0.0,
    1.0,
    open_low=True,
    open_high=True,
    above="delta",
    help="Confidence for warnings; must be larger than delta.",
)
ALARM_SIGNIFICANCE = Parameter(
    "significance",
    "significance (α)",
    0.0,
    1.0,
    open_low=True,
    open_high=True,
    help="Significance level of the test at every outcome. Lower values make fewer alarms.",
)
WARNING_SIGNIFICANCE = Parameter(
    "warning_significance",
    "significance of a warning",
    0.0,
    1.0,
    open_low=True,
    open_high=True,
    above="significance",
    help="Significance level for warnings; must be larger than significance.",
)
