"""A compiled join that is committed and begun anew from what was committed, as often as chance says."""

from __future__ import annotations

from contextlib import contextmanager

from streamwatch.core.join.compiled.durable import dedup_log, held_log, waiting_log
from streamwatch.core.pipelines.column_pipeline import ColumnPipeline
from tests.core.join.compiled.streams import Joined


class ColumnShelf:
    """Everything that commits wrote, and nothing that was not committed."""

    def __init__(self):
        self.snapshot, self.values, self.commits = None, {}, 0

    def commit(self, pipeline):
        self.commits += 1
        for key, value in pipeline.changes(self.commits).items():
            if value is None and key[:1] in b"mcg":
                self.values.pop(key, None)  # a name may be given and released between two commits
            elif value is None:
                del self.values[key]  # only what is there is removed
            else:
                self.values[key] = value
        self.snapshot = pipeline.snapshot()

    def items(self):
        return sorted(self.values.items())

    def restored(self, pipeline):
        if self.snapshot is not None:
            pipeline.restore(self.snapshot, self.items())
        return pipeline


class DurableJoined(Joined):
    """Restarted after commits: outcomes and counters must be those of one that never was."""

    def __init__(self, spec, digests, start_ms):
        self.spec, self.digests = spec, digests
        super().__init__(lambda monitors: ColumnPipeline(spec, monitors, digests), start_ms)
        self.shelf = ColumnShelf()

    def commit(self):
        self.shelf.commit(self.pipeline)

    def restart(self):
        before = self.pipeline
        self.pipeline = self.shelf.restored(ColumnPipeline(self.spec, self.monitors, self.digests))
        self.pipeline.start_ms = before.start_ms


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
