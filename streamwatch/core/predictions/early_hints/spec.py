"""Parameters of early hints."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.core.predictions.early_hints.observe import REACH, ROUND


@dataclass(frozen=True, slots=True)
class EarlyHintsSpec:
    """Parameters of hints from predictions before their labels come.

    Raises
    ------
    ValueError
        If `reach` is below 4,096, or `predictions` below `reach`.
    """

    predictions: int = 100_000
    """Number of predictions of a model within which a false hint has probability at most `delta`."""
    delta: float = 0.05
    """Probability of a false hint within `predictions`, in (0, 1)."""
    reach: int = REACH
    """Distance in predictions between the latest ones and those they are compared with.

    Rounded up to a multiple of 4,096; beyond 4,096 only every second, third, … prediction is compared.
    """
    max_models: int = 100
    """Largest number of models watched, those that predict first."""
    bucket_ms: int = 3_600_000
    """Length of the stretches of prediction time in which expected accuracy is compared with labels.

    64 stretches are kept.
    """

    def __post_init__(self) -> None:
        if self.reach < REACH or self.predictions < self.reach:
            raise ValueError(
                f"early hints need {REACH} ≤ reach ≤ predictions, got {self.reach} and {self.predictions}"
            )

    @property
    def stride(self) -> int:
        """Number of predictions of which one is compared."""
        return -(-self.reach // REACH)

    @property
    def threshold(self) -> float:
        """Mean capital at which a hint is given: rounds within `predictions`, divided by `delta`."""
        return self.predictions / (ROUND * self.stride) / self.delta
