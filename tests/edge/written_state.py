"""A state as a daemon leaves it: real estimators, journal, positions, open alarms and an outbox."""

from __future__ import annotations

from contextlib import contextmanager

from streamwatch.core.alarm_book import AlarmBook
from streamwatch.core.alarm_rules import AlarmsSpec
from streamwatch.core.checkpoint import Checkpoint
from streamwatch.core.events import Alarm, Label, Progress
from streamwatch.core.monitors import Monitors
from streamwatch.core.outbox import new_entry
from streamwatch.core.specs import JoinSpec, MonitorsSpec, TimeSpec
from streamwatch.daemon import POSITIONS, Places
from streamwatch.daemon.alerting import ALARMS
from streamwatch.edge.stores.rocksdb import RocksStore
from streamwatch.edge.stores.rocksdb.database import MEBIBYTE, Database
from tests.core.join_stream import LABELS, PREDICTIONS, SIDES, Stream, label, predict
from tests.edge.rocks_stream import digested, rocks_spec

JOIN = JoinSpec(
    horizon_ms=900_000_000,
    early_horizon_ms=90_000_000,
    tombstone_horizon_ms=90_000_000,
    order="prediction_time",
    reorder_window_ms=1_000,
)
ESTIMATORS = MonitorsSpec()
ALARM = Alarm("m", "page_hinkley", 1, 4_000, 5_000, 51.0, 50.0, 0.1, 0.4, 100.0)


class Life:
    """One life of a daemon on a directory, without Kafka."""

    def __init__(self, directory, journal_outcomes=50):
        self.store = RocksStore.open(rocks_spec(directory, JOIN, hot_records=10))
        self.monitors = Monitors(ESTIMATORS)
        self.stream = Stream(JOIN, SIDES, TimeSpec(), self.store, self.monitors)
        self.checkpoint = Checkpoint(self.stream.pipeline, self.monitors, ESTIMATORS, journal_outcomes)
        saved = self.store.load()
        self.checkpoint.restore(saved)
        self.book = AlarmBook(AlarmsSpec(), self.store.identity)
        if ALARMS in saved.sections:
            self.book.restore(saved.sections[ALARMS])
        self.offset = 0

    def feed(self, *events):
        pipeline = self.stream.pipeline
        step = pipeline.advance(events, self.store.fetch(pipeline.needs(events)))
        self.store.keep(step)
        self.checkpoint.take(step)
        self.offset += len(events)
        return list(step.outcomes)

    def until(self, at_ms):
        self.feed(Progress(*PREDICTIONS, at_ms, False), Progress(*LABELS, at_ms, False))

    def commit(self, alarms=()):
        notices = self.book.announce(alarms, 6_000, self.monitors.first_ms, behind=False)
        sections = {
            POSITIONS: Places({PREDICTIONS: self.offset, LABELS: self.offset + 1}).encode(),
            ALARMS: self.book.state(),
        }
        outbox = {notice.id: new_entry(notice, ["oncall", "chat"]) for notice in notices}
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
    life.feed(*digested([label("early", "x", 20_000), Label("bare", "x", 20_000), Label("19", "x", 20_000)]))
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
