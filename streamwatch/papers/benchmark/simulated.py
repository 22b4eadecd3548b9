"""Simulated losses of known error: development streams to choose strictness, held-out ones to score.

Both differ in errors, sizes of the rise and paces. Streams with *independent* losses are separate from
*dependent* ones, in which losses repeat the previous one with probability .8 (so that their correlation is
.8), or their error follows a daily cycle, which a detector must not take for a drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from streamwatch.papers.detection.scoring import Change
from streamwatch.papers.detection.streams import Losses, repeating
from streamwatch.papers.result import Floats

Group: TypeAlias = Literal["independent", "dependent"]
CALM: Final = 6_000
"""Outcomes before the rise."""
SPAN: Final = 5_000
"""Outcomes after the rise within which an alarm finds it."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """Stream of losses whose error may rise once, from `low` to `high`."""

    low: float
    high: float
    width: int = 0
    """Outcomes over which the error rises linearly; 0: at once."""
    rho: float = 0.0
    """Correlation of a loss with the previous one."""
    day: int = 0
    """Length of a daily cycle in outcomes; 0 without one."""
    swing: float = 0.0
    """Amplitude of the cycle, as a share of the error."""

    @property
    def name(self) -> str:
        """Name that states the rise and the dependence of losses."""
        how = f" over {self.width:,}" if self.width else ""
        extra = f", ρ = {self.rho:g}" if self.rho else ""
        cycle = f", days of {self.day:,} ± {self.swing:.0%}" if self.day else ""
        return f"{self.low:g} to {self.high:g}{how}{extra}{cycle}"

    @property
    def group(self) -> Group:
        """Group of the stream."""
        return "dependent" if self.rho or self.day else "independent"

    def still(self, outcomes: int, rng: np.random.Generator) -> Losses:
        """Draw one run whose error stays at `low`, (outcomes,)."""
        return self._drawn(np.full(outcomes, self.low), rng)

    def changed(self, rng: np.random.Generator) -> Losses:
        """Draw one run whose error rises after `CALM` outcomes, (CALM + SPAN,)."""
        ramp = np.linspace(self.low, self.high, self.width, endpoint=False)
        parts = [np.full(CALM, self.low), ramp, np.full(SPAN - self.width, self.high)]
        return self._drawn(np.concatenate(parts), rng)

    @property
    def change(self) -> Change:
        """Position and span of the rise."""
        return Change(CALM, SPAN)

    def _drawn(self, error: Floats, rng: np.random.Generator) -> Losses:
        if self.day:
            hours = np.arange(len(error)) + int(rng.integers(self.day))
            error = error * (1.0 + self.swing * np.sin(2.0 * np.pi * hours / self.day))
        return repeating(error, rng, self.rho)


DEVELOPMENT: Final = (
    Simulated(0.02, 0.06),
    Simulated(0.1, 0.15),
    Simulated(0.2, 0.3),
    Simulated(0.2, 0.4, width=2_500),
    Simulated(0.2, 0.4, rho=0.8),
    Simulated(0.1, 0.2, day=1_440, swing=0.3),
)
HELD_OUT: Final = (
    Simulated(0.05, 0.1),
    Simulated(0.15, 0.22),
    Simulated(0.3, 0.45),
    Simulated(0.1, 0.25, width=2_500),
    Simulated(0.15, 0.35, rho=0.8),
    Simulated(0.15, 0.27, day=1_000, swing=0.3),
)
