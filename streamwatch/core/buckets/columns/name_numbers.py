"""Numbers of the names that occur in one piece or part, given in the order in which they occur."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class NameNumbers:
    """Numbers names from 0 on, as they are first asked for."""

    def __init__(self) -> None:
        self.by_name: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self.by_name.setdefault(name, len(self.by_name))

    def of(self, column: NDArray[np.int32], names: Sequence[str]) -> NDArray[np.int32]:
        """Translate a column of numbers in `names` into numbers here; -1 stays what it is."""
        here = np.full(len(names) + 1, -1, np.int32)
        for number in np.flatnonzero(np.bincount(column + 1, minlength=1)[1:]).tolist():
            here[number] = self[names[number]]
        return here[column]
