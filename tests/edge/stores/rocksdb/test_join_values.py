"""The values of the join in RocksDB: what comes back, how large they are, and what is refused."""

from __future__ import annotations

from random import Random

import pytest

from streamwatch.admin.state_show import overview
from streamwatch.admin.state_verify import verified
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.durable.packed import DEDUP, WAITING, PackedError
from streamwatch.core.merge import MergeProgress
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.ports import CommitBatch
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.daemon import MERGE, POSITIONS, SourcePositions
from streamwatch.daemon.source_positions import encoded_progress
from streamwatch.edge.keys import bytes_of_keys
from streamwatch.edge.stores.rocksdb import RocksStore
from streamwatch.edge.stores.rocksdb.database import size_on_disk
from tests.core.join.join_stream import RecordingEstimatorSet, alive, clocked, label, predict, tick
from tests.core.join.streams import LENGTH, Joined, a_case
from tests.edge.stores.rocksdb.stream import digested, rocks_spec
from tests.tiers import by_tier

STATES = by_tier(fast=3, default=25, everything=300)
JOIN = JoinSpec(horizon_ms=900_000_000, dedup_horizon_ms=900_000_000)


class Columns(Joined):
    """A compiled join over a directory."""

    def __init__(self, directory, spec, start_ms=None):
        self.spec, self.directory = spec, directory
        super().__init__(lambda monitors: Pipeline(spec, monitors, bytes_of_keys), start_ms)
        self.store = RocksStore.open(rocks_spec(directory))
        self._begin()

    def _begin(self):
        saved = self.store.load()
        self.commits = saved.commits
        if saved.commits:
            self.pipeline.restore(saved.sections["pipeline"], saved.columns)

    def commit(self):
        self.commits += 1
        sections = {"pipeline": self.pipeline.snapshot()}
        self.store.commit(CommitBatch(sections, columns=self.pipeline.join.changes(self.commits)))
        self.store.flush()

    def reopen(self):
        start_ms = self.pipeline.join.start_ms
        self.store.close()
        self.store = RocksStore.open(rocks_spec(self.directory))
        self.pipeline = Pipeline(self.spec, self.monitors, bytes_of_keys)
        self.pipeline.join.start_ms = start_ms
        self._begin()


def test_what_was_committed_goes_on_and_what_was_not_comes_again(tmp_path):
    for seed in range(STATES):
        chance = Random(seed)
        spec, events, start_ms = a_case(chance)
        events = digested(events)
        one_life = Joined(lambda monitors, spec=spec: Pipeline(spec, monitors, bytes_of_keys), start_ms)
        columns = Columns(tmp_path / str(seed), spec, start_ms)
        for start in range(0, LENGTH, 15):
            one_life.feed(events[start : start + 15])
            columns.feed(events[start : start + 15])
            columns.commit()
            if chance.random() < 0.4:
                columns.reopen()
            assert columns.said() == one_life.said()
        columns.store.close()


def entries_of(pipeline):
    """What is alive of a compiled join."""
    joined = type("Stream", (), {"pipeline": pipeline})
    return alive(joined)


@pytest.mark.parametrize("kind", [WAITING, DEDUP])
def test_a_value_that_is_missing_or_altered_is_refused(tmp_path, kind):
    columns = Columns(tmp_path / "state", JOIN)
    columns.feed(digested([*(predict(str(n), "x") for n in range(30)), *(label(str(n)) for n in range(10))]))
    columns.commit()
    values = dict(columns.store.load().columns)
    key = next(key for key in values if key.startswith(kind))
    snapshot = columns.pipeline.snapshot()
    columns.store.close()
    for wrong in (values[key][:-1], values[key] + b"x", b"\x09" + values[key][1:], b"", None):
        altered = (
            {**values, key: wrong} if wrong is not None else {k: v for k, v in values.items() if k != key}
        )
        fresh = Pipeline(JOIN, RecordingEstimatorSet(), bytes_of_keys)
        with pytest.raises(PackedError, match="expected"):
            fresh.restore(snapshot, sorted(altered.items()))


def test_a_pending_prediction_takes_at_most_40_bytes_on_disk_and_a_settled_one_24(tmp_path):
    columns = Columns(tmp_path / "state", JOIN)
    number = 40_000
    for start in range(0, number, 5_000):
        columns.feed(
            digested(
                predict(str(n), "yes", at=10**12 + n // 5, model=f"model-{n % 3}")
                for n in range(start, start + 5_000)
            )
        )
        columns.commit()
    columns.store._database.compact()
    sizes = {name: columns.store._database.figure(name, "live-sst-files-size") for name in ("columns",)}
    assert sizes["columns"] < 40 * number
    columns.feed(digested(label(str(n), "yes", 10**12 + number, f"model-{n % 3}") for n in range(number)))
    columns.commit()
    columns.store._database.compact()
    assert columns.store._database.figure("columns", "live-sst-files-size") < 24 * number
    columns.store.close()
    assert size_on_disk(tmp_path / "state") > 0


class Life:
    """A daemon's life on a directory, without Kafka."""

    def __init__(self, directory):
        self.store = RocksStore.open(rocks_spec(directory))
        self.monitors = EstimatorSet(MonitorsSpec())
        self.pipeline = Pipeline(JOIN, self.monitors, bytes_of_keys)
        self.checkpoint = Checkpoint(self.pipeline, self.monitors, MonitorsSpec(), 50)
        self.checkpoint.restore(self.store.load())

    def feed(self, *events):
        events = digested(clocked(events, self.pipeline.clock_ms))
        self.checkpoint.take(self.pipeline.advance(events))

    def commit(self):
        progress = MergeProgress({}, {}, None, self.pipeline.clock_ms)
        sections = {POSITIONS: SourcePositions().encode(), MERGE: encoded_progress(progress)}
        self.store.commit(self.checkpoint.changes(sections))
        self.store.flush()


def a_life(directory):
    life = Life(directory)
    for n in range(120):
        life.feed(predict(f"a{n}", "x", n * 1_000, "m"), predict(f"a{n}", "y", n * 1_000, "n"))
        if n % 3 == 0:
            life.feed(label(f"a{n}", "x", n * 1_000, "m"))
        if n % 20 == 0:
            life.commit()
    life.feed(tick(200_000))
    life.commit()
    return life


def test_show_counts_what_waits_of_a_state_and_for_how_long(tmp_path):
    a_life(tmp_path / "state").store.close()
    seen = overview(tmp_path / "state")
    assert {model.model: model.pending for model in seen.models} == {"m": 80, "n": 120}
    # At 200 s: of `n` those of second 140 on, there are none, are up to a minute old, the others ten.
    assert {model.model: model.ages[:3] for model in seen.models} == {"m": (0, 80, 0), "n": (0, 120, 0)}
    assert {model.model: model.oldest_seconds for model in seen.models} == {"m": 199.0, "n": 200.0}
    assert seen.dedup_entries == 40
    assert seen.journal["outcomes"] > 0


def test_what_verify_finds_of_a_state(tmp_path):
    life = a_life(tmp_path / "state")
    life.store.close()
    checks = list(verified(tmp_path / "state"))
    assert [check.what for check in checks if not check.good] == []
    entries = next(check for check in checks if check.what == "entries")
    assert entries.found.startswith("200 predictions and 0 labels wait, 40 dedup entries")
    again = Life(tmp_path / "state")
    database = again.store._database
    key = next(key for key, _ in database.items("columns") if key.startswith(WAITING))
    with database.batch() as batch:
        database.into("columns", batch)
        del batch[key]
    again.store.close()
    wrong = [check for check in verified(tmp_path / "state") if not check.good]
    assert [check.what for check in wrong] == ["entries"]
    assert "expected" in wrong[0].faults[0]


def test_estimators_go_on_from_a_journal_in_columns(tmp_path):
    life = a_life(tmp_path / "state")
    expected = {model: life.monitors.snapshot(model) for model in life.monitors.models()}
    totals = life.monitors.totals()
    life.store.close()
    again = Life(tmp_path / "state")
    assert {model: again.monitors.snapshot(model) for model in again.monitors.models()} == expected
    assert again.monitors.totals() == totals
    again.store.close()
