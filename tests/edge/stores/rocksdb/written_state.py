"""A state as a daemon leaves it: real estimators, journal, positions, open alarms and an outbox."""

from __future__ import annotations

from contextlib import contextmanager

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.outbox import new_entry
from streamwatch.core.alerting.rules import AlarmsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.merge import MergeProgress
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.events import Alarm, Label, Partition
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.daemon import MERGE, POSITIONS, SourcePositions
from streamwatch.daemon.alerting import ALARMS
from streamwatch.daemon.source_positions import encoded_progress
from streamwatch.edge.keys import bytes_of_keys
from streamwatch.edge.stores.rocksdb import RocksStore
from streamwatch.edge.stores.rocksdb.database import MEBIBYTE, Database
from tests.core.join.join_stream import Stream, clocked, label, predict, tick
from tests.edge.stores.rocksdb.stream import digested, rocks_spec

JOIN = JoinSpec(
    horizon_ms=900_000_000,
    early_horizon_ms=90_000_000,
    dedup_horizon_ms=90_000_000,
    order="prediction_time",
    reorder_window_ms=1_000,
)
PREDICTIONS, LABELS = Partition("predictions", 0), Partition("labels", 0)
ESTIMATORS = MonitorsSpec()
ALARM = Alarm("m", "page_hinkley", 1, 4_000, 5_000, 5_000, 51.0, 50.0, 0.1, 0.4, 100.0)


class Life:
    """One life of a daemon on a directory, without Kafka."""

    def __init__(self, directory, journal_outcomes=50):
        self.store = RocksStore.open(rocks_spec(directory))
        self.monitors = EstimatorSet(ESTIMATORS)
        self.stream = Stream(JOIN, self.monitors)
        self.stream.pipeline = Pipeline(JOIN, self.monitors, bytes_of_keys)
        self.checkpoint = Checkpoint(self.stream.pipeline, self.monitors, ESTIMATORS, journal_outcomes)
        saved = self.store.load()
        self.resumed = self.checkpoint.restore(saved)
        self.book = AlarmBook(AlarmsSpec(), self.store.identity)
        if ALARMS in saved.sections:
            self.book.restore(saved.sections[ALARMS])
        self.offset = 0

    def feed(self, *events):
        pipeline = self.stream.pipeline
        events = clocked(events, pipeline.clock_ms)
        step = pipeline.advance(events)
        self.checkpoint.take(step)
        self.offset += len(events)
        return list(step.outcomes)

    def until(self, record_ms):
        self.feed(tick(record_ms))

    def commit(self, alarms=()):
        notifications = self.book.announce(alarms, 6_000, self.monitors.facts, behind=False)
        positions = {PREDICTIONS: self.offset, LABELS: self.offset + 1}
        progress = MergeProgress(positions, dict.fromkeys(positions, 0), None, self.stream.pipeline.clock_ms)
        sections = {
            POSITIONS: SourcePositions(positions).encode(),
            MERGE: encoded_progress(progress),
            ALARMS: self.book.state(),
        }
        outbox = {
            notification.id: new_entry(notification, ["oncall", "chat"], number)
            for number, notification in enumerate(notifications, 1)
        }
        self.store.commit(self.checkpoint.changes(sections, outbox))
        self.store.flush()

    def everything(self):
        """What it remembers, comparable."""
        snapshots = {model: self.monitors.snapshot(model) for model in self.monitors.models()}
        return self.stream.pipeline.snapshot(), snapshots, self.monitors.totals(), self.book.state()


def written_state(directory):
    """Feed what leaves something of every kind, commit several times, close; the identity."""
    life = Life(directory)
    for start in range(0, 200, 20):
        at = start * 100
        life.feed(*digested(predict(str(n), "xy"[n % 2], at + n) for n in range(start, start + 20)))
        life.feed(*digested(predict(f"n{n}", "x", at + n, model="n") for n in range(start, start + 5)))
        life.feed(*digested(label(str(n), "x", at + n) for n in range(start, start + 15)))
        life.until(at)
        life.commit([ALARM] if start == 100 else ())
    life.feed(*digested([label("early", "x", 18_500), Label("bare", "x", 18_500), Label("19", "x", 18_500)]))
    life.commit()
    identity = life.store.identity
    life.store.close()
    return identity


@contextmanager
def altering(directory):
    """The database behind a state's back."""
    database = Database(directory, 8 * MEBIBYTE, 8 * MEBIBYTE)
    try:
        yield database
    finally:
        database.close()


def put(database, family, key, value):
    with database.batch() as batch:
        database.into(family, batch)
        if value is None:
            del batch[key]
        else:
            batch[key] = value


def contents(directory):
    """Every file as it is."""
    return {p.name: (p.stat().st_mtime_ns, p.stat().st_ino, p.read_bytes()) for p in directory.iterdir()}
