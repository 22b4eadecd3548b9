"""Joins over a RocksDB store, with all entries in memory or most of them in runs on disk."""

from __future__ import annotations

from random import Random

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.cold.overflow import Overflow
from streamwatch.core.merge import MergeProgress
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.ports import CommitBatch
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.daemon import MERGE, POSITIONS, SourcePositions
from streamwatch.daemon.source_positions import encoded_progress
from streamwatch.edge.keys import bytes_of_keys
from streamwatch.edge.stores.rocksdb import RocksStore
from tests.core.join.join_stream import clocked, label, predict, tick
from tests.core.join.streams import LENGTH, Joined, a_case
from tests.edge.stores.rocksdb.stream import digested, rocks_spec

JOIN = JoinSpec(horizon_ms=900_000_000, dedup_horizon_ms=900_000_000)


class Columns(Joined):
    """A compiled join over a directory; with a table, an `OverflowSpec`, entries beyond it are in runs."""

    def __init__(self, directory, spec, start_ms=None, table=None):
        self.spec, self.directory, self.table = spec, directory, table
        super().__init__(lambda monitors: Pipeline(spec, monitors, bytes_of_keys), start_ms)
        self._open()

    def _open(self):
        self.store = RocksStore.open(rocks_spec(self.directory))
        saved, start_ms = self.store.load(), self.pipeline.join.start_ms
        self.commits = saved.commits
        overflow = None if self.table is None else Overflow(saved.runs, self.table)
        self.pipeline = Pipeline(self.spec, self.monitors, bytes_of_keys, overflow)
        self.pipeline.join.start_ms = start_ms
        if saved.commits:
            self.pipeline.restore(saved.sections["pipeline"], saved.columns)

    def commit(self):
        self.commits += 1
        sections, join = {"pipeline": self.pipeline.snapshot()}, self.pipeline.join
        columns = join.changes(self.commits)
        runs = {} if self.table is None else {"runs": join.run_changes()}
        self.store.commit(CommitBatch(sections, columns=columns, **runs))
        self.store.flush()

    def reopen(self):
        self.store.close()
        self._open()


def outside_of_lives(directory, states, table=None):
    """Fail unless a join that is committed and reopened now and then says what one says that never was.

    Returns how many entries were outside the table at its commits, all together.
    """
    outside = 0
    for seed in states:
        chance = Random(seed)
        spec, events, start_ms = a_case(chance)
        events = digested(events)
        one_life = Joined(lambda monitors, spec=spec: Pipeline(spec, monitors, bytes_of_keys), start_ms)
        columns = Columns(directory / str(seed), spec, start_ms, table)
        for start in range(0, LENGTH, 15):
            one_life.feed(events[start : start + 15])
            columns.feed(events[start : start + 15])
            join = columns.pipeline.join
            while table is not None and (merge := join.plan_merge()) is not None:
                merge.run()
                join.finish_merge(merge)
            columns.commit()
            outside += join.entries_outside
            if chance.random() < 0.4:
                columns.reopen()
            assert columns.results() == one_life.results()
        columns.store.close()
    return outside


class Life:
    """A daemon's life on a directory, without Kafka; with a table as `Columns` has one."""

    def __init__(self, directory, table=None):
        self.store = RocksStore.open(rocks_spec(directory))
        self.monitors = EstimatorSet(MonitorsSpec())
        saved = self.store.load()
        overflow = None if table is None else Overflow(saved.runs, table)
        self.pipeline = Pipeline(JOIN, self.monitors, bytes_of_keys, overflow)
        self.checkpoint = Checkpoint(self.pipeline, self.monitors, MonitorsSpec(), 50)
        self.checkpoint.restore(saved)

    def feed(self, *events):
        events = digested(clocked(events, self.pipeline.clock_ms))
        self.checkpoint.take(self.pipeline.advance(events))

    def commit(self):
        progress = MergeProgress({}, {}, None, self.pipeline.clock_ms)
        sections = {POSITIONS: SourcePositions().encode(), MERGE: encoded_progress(progress)}
        self.store.commit(self.checkpoint.changes(sections))
        self.store.flush()


def a_life(directory, table=None):
    """A life at whose end 200 predictions wait: 80 of `m`, whose other 40 have labels, and 120 of `n`."""
    life = Life(directory, table)
    for n in range(120):
        life.feed(predict(f"a{n}", "x", n * 1_000, "m"), predict(f"a{n}", "y", n * 1_000, "n"))
        if n % 3 == 0:
            life.feed(label(f"a{n}", "x", n * 1_000, "m"))
        if n % 20 == 0:
            life.commit()
    life.feed(tick(200_000))
    life.commit()
    return life
