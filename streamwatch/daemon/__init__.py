"""The long-running process: consume loop, commits, notifications, replicas, status and shutdown."""

from __future__ import annotations

from streamwatch.daemon.batch_processor import BatchProcessor
from streamwatch.daemon.commits import CommitSpec, State
from streamwatch.daemon.consume_loop import ConsumeLoopSpec
from streamwatch.daemon.daemon import Attachments, Daemon
from streamwatch.daemon.merged_records import RejectedRecords, Topic
from streamwatch.daemon.source_positions import (
    MERGE,
    POSITIONS,
    SourcePositions,
    decode_positions,
    restored_progress,
)
from streamwatch.daemon.status import Clocks, DaemonStatus

__all__ = [
    "MERGE",
    "POSITIONS",
    "Attachments",
    "BatchProcessor",
    "Clocks",
    "CommitSpec",
    "ConsumeLoopSpec",
    "Daemon",
    "DaemonStatus",
    "RejectedRecords",
    "SourcePositions",
    "State",
    "Topic",
    "decode_positions",
    "restored_progress",
]
