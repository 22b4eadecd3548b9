"""Merge of all partitions into one sequence by record time, the only order that join and estimators see.

If records were evaluated in the order in which polls happen to deliver them, the same log read live, as a
backlog or in a replay would give different estimates. `Merge` holds what was read until no record
that precedes it can still be delivered, and releases it in the order (record time, topic, partition, offset).
"""

from __future__ import annotations

from streamwatch.core.merge.inbox import Arrivals, arrivals_of
from streamwatch.core.merge.merge import Merge, MergeSpec
from streamwatch.core.merge.released import MergeProgress, Released, ReleasedState

__all__ = ["Arrivals", "Merge", "MergeProgress", "MergeSpec", "Released", "ReleasedState", "arrivals_of"]
