"""Controls: detectors that ignore losses, and either know nothing or know the drifts.

A metric by which one of the first four controls is good is a poor measure of a detector (river, pull 1963: an
alarm at every hundredth outcome has an F1 of .40 on streams that drift every 400).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

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
