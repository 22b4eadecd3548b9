"""Table of a compiled join, as what is outside of it sees it."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from streamwatch.core.join.compiled.layout import EARLY_LABELS, PREDICTIONS, RETAINED_LABELS, Arrays
from streamwatch.core.join.compiled.names import HeldScores, NumberedSegments

WAITING_QUEUES: Final = (PREDICTIONS, EARLY_LABELS, RETAINED_LABELS)


class Table(Protocol):
    """Interface of the join that its overflow uses."""

    @property
    def arrays(self) -> Arrays:
        """Arrays that the loop reads and changes."""
        ...

    @arrays.setter
    def arrays(self, arrays: Arrays) -> None: ...

    @property
    def scores(self) -> HeldScores:
        """Scores of the predictions in the table."""
        ...

    @property
    def segments(self) -> NumberedSegments:
        """Numbers of the predictions' segments."""
        ...

    @property
    def shift(self) -> np.uint64:
        """64 minus the binary logarithm of the number of slots."""
        ...

    def grow(self) -> None:
        """Make room for more entries."""
        ...
