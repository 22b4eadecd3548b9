"""Estimates of all values of a segment, as arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class SegmentEstimates(NamedTuple):
    """Estimates of a segment's values; arrays of shape (n,)."""

    values: Sequence[str]
    outcomes: NDArray[np.int64]
    weights: NDArray[np.float64]
    before: NDArray[np.float64]
    now: NDArray[np.float64]
    shares: NDArray[np.float64]
    measured: Mapping[str, NDArray[np.float64]]

    def document(self, k: int) -> dict[str, object]:
        """Build the JSON object of one value for the API; undefined values are absent."""
        numbers = {name: float(values[k]) for name, values in self.measured.items()}
        numbers |= {
            "traffic_ratio": float(self.weights[k] / self.weights.sum()),
            "error_before_ratio": float(self.before[k]),
            "error_now_ratio": float(self.now[k]),
            "extra_errors_ratio": float(self.shares[k]),
        }
        return {
            "value": self.values[k],
            "outcomes": int(self.outcomes[k]),
            **{name: number for name, number in numbers.items() if math.isfinite(number)},
        }
