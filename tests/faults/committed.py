"""A program that commits one thing after the other to a state directory, and says so when each is durable.

    python -m tests.faults.committed DIRECTORY LAST IDS_PER_COMMIT

It goes on from what it finds and stops after commit number LAST. Everything a commit can hold changes in
every one: records of every kind and their deadlines, dedup entries and dropped generations, models, journal,
held outcomes, notifications. What is in commit n depends on n only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from streamwatch.core.commit.batch import CommitBatch
from streamwatch.core.pipeline import Pipeline
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from tests.core.join.join_stream import (
    RecordingEstimatorSet,
    clocked,
    label,
    label_for_all,
    null,
    predict,
    tick,
)
from tests.edge.stores.rocksdb.stream import alive_now, digested

COMMIT_MS = 3_000
JOIN = JoinSpec(horizon_ms=7_000, early_horizon_ms=5_000, dedup_horizon_ms=6_000)
HOT_RECORDS = 20
CACHE_BYTES = 2**20
WRITE_BUFFER_BYTES = 2**16
"""So little that larger commits make RocksDB sort what it has into files meanwhile."""


class Committing:
    """An open state, and the join that it is of."""

    def __init__(self, directory: Path, ids: int) -> None:
        self.store = RocksStore.open(
            RocksSpec(
                directory,
                JOIN.horizon_ms,
                JOIN.early_horizon_ms,
                HOT_RECORDS,
                CACHE_BYTES,
                WRITE_BUFFER_BYTES,
            )
        )
        self.pipeline = Pipeline(JOIN, RecordingEstimatorSet())
        self.ids = ids
        saved = self.store.load()
        self.commits = saved.commits
        if saved.commits:
            self.pipeline.restore(saved.sections["pipeline"])

    def until(self, last: int) -> Iterator[int]:
        """Commit up to number `last`; gives each number when it is durable."""
        while self.commits < last:
            self.commits += 1
            self._feed(self.commits)
            self.store.commit(changes(self.commits, self.pipeline.snapshot()))
            self.store.flush()
            yield self.commits

    def found(self):
        """Everything there is, to be compared."""
        return self.store.load(), alive_now(self), self.pipeline.snapshot()

    def _feed(self, commit: int) -> None:
        now = commit * COMMIT_MS
        events = clocked([*stories(commit, self.ids, now), tick(now)], self.pipeline.clock_ms)
        for batch in (digested(events[: len(events) // 2]), digested(events[len(events) // 2 :])):
            step = self.pipeline.advance(batch, self.store.fetch(self.pipeline.read_set(batch)))
            self.store.apply(step)
            assert len(step.events) == len(batch)
        assert self.pipeline.identities() == []


def stories(commit: int, ids: int, now: int):
    """Predictions of this commit, and labels of those of this one, the one before, and the one after."""
    for number in range(ids):
        key = f"{commit}-{number}"
        yield predict(key, "x", now, "m")
        if number % 3 == 0:
            yield predict(key, "y", now, "n")
        if number % 4 == 0:
            yield label_for_all(key, "x", now)
        if number % 4 == 1:
            yield label(f"{commit - 1}-{number}", "y", now, "m")
        if number % 8 == 2:
            yield label(f"{commit + 1}-{number}", "y", now, "m")
        if number % 8 == 3:
            yield null(f"{commit - 1}-{number}", now)


def changes(commit: int, pipeline: bytes) -> CommitBatch:
    """What else a commit holds."""
    name = str(commit).encode()
    return CommitBatch(
        sections={"pipeline": pipeline, "positions": name},
        models={f"model {commit}": name * 50, f"model {commit - 1}": None, "always there": name},
        journal=name * 20,
        journal_floor=commit - 1,
        held={b"held " + name: name, b"held " + str(commit - 1).encode(): None},
        outbox={f"notification {commit}": name, f"notification {commit - 1}": None},
    )


if __name__ == "__main__":
    for durable in Committing(Path(sys.argv[1]), int(sys.argv[3])).until(int(sys.argv[2])):
        os.write(1, f"{durable}\n".encode())
    os._exit(0)  # as it would end otherwise: without a goodbye to the disk
