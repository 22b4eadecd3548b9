"""How long to wait before the next attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """Doubles from `initial` to `maximum` seconds; each wait is drawn from its upper half."""

    initial: float
    maximum: float
    random: Callable[[], float]
    attempts: int = 0

    def next_seconds(self) -> float:
        """The wait after one more failure."""
        ceiling = min(self.maximum, self.initial * 2.0 ** min(self.attempts, 32))
        self.attempts += 1
        return ceiling * (0.5 + 0.5 * self.random())

    def reset(self) -> None:
        """Begin anew after a success."""
        self.attempts = 0
