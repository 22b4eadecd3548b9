"""What a line of the catalogue holds: a parameter, a mechanism or detector, a measure or bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TypeAlias

from streamwatch.core.estimators.agreement import Floats, Totals
from streamwatch.core.specs import DetectorSpec, DriftWeightedSpec, ForgettingSpec

Scalar: TypeAlias = float | int | str


@dataclass(frozen=True, slots=True)
class Parameter:
    """One choice an operator has: an interval of numbers, whole ones if `whole`, or one of `choices`."""

    name: str
    meaning: str
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    whole: bool = False
    choices: tuple[str, ...] = ()
    text: bool = False
    """A name, which may be empty, instead."""
    help: str = ""
    """What it does, for those who have to choose."""

    @property
    def bounds(self) -> Mapping[str, float]:
        """The interval in the words of JSON Schema."""
        ends = {
            "exclusiveMinimum" if self.open_low else "minimum": self.low,
            "exclusiveMaximum" if self.open_high else "maximum": self.high,
        }
        return {key: end for key, end in ends.items() if math.isfinite(end)}

    @property
    def expected(self) -> str:
        """Expected value, in words: `in (0, 1]`, `a whole number in [1, 100]`, `one of up, down`."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.text:
            return "a text"
        left = "(" if self.open_low or math.isinf(self.low) else "["
        right = ")" if self.open_high or math.isinf(self.high) else "]"
        interval = f"in {left}{_bound(self.low)}, {_bound(self.high)}{right}"
        return f"a whole number {interval}" if self.whole else interval

    def problem(self, value: Scalar) -> str | None:
        """Describe what is wrong with a value, as one line, or None."""
        return None if self._allows(value) else f"{self.meaning} must be {self.expected}, got {value!r}"

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
    """A mechanism, detector or weighting: the name used in settings, its spec, and where it comes from."""

    name: str
    spec: type[ForgettingSpec | DetectorSpec | DriftWeightedSpec]
    help: str
    formula: str
    source: str
    cost: str
    """Time an outcome takes; what is kept of a model (K classes, W outcomes in a window)."""
    parameters: tuple[Parameter, ...] = ()
    warns: bool = False
    """Whether a detector has a level of warning below its alarm."""

    def defaults(self) -> Mapping[str, Scalar]:
        """Each parameter's value where settings say nothing."""
        given = {f.name: f.default for f in fields(self.spec) if f.default is not MISSING}
        return {p.name: given[p.name] for p in self.parameters if p.name in given}


@dataclass(frozen=True, slots=True)
class Measure:
    """A function of the totals. `name` is the metric's; a baseline's is the value of its `baseline` label."""

    name: str
    help: str
    formula: str
    source: str
    cost: str
    """Time to read it from one model's totals; what it makes the kernel keep, if more than those."""
    of: Callable[[Totals], Floats]


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit of the true accuracy, given the probability of being wrong; `name` is its `bound` label."""

    name: str
    help: str
    formula: str
    source: str
    cost: str
    """Time to read it from one model's totals."""
    of: Callable[[Totals, float], Floats]


def _bound(value: float) -> str:
    """A bound as an operator writes it: `1`, `0.5`, `inf`."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)
