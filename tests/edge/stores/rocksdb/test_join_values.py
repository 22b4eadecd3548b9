"""The values of the join in RocksDB: what comes back, how large they are, and what is refused."""

from __future__ import annotations

import pytest

from streamwatch.admin.state_show import overview
from streamwatch.admin.state_verify import verified
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.packed import DEDUP, WAITING
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.edge.keys import bytes_of_keys
from streamwatch.edge.stores.rocksdb.database import size_on_disk
from tests.core.join.join_stream import RecordingEstimatorSet, alive, label, predict
from tests.edge.stores.rocksdb.joins import JOIN, Columns, Life, a_life, outside_of_lives
from tests.edge.stores.rocksdb.stream import digested
from tests.tiers import by_tier, seeds

STATES = seeds(0, by_tier(fast=3, default=25, everything=300))


def test_what_was_committed_goes_on_and_what_was_not_comes_again(tmp_path):
    outside_of_lives(tmp_path, STATES)


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
