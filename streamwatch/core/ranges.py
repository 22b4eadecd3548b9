"""Ranges of the numbers of a snapshot that lead to memory, or say how long a loop goes on.

Compiled functions look up arrays without comparing an index with the length. So a restore refuses a number
that no snapshot holds, before it is used, and names its section.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_COUNTED: Final = 2**53
"""Largest number of outcomes, or sum of their weights, that a double counts exactly."""
LARGEST: Final = 2**62
"""Largest time in milliseconds, or number of a step, to which others can be added without an overflow."""


def require(name: str, what: str, value: Any, least: float, most: float) -> None:
    """Raise ValueError unless a number of a section is in [`least`, `most`]; NaN is not."""
    if not least <= value <= most:
        raise ValueError(f"{what} of section {name} must be in [{least}, {most}], got {value}")


def require_all(name: str, what: str, values: NDArray[Any], least: ArrayLike, most: ArrayLike) -> None:
    """Raise ValueError unless all numbers are in [`least`, `most`], which may be others for each."""
    outside = ~((values >= least) & (values <= most))
    if outside.any():
        low, high = (np.broadcast_to(limit, values.shape)[outside][0] for limit in (least, most))
        raise ValueError(f"{what} of section {name} must be in [{low}, {high}], got {values[outside][0]}")


def require_equal(name: str, what: str, got: int, expected: int) -> None:
    """Raise ValueError if a number of a section, or the number of its entries, is not as expected."""
    if got != expected:
        raise ValueError(f"{what} of section {name} must be {expected}, got {got}")


def require_steps(name: str, pace: np.void, verdict: np.void, outcomes: int) -> None:
    """Raise ValueError unless the steps of a verdict, of so many outcomes, follow each other."""
    steps, due = int(pace["steps"]), int(pace["due"])
    require(name, "steps", steps, 0, outcomes)
    require(name, "start", verdict["started"], 0, steps)
    require(name, "last step with a lead", verdict["differed"], 0, steps)
    require(name, "verdict", verdict["verdict"], -1, 1)
    if due != 0:
        require(name, "step due", due, steps + 1, LARGEST)
