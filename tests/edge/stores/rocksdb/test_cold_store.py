"""A compiled join in RocksDB most of whose entries are cold: what comes back, and what tools say of it."""

from __future__ import annotations

import pytest

from streamwatch.admin.state_show import overview
from streamwatch.admin.state_verify import verified
from streamwatch.core.join.cold.overflow import OverflowSpec
from streamwatch.core.join.cold.store import ENTRIES, MANIFEST, ColdDamaged
from streamwatch.edge.stores.rocksdb import RocksStore
from tests.core.join.cold.cold_model import SMALL
from tests.edge.stores.rocksdb.joins import Life, a_life, outside_of_lives
from tests.edge.stores.rocksdb.stream import rocks_spec
from tests.tiers import by_tier, seeds

STATES = seeds(0, by_tier(fast=3, default=25, everything=300))
TABLE, LARGER_TABLE = OverflowSpec(1, 4, SMALL), OverflowSpec(40, 10, SMALL)


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
    assert outside_of_lives(tmp_path, STATES, TABLE) > 2 * len(STATES)


def test_show_and_verify_read_what_is_outside_the_table(tmp_path):
    life = a_life(tmp_path / "state", LARGER_TABLE)
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
def test_a_damaged_run_is_refused_by_name(tmp_path, kind, change, words):
    a_life(tmp_path / "state", LARGER_TABLE).store.close()
    altered(tmp_path / "state", kind, change)
    wrong = [check for check in verified(tmp_path / "state") if not check.good]
    assert [check.what for check in wrong] == ["entries"]
    assert words in wrong[0].faults[0]
    if kind == MANIFEST:
        with pytest.raises(ColdDamaged, match=words):
            Life(tmp_path / "state", LARGER_TABLE)
