"""Scores of outcomes as a column for each class, which look like a mapping to whoever wants single ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


class ScoreColumns(Mapping[int, dict[str, float]]):
    """Scores by number, the place of their row; a row without any score has none.

    Parameters
    ----------
    names
        Classes, all different, in the order in which a prediction names them; shape (k,).
    table
        float64 (n, k): score of each class, NaN where a prediction has none of it.
    segments
        int32 (n,): number of the segments of the prediction, -1 without any; None if none has any.
    """

    __slots__ = ("names", "present", "scored", "segments", "table")

    def __init__(
        self, names: Sequence[str], table: NDArray[np.float64], segments: NDArray[np.int32] | None = None
    ) -> None:
        self.names = tuple(names)
        self.table = table
        self.segments = np.full(len(table), -1, np.int32) if segments is None else segments
        self.present: NDArray[np.bool_] = ~np.isnan(table)
        """Shape (n, k): whether there is a score."""
        self.scored: NDArray[np.bool_] = np.asarray(self.present.any(axis=1))
        """Shape (n,): whether a row has any."""

    def __getitem__(self, number: int) -> dict[str, float]:
        if not 0 <= number < len(self.scored) or not self.scored[number]:
            raise KeyError(number)
        row, there = self.table[number].tolist(), self.present[number].tolist()
        return {name: score for name, score, given in zip(self.names, row, there, strict=True) if given}

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.scored).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.scored))
