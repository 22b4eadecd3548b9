"""Scores of outcomes in columns, one per class, with the interface of a mapping from number to scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


class ScoreColumns(Mapping[int, dict[str, float]]):
    """Scores by number, which is the index of their row; a row without scores is not in the mapping.

    Parameters
    ----------
    names
        Distinct class names, in the order in which a prediction lists them; shape (k,).
    table
        float64 (n, k): score of each class, NaN where a prediction has none.
    segments
        int32 (n,): number of the segments of the prediction, -1 without any; None if no prediction has any.
    """

    __slots__ = ("names", "present", "scored", "segments", "table")

    def __init__(
        self, names: Sequence[str], table: NDArray[np.float64], segments: NDArray[np.int32] | None = None
    ) -> None:
        self.names = tuple(names)
        self.table = table
        self.segments = np.full(len(table), -1, np.int32) if segments is None else segments
        self.present: NDArray[np.bool_] = ~np.isnan(table)
        """Shape (n, k): whether a row has a score for a class."""
        self.scored: NDArray[np.bool_] = np.asarray(self.present.any(axis=1))
        """Shape (n,): whether a row has any score."""

    def __getitem__(self, number: int) -> dict[str, float]:
        if not 0 <= number < len(self.scored) or not self.scored[number]:
            raise KeyError(number)
        row, there = self.table[number].tolist(), self.present[number].tolist()
        return {name: score for name, score, given in zip(self.names, row, there, strict=True) if given}

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.scored).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.scored))
