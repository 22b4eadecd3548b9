"""Alarms that look at no loss: what every metric gives to one who knows nothing, or everything.

A metric by which one of the first four is good is a poor measure of a detector (river, pull 1963: an alarm at
every hundredth outcome has an F1 of .40 on streams that drift every 400).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

EVERY: int = 1_000
"""Outcomes between the alarms of one who fires by the clock."""
LATE: int = 100
"""Outcomes by which the oracle is late."""


@dataclass(frozen=True, slots=True)
class Control:
    """One who raises alarms without looking."""

    name: str
    alarms: Callable[[int, Sequence[tuple[int, int]], np.random.Generator], list[int]]
    """Outcomes, drifts as (start, end), chance → outcomes (1-based) of alarms, ascending."""


def every(n: int) -> Control:
    """Fire at every n-th outcome; at each of them for 1."""
    name = "at every outcome" if n == 1 else f"every {n:,} outcomes"
    return Control(name, lambda outcomes, _drifts, _rng: list(range(n, outcomes + 1, n)))


def at_random(rate: float) -> Control:
    """Fire at each outcome with the same probability."""

    def alarms(outcomes: int, _drifts: Sequence[tuple[int, int]], rng: np.random.Generator) -> list[int]:
        return [int(at) + 1 for at in np.flatnonzero(rng.random(outcomes) < rate)]

    return Control(f"at random, 1 in {1 / rate:,.0f}", alarms)


def oracle(late: int) -> Control:
    """Fire once for every drift, so many outcomes after it begins."""

    def alarms(outcomes: int, drifts: Sequence[tuple[int, int]], _rng: np.random.Generator) -> list[int]:
        return [start + late for start, _ in drifts if start + late <= outcomes]

    return Control(f"oracle, {late} late", alarms)


NEVER = Control("never", lambda _outcomes, _drifts, _rng: [])
CONTROLS: tuple[Control, ...] = (NEVER, every(1), every(EVERY), at_random(1.0 / EVERY), oracle(LATE))
