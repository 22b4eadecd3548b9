"""Losses drawn from a known error: what defaults and strictnesses are frozen on, and what they are scored on.

Development streams and held-out ones differ in errors, sizes of the rise and paces. *Independent* losses are
apart from *dependent* ones: those that repeat the one before with probability .8, so that their correlation
is .8, and those whose error follows a daily cycle, which a detector must not take for a drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from streamwatch.papers.detection.scoring import Change
from streamwatch.papers.detection.streams import Losses, together
from streamwatch.papers.result import Floats

Group: TypeAlias = Literal["independent", "dependent"]
CALM: Final = 6_000
"""Outcomes before the rise."""
SPAN: Final = 5_000
"""Outcomes from the rise on within which it is looked for."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """Error that rises once, or does not."""

    low: float
    high: float
    width: int = 0
    """Outcomes over which it rises evenly."""
    rho: float = 0.0
    """Correlation of a loss with the one before."""
    day: int = 0
    """Outcomes of a daily cycle; 0 without one."""
    swing: float = 0.0
    """Height of the cycle, as a part of the error."""

    @property
    def name(self) -> str:
        """Name: how far it rises, and how losses depend on one another."""
        how = f" over {self.width:,}" if self.width else ""
        extra = f", ρ = {self.rho:g}" if self.rho else ""
        cycle = f", days of {self.day:,} ± {self.swing:.0%}" if self.day else ""
        return f"{self.low:g} to {self.high:g}{how}{extra}{cycle}"

    @property
    def group(self) -> Group:
        """Table that it is in."""
        return "dependent" if self.rho or self.day else "independent"

    def still(self, outcomes: int, rng: np.random.Generator) -> Losses:
        """One run whose error does not rise, (outcomes,)."""
        return self._drawn(np.full(outcomes, self.low), rng)

    def changed(self, rng: np.random.Generator) -> Losses:
        """One run that rises after `CALM` outcomes."""
        ramp = np.linspace(self.low, self.high, self.width, endpoint=False)
        parts = [np.full(CALM, self.low), ramp, np.full(SPAN - self.width, self.high)]
        return self._drawn(np.concatenate(parts), rng)

    @property
    def change(self) -> Change:
        """The rise."""
        return Change(CALM, SPAN)

    def _drawn(self, error: Floats, rng: np.random.Generator) -> Losses:
        if self.day:
            hours = np.arange(len(error)) + int(rng.integers(self.day))
            error = error * (1.0 + self.swing * np.sin(2.0 * np.pi * hours / self.day))
        return together("", error, self.rho, ()).draw(rng)


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
