"""A compiled join that is committed and begun anew from what was committed, as often as chance says."""

from __future__ import annotations

from contextlib import contextmanager

from streamwatch.core.join.durable import entry_logs as dedup_log
from streamwatch.core.join.durable import entry_logs as waiting_log
from streamwatch.core.join.durable import held_log
from streamwatch.core.pipeline.pipeline import Pipeline
from tests.core.join.shelf import ColumnShelf
from tests.core.join.streams import Joined


class DurableJoined(Joined):
    """Restarted after commits: outcomes and counters must be those of one that never was."""

    def __init__(self, spec, digests, start_ms):
        self.spec, self.digests = spec, digests
        super().__init__(lambda monitors: Pipeline(spec, monitors, digests), start_ms)
        self.shelf = ColumnShelf()

    def commit(self):
        self.shelf.commit(self.pipeline)

    def restart(self):
        before = self.pipeline
        self.pipeline = self.shelf.restored(Pipeline(self.spec, self.monitors, self.digests))
        self.pipeline.join.start_ms = before.join.start_ms


@contextmanager
def cramped_logs():
    """Runs of three entries and no slack: every commit writes old entries anew, and merges."""
    before = (
        waiting_log.RUN_ROWS,
        waiting_log.SLACK_ROWS,
        waiting_log.SCANNED,
        dedup_log.SIZES,
        dedup_log.MERGED,
        held_log.RUN_ROWS,
        held_log.SLACK_ROWS,
    )
    waiting_log.RUN_ROWS, waiting_log.SLACK_ROWS, waiting_log.SCANNED = 3, 0, 8
    dedup_log.SIZES, dedup_log.MERGED = (4, 12), 3
    held_log.RUN_ROWS, held_log.SLACK_ROWS = 2, 0
    try:
        yield
    finally:
        waiting_log.RUN_ROWS, waiting_log.SLACK_ROWS, waiting_log.SCANNED = before[:3]
        dedup_log.SIZES, dedup_log.MERGED = before[3:5]
        held_log.RUN_ROWS, held_log.SLACK_ROWS = before[5:]
