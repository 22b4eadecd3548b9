"""A compiled join in RocksDB most of whose entries are cold: what comes back, and what tools say of it."""

from __future__ import annotations

import json
import tarfile
from random import Random

import pytest

from streamwatch.admin.state_show import overview
from streamwatch.admin.state_verify import verified
from streamwatch.core.commit.batch import CommitBatch
from streamwatch.core.commit.checkpoint import Checkpoint
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.compiled.cold.store import ENTRIES, MANIFEST, ColdDamaged
from streamwatch.core.join.compiled.outside.overflow import Overflow
from streamwatch.core.join.compiled.outside.spec import OverflowSpec
from streamwatch.core.pipelines.column_pipeline import ColumnPipeline
from streamwatch.core.pipelines.pipeline import Pipeline
from streamwatch.core.specs import MonitorsSpec
from streamwatch.edge.keys import bytes_of_keys
from streamwatch.edge.stores.rocksdb import ColumnStore
from tests.core.join.compiled.cold.cold_model import SMALL
from tests.core.join.compiled.outside.cold_streams import alive_outside
from tests.core.join.compiled.streams import LENGTH, Joined, a_case
from tests.edge.stores.rocksdb.stream import digested, rocks_spec
from tests.edge.stores.rocksdb.test_column_store import JOIN, Columns, Life, a_life, entries_of
from tests.golden.test_released_states import FOLDER
from tests.tiers import by_tier

STATES = by_tier(fast=3, default=25, everything=300)
TABLE = OverflowSpec(1, 4, SMALL)
BY_TOPIC = (
    *("topic_predictions_total", "topic_predictions_joined_total"),
    *("topic_labels_total", "topic_label_results_total"),
)
"""Series that earlier schemas did not know: nobody counted of which topic anything was."""


class ColdColumns(Columns):
    """A compiled join over a directory with a small table."""

    def _begin(self):
        saved = self.store.load()
        self.commits = saved.commits
        start_ms = self.pipeline.start_ms
        overflow = Overflow(saved.runs, TABLE)
        self.pipeline = ColumnPipeline(self.spec, self.monitors, bytes_of_keys, overflow)
        self.pipeline.start_ms = start_ms
        if saved.commits:
            self.pipeline.restore(saved.sections["pipeline"], saved.columns)

    def commit(self):
        self.commits += 1
        sections = {"pipeline": self.pipeline.snapshot()}
        columns, runs = self.pipeline.changes(self.commits), self.pipeline.run_changes()
        self.store.commit(CommitBatch(sections, columns=columns, runs=runs))
        self.store.flush()


class ColdLife(Life):
    """A daemon's life whose join has a small table."""

    def __init__(self, directory):
        self.store = ColumnStore.open(rocks_spec(directory, JOIN))
        self.monitors = EstimatorSet(MonitorsSpec())
        saved = self.store.load()
        overflow = Overflow(saved.runs, OverflowSpec(40, 10, SMALL))
        self.pipeline = ColumnPipeline(JOIN, self.monitors, bytes_of_keys, overflow)
        self.checkpoint = Checkpoint(self.pipeline, self.monitors, MonitorsSpec(), 50)
        self.checkpoint.restore(saved)


def altered(directory, kind, change):
    """Change the first value of a kind in the runs."""
    store = ColumnStore.open(rocks_spec(directory, JOIN))
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
        rows = Joined(lambda monitors, spec=spec: Pipeline(spec, monitors), start_ms)
        columns = ColdColumns(tmp_path / str(seed), spec, start_ms)
        for start in range(0, LENGTH, 15):
            rows.feed(events[start : start + 15])
            columns.feed(events[start : start + 15])
            while (merge := columns.pipeline.plan_merge()) is not None:
                merge.run()
                columns.pipeline.finish_merge(merge)
            columns.commit()
            outside += columns.pipeline.entries_outside
            if chance.random() < 0.4:
                columns.reopen()
            assert columns.said() == rows.said()
        columns.store.close()
    assert outside > 8 * STATES


def test_show_and_verify_read_what_is_outside_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.edge.stores.rocksdb.test_column_store.Life", ColdLife)
    life = a_life(tmp_path / "state")
    assert life.pipeline.entries_outside > 150
    life.store.close()
    seen = overview(tmp_path / "state")
    assert {model.model: model.pending for model in seen.models} == {"m": 80, "n": 120}
    assert {model.model: model.ages[:3] for model in seen.models} == {"m": (0, 80, 0), "n": (0, 120, 0)}
    assert {model.model: model.oldest_seconds for model in seen.models} == {"m": 199.0, "n": 200.0}
    checks = list(verified(tmp_path / "state"))
    assert [check.faults for check in checks if not check.good] == []
    entries = next(check for check in checks if check.what == "entries in columns")
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
    monkeypatch.setattr("tests.edge.stores.rocksdb.test_column_store.Life", ColdLife)
    a_life(tmp_path / "state").store.close()
    altered(tmp_path / "state", kind, change)
    wrong = [check for check in verified(tmp_path / "state") if not check.good]
    assert [check.what for check in wrong] == ["entries in columns"]
    assert words in wrong[0].faults[0]
    if kind == MANIFEST:
        with pytest.raises(ColdDamaged, match=words):
            ColdLife(tmp_path / "state")


def test_a_packed_state_of_schema_3_says_what_it_said_and_its_entries_may_leave_the_table(tmp_path):
    with tarfile.open(FOLDER / "columns-3.tar.gz") as archive:
        archive.extractall(tmp_path / "state", filter="data")
    said = json.loads((FOLDER / "columns-3.json").read_text())
    life = ColdLife(tmp_path / "state")
    assert life.store.identity == said["identity"]
    assert [[key.hex(), *rest] for key, *rest in entries_of(life.pipeline)] == said["alive"]
    series = {
        each.name: [[list(key), value] for key, value in each.samples]
        for each in life.pipeline.join_families()
    }
    assert series.pop("join_entries") == [[["memory"], len(said["alive"])], [["disk"], 0]]
    assert [series.pop(name) for name in BY_TOPIC] == [[]] * len(BY_TOPIC)
    assert series == said["series"]
    life.feed()
    life.commit()
    assert life.pipeline.entries_outside > 150
    life.store.close()
    again = ColdLife(tmp_path / "state")
    found = entries_of(again.pipeline) + alive_outside(again.pipeline, again.store._runs)
    assert [[key.hex(), *rest] for key, *rest in sorted(found)] == said["alive"]
    again.store.close()


def test_a_packed_state_of_schema_4_with_most_entries_in_cold_runs_says_what_it_said(tmp_path):
    with tarfile.open(FOLDER / "columns-4.tar.gz") as archive:
        archive.extractall(tmp_path / "state", filter="data")
    said = json.loads((FOLDER / "columns-4.json").read_text())
    life = ColdLife(tmp_path / "state")
    assert (life.store.identity, life.pipeline.entries_outside) == (said["identity"], said["outside"])
    found = entries_of(life.pipeline) + alive_outside(life.pipeline, life.store._runs)
    assert [[key.hex(), *rest] for key, *rest in sorted(found)] == said["alive"]
    series = {
        each.name: [[list(key), value] for key, value in each.samples]
        for each in life.pipeline.join_families()
    }
    assert series.pop("join_entries") == [[["memory"], 32], [["disk"], 208]]
    assert [series.pop(name) for name in BY_TOPIC] == [[]] * len(BY_TOPIC)
    assert series == said["series"]
    life.feed()
    life.commit()
    life.store.close()
    again = ColdLife(tmp_path / "state")
    again.store.close()
