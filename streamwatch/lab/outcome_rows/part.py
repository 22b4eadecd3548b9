"""Rows of a file that were read together: outcomes in columns, and the events of the other rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Event, Partition
from streamwatch.core.merge import Released
from streamwatch.core.merge.released import IN_ORDER
from streamwatch.core.outcomes import OutcomeBatch
from streamwatch.core.records import ROW as RECORD
from streamwatch.core.records import RecordBatch
from streamwatch.core.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Part:
    """Rows in order; columns of one length."""

    offsets: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    """Time of the partition at each of them."""
    is_outcome: NDArray[np.bool_]
    outcomes: OutcomeBatch
    """Of the rows that are outcomes."""
    events: Sequence[Event]
    """Of the others."""

    def released(self, partition: Partition) -> Released:
        """The same as the stretch of the sequence that it is, without content."""
        count = len(self.offsets)
        return Released(
            RecordBatch(np.zeros(count, RECORD), None, (), Vocabulary()),
            [partition],
            np.zeros(count, np.int64),
            self.offsets,
            self.times_ms,
            self.times_ms,
            np.full(count, IN_ORDER),
            np.zeros(count, np.uint8),
        )
