"""Records as polls deliver them, before they have a time and a place in the sequence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records import RecordBatch


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Records of one partition as one poll delivered them, in offset order; columns of one length.

    Attributes
    ----------
    offsets, stamps_ms
        int64; `stamps_ms` as the records carry them, in milliseconds since the epoch.
    decodable
        bool: whether the record could be decoded.
    records
        What each record decodes to; one for each.
    appended
        Whether the broker set the timestamps (LogAppendTime).
    size_bytes
        What they hold in memory, about.
    """

    offsets: NDArray[np.int64]
    stamps_ms: NDArray[np.int64]
    decodable: NDArray[np.bool_]
    records: RecordBatch
    appended: bool = False
    size_bytes: int = 0

    def __len__(self) -> int:
        return len(self.offsets)
