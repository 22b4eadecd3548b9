"""Compiling the merge before it is needed, or loading what was compiled before."""

from __future__ import annotations

import numpy as np

from streamwatch.core.events import Partition
from streamwatch.core.merge.arrivals import Arrivals
from streamwatch.core.merge.merge import Merge
from streamwatch.core.merge.progress import MergeProgress
from streamwatch.core.merge.spec import MergeSpec
from streamwatch.core.records import RecordBatch, no_records


def warm_up_merge() -> None:
    """Merge two records, the first judged and the second plain, so that every compiled function is called."""
    partition = Partition("warm-up", 0)
    merge = Merge(MergeSpec(), {partition.topic: "both"}, MergeProgress())
    merge.set_partitions([partition])
    nothing = no_records()
    one = RecordBatch(np.zeros(1, nothing.rows.dtype), None, (), nothing.vocabulary)
    stamps_ms, decodable = np.ones(1, np.int64), np.ones(1, np.bool_)
    for _ in range(2):  # the first of a partition is judged, the second is plain
        merge.add({partition: Arrivals(stamps_ms, stamps_ms, decodable, one)}, 0)
        merge.release(0, 0)
    merge.compact()
    merge.drain(0)
