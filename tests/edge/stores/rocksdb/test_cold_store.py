"""A compiled join in RocksDB most of whose entries are cold: what comes back, and what tools say of it."""

from __future__ import annotations

from random import Random

import pytest

from streamwatch.admin.state_show import overview
from streamwatch.admin.state_verify import verified
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.cold.overflow import Overflow, OverflowSpec
from streamwatch.core.join.cold.store import ENTRIES, MANIFEST, ColdDamaged
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.ports import CommitBatch
from streamwatch.core.specs import MonitorsSpec
from streamwatch.edge.keys import bytes_of_keys
from streamwatch.edge.stores.rocksdb import RocksStore
from tests.core.join.cold.cold_model import SMALL
from tests.core.join.streams import LENGTH, Joined, a_case
from tests.edge.stores.rocksdb.stream import digested, rocks_spec
from tests.edge.stores.rocksdb.test_join_values import JOIN, Columns, Life, a_life
from tests.tiers import by_tier

STATES = by_tier(fast=3, default=25, everything=300)
TABLE = OverflowSpec(1, 4, SMALL)


class ColdColumns(Columns):
    """A compiled join over a directory with a small table."""

    def _begin(self):
        saved = self.store.load()
        self.commits = saved.commits
        start_ms = self.pipeline.join.start_ms
        overflow = Overflow(saved.runs, TABLE)
        self.pipeline = Pipeline(self.spec, self.monitors, bytes_of_keys, overflow)
        self.pipeline.join.start_ms = start_ms
        if saved.commits:
            self.pipeline.restore(saved.sections["pipeline"], saved.columns)

    def commit(self):
        self.commits += 1
        sections = {"pipeline": self.pipeline.snapshot()}
        columns, runs = self.pipeline.join.changes(self.commits), self.pipeline.join.run_changes()
        self.store.commit(CommitBatch(sections, columns=columns, runs=runs))
        self.store.flush()


class ColdLife(Life):
    """A daemon's life whose join has a small table."""

    def __init__(self, directory):
        self.store = RocksStore.open(rocks_spec(directory))
        self.monitors = EstimatorSet(MonitorsSpec())
        saved = self.store.load()
        overflow = Overflow(saved.runs, OverflowSpec(40, 10, SMALL))
        self.pipeline = Pipeline(JOIN, self.monitors, bytes_of_keys, overflow)
        self.checkpoint = Checkpoint(self.pipeline, self.monitors, MonitorsSpec(), 50)
        self.checkpoint.restore(saved)


def altered(directory, kind, change):
    """Change the first value of a kind in the runs."""
    store = RocksStore.open(rocks_spec(directory))
    database = store._database
    key, value = next((key, value) for key, value in database.items("runs") if key.startswith(kind))
    with database.batch() as batch:
        database.into("runs", batch)
        batch[key] = change(value)
    store.close()


def test_what_was_committed_goes_on_and_what_was_not_comes_again(tmp_path):
    outside = 0
    for seed in range(STATES):
        chance = Random(seed)
        spec, events, start_ms = a_case(chance)
        events = digested(events)
        one_life = Joined(lambda monitors, spec=spec: Pipeline(spec, monitors, bytes_of_keys), start_ms)
        columns = ColdColumns(tmp_path / str(seed), spec, start_ms)
        for start in range(0, LENGTH, 15):
            one_life.feed(events[start : start + 15])
            columns.feed(events[start : start + 15])
            while (merge := columns.pipeline.join.plan_merge()) is not None:
                merge.run()
                columns.pipeline.join.finish_merge(merge)
            columns.commit()
            outside += columns.pipeline.join.entries_outside
            if chance.random() < 0.4:
                columns.reopen()
            assert columns.said() == one_life.said()
        columns.store.close()
    assert outside > 8 * STATES


def test_show_and_verify_read_what_is_outside_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.edge.stores.rocksdb.test_join_values.Life", ColdLife)
    life = a_life(tmp_path / "state")
    assert life.pipeline.join.entries_outside > 150
    life.store.close()
    seen = overview(tmp_path / "state")
    assert {model.model: model.pending for model in seen.models} == {"m": 80, "n": 120}
    assert {model.model: model.ages[:3] for model in seen.models} == {"m": (0, 80, 0), "n": (0, 120, 0)}
    assert {model.model: model.oldest_seconds for model in seen.models} == {"m": 199.0, "n": 200.0}
    checks = list(verified(tmp_path / "state"))
    assert [check.faults for check in checks if not check.good] == []
    entries = next(check for check in checks if check.what == "entries")
    assert entries.found.startswith("200 predictions and 0 labels wait, 40 dedup entries")
    assert "cold runs" in entries.found


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        (ENTRIES, lambda value: value[:-1], "cold entries is not what was written"),
        (MANIFEST, lambda _: b"\xc1", "the manifest of run"),
    ],
    ids=["a_block", "a_manifest"],
)
def test_a_damaged_run_is_refused_by_name(tmp_path, monkeypatch, kind, change, words):
    monkeypatch.setattr("tests.edge.stores.rocksdb.test_join_values.Life", ColdLife)
    a_life(tmp_path / "state").store.close()
    altered(tmp_path / "state", kind, change)
    wrong = [check for check in verified(tmp_path / "state") if not check.good]
    assert [check.what for check in wrong] == ["entries"]
    assert words in wrong[0].faults[0]
    if kind == MANIFEST:
        with pytest.raises(ColdDamaged, match=words):
            ColdLife(tmp_path / "state")
