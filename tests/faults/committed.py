"""A program that commits one thing after the other to a state directory, and says so when each is durable.

Its join writes old entries anew all the time; with COMMITTED_COLD=1 in the environment most of its entries
lie outside its table, besides, in runs that are merged. It goes on from what it finds and stops after commit
number LAST. Everything a commit can hold changes in every one: entries of every kind, dedup entries and
dropped generations, models, journal, notifications. What is in commit n depends on n only.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from streamwatch.core.join.cold.overflow import Overflow, OverflowSpec
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.ports import CommitBatch
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.keys import digest_bytes
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from tests.core.join.cold.cold_model import SMALL
from tests.core.join.cold.cold_streams import alive_outside
from tests.core.join.durable_streams import cramped_logs
from tests.core.join.join_stream import (
    RecordingEstimatorSet,
    alive,
    clocked,
    label,
    label_for_all,
    null,
    predict,
    tick,
)

COLD = "COMMITTED_COLD"
TABLE = OverflowSpec(30, 10, SMALL)
COMMIT_MS = 3_000
JOIN = JoinSpec(horizon_ms=7_000, early_horizon_ms=5_000, dedup_horizon_ms=6_000)
CACHE_BYTES = 2**20
WRITE_BUFFER_BYTES = 2**16
"""So little that larger commits make RocksDB sort what it has into files meanwhile."""
_CRAMPED = threading.Lock()
"""What `cramped_logs` changes is everybody's, and states are examined in two threads."""


class Committing:
    """An open state, and the join that it is of."""

    def __init__(self, directory: Path, ids: int) -> None:
        self.cold = os.environ.get(COLD) == "1"
        self.store = RocksStore.open(RocksSpec(directory, CACHE_BYTES, WRITE_BUFFER_BYTES))
        monitors = RecordingEstimatorSet()
        saved = self.store.load()
        overflow = Overflow(saved.runs, TABLE) if self.cold else None
        self.pipeline = Pipeline(JOIN, monitors, digest_bytes, overflow)
        self.ids = ids
        self.commits = saved.commits
        if saved.commits:
            self.pipeline.restore(saved.sections["pipeline"], saved.columns)

    def until(self, last: int) -> Iterator[int]:
        """Commit up to number `last`; gives each number when it is durable."""
        while self.commits < last:
            self.commits += 1
            self._feed(self.commits)
            self.store.commit(self._changes())
            self.store.flush()
            yield self.commits

    def _changes(self) -> CommitBatch:
        also = changes(self.commits, self.pipeline.snapshot())
        with _CRAMPED, cramped_logs():
            columns = self.pipeline.join.changes(self.commits)
            return replace(also, columns=columns, runs=self.pipeline.join.run_changes())

    def found(self):
        """Everything there is, to be compared."""
        saved = self.store.load()
        if self.cold:  # where entries lie may differ from life to life
            entries = sorted(alive(self) + alive_outside(self.pipeline, saved.runs))
            return replace(saved, columns=[], runs=None), entries, self.pipeline.snapshot()
        saved = replace(saved, columns=list(saved.columns), runs=None)
        return saved, alive(self), self.pipeline.snapshot()

    def _feed(self, commit: int) -> None:
        now = commit * COMMIT_MS
        events = clocked([*stories(commit, self.ids, now), tick(now)], self.pipeline.clock_ms)
        self.pipeline.advance(events)
        assert self.pipeline.identities() == []
        while (merge := self.pipeline.join.plan_merge()) is not None:
            merge.run()
            self.pipeline.join.finish_merge(merge)


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
        outbox={f"notification {commit}": name, f"notification {commit - 1}": None},
    )


def commit_all(directory: Path, last: int, ids: int) -> None:
    """Commit up to number `last`, and write the number of each as a line when it is durable."""
    for durable in Committing(directory, ids).until(last):
        os.write(1, f"{durable}\n".encode())
