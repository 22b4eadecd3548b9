"""What an operator may choose of early hints."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.core.predictions.early_hints.state import REACH, ROUND


@dataclass(frozen=True, slots=True)
class EarlyHintsSpec:
    """Hints from predictions before their labels come.

    Raises
    ------
    ValueError
        If `reach` is below 4,096, or `predictions` below that.
    """

    predictions: int = 100_000
    """Predictions within which a false hint has probability `delta`, of each model."""
    delta: float = 0.05
    reach: int = REACH
    """How many predictions earlier those were that the latest are compared with, rounded up to 4,096s; of
    more than 4,096, every second, third, … prediction is looked at."""
    max_models: int = 100
    """Models looked at, at most: those that predict first."""
    bucket_ms: int = 3_600_000
    """Stretch of prediction time over which the accuracy that scores make expect is held beside that of
    labels; 64 of them are kept."""

    def __post_init__(self) -> None:
        if self.reach < REACH or self.predictions < self.reach:
            raise ValueError(
                f"early hints need {REACH} ≤ reach ≤ predictions, got {self.reach} and {self.predictions}"
            )

    @property
    def stride(self) -> int:
        """Every how manieth prediction is compared."""
        return -(-self.reach // REACH)

    @property
    def threshold(self) -> float:
        """Mean capital at which a hint is given: rounds within `predictions`, over `delta`."""
        return self.predictions / (ROUND * self.stride) / self.delta
