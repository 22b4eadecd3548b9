"""What the durable store keeps, what it lets go, and what it says of itself."""

from __future__ import annotations

import pytest

from streamwatch.core.specs import JoinSpec
from streamwatch.edge.stores.rocksdb import RocksStore
from streamwatch.edge.stores.rocksdb.database import COLD_RUNS, Database
from tests.core.join.join_stream import label, predict
from tests.edge.stores.rocksdb.stream import DurableStream, digested, rocks_spec


@pytest.fixture
def stream(tmp_path):
    stream = DurableStream(tmp_path / "state", JoinSpec(dedup_horizon_ms=8000))
    yield stream
    stream.store.close()


def pairs(start, count, at=0):
    for number in range(start, start + count):
        yield predict(str(number), at=at)
        yield label(str(number), at=at)


def test_a_new_state_has_no_commits_and_an_identity_that_lasts(tmp_path):
    spec = rocks_spec(tmp_path / "deep" / "state")
    store = RocksStore.open(spec)
    identity = store.identity
    assert store.load().commits == 0
    assert store.durable
    store.close()
    again = RocksStore.open(spec)
    assert again.identity == identity
    again.close()


def test_everything_of_a_commit_is_there_again(stream):
    stream.commit(
        models={"m": b"snapshot", "n": b"other"},
        journal=b"one",
        outbox={"alarm-1": b"!"},
    )
    stream.commit(models={"n": None}, outbox={"alarm-1": None, "alarm-2": b"?"})
    stream.commit(journal=b"three")
    saved = stream.reopen()
    assert saved.commits == 3
    assert saved.models == {"m": b"snapshot"}
    assert saved.journal == [(1, b"one"), (3, b"three")]
    assert saved.outbox == {"alarm-2": b"?"}


def test_the_journal_is_cut_at_its_floor_before_and_after_a_restart(stream):
    for entry in (b"one", b"two", b"three", b"four"):
        stream.commit(journal=entry)
    stream.commit(journal_floor=2)
    assert stream.reopen().journal == [(2, b"two"), (3, b"three"), (4, b"four")]
    stream.commit(journal_floor=4)
    assert stream.reopen().journal == [(4, b"four")]


def test_what_was_not_committed_is_forgotten(stream):
    stream.feed(*digested([predict("a")]))
    stream.commit()
    stream.feed(*digested([label("a"), predict("b")]))
    stream.reopen()
    assert len(stream.feed(*digested([label("a")]))) == 1
    assert stream.feed(*digested([label("b")])) == []


def test_families_say_how_much_there_is(stream):
    stream.feed(*digested(pairs(0, 10)))
    stream.commit()
    values = {family.name: family.samples[0][1] for family in stream.store.families()}
    assert values["state_buffered_bytes"] > 0
    assert values["state_bytes"] == 0


def test_a_commit_after_none_of_the_records_changed_still_counts(stream):
    stream.commit()
    stream.commit()
    assert stream.reopen().commits == 2


@pytest.mark.parametrize("family", ["columns", "journal", COLD_RUNS])
def test_values_are_compressed_when_files_are_merged_and_those_of_cold_runs_never(family, tmp_path):
    database, size = Database(tmp_path / "state", 2**20, 2**20), 2**18
    with database.batch() as batch:
        database.replace(family, [(b"key", bytes(size))], batch)
    database.raw.get_column_family(family).flush()
    assert database.figure(family, "live-sst-files-size") > size
    database.compact()
    assert (database.figure(family, "live-sst-files-size") > size) == (family == COLD_RUNS)
    assert database.get(family, b"key") == bytes(size)
    database.close()
