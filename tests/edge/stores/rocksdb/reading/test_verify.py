"""Each contradiction a closed state can hold is found and named; a state as it was left holds none."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.events import Label
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.stores.errors import StateDamaged
from streamwatch.edge.stores.rocksdb.reading.inspect import Inspection
from streamwatch.edge.stores.rocksdb.reading.verify import survey
from tests.core.join.join_stream import label, predict
from tests.core.join.test_join_model import a_script, a_spec
from tests.edge.stores.rocksdb.stream import DurableStream, digested
from tests.edge.stores.rocksdb.test_model import batches
from tests.edge.stores.rocksdb.written_state import altering, put
from tests.tiers import examples


def surveyed(directory, at_once=4_000_000):
    state = Inspection(directory, closed=True)
    try:
        return survey(state, at_once=at_once)
    finally:
        state.close()


def found(census):
    return [*census.records.named, *census.index.named, *census.dedup_faults.named]


@pytest.fixture
def directory(tmp_path):
    """300 that wait, 100 resolved over two commits, labels of every form."""
    stream = DurableStream(tmp_path / "state", JoinSpec())
    stream.feed(*digested(predict(str(n), at=n * 10) for n in range(400)))
    stream.commit()
    stream.feed(*digested(label(str(n), at=n * 10) for n in range(100)))
    stream.feed(*digested([label("early"), Label("bare", "x", 5), Label("300", "x", 5)]))
    stream.commit()
    stream.store.close()
    return tmp_path / "state"


def entries(directory, family):
    state = Inspection(directory)
    try:
        return list(state.items(family))
    finally:
        state.close()


def test_a_state_as_it_was_left_holds_no_contradiction_and_is_counted(directory):
    census = surveyed(directory)
    assert found(census) == []
    assert census.ids == 402
    assert sum(census.waiting.values()) == 299 + 3
    assert sum(census.dedup_entries.values()) == 101
    assert census.named - census.settled == 299 + 3
    assert 0 < census.settled <= 101


@pytest.mark.slow
@settings(max_examples=examples(0.6))
@given(st.integers(0, 2**32), st.integers(0, 300), st.sampled_from([1, 7, 4_000_000]))
def test_no_run_of_the_join_leaves_a_contradiction_however_it_is_cut(seed, length, at_once):
    chance = Random(seed)
    directory = Path(tempfile.mkdtemp())
    stream = DurableStream(directory / "state", a_spec(chance), chance.choice([0, 5, 1000]))
    often = chance.choice([1.0, 0.3])
    try:
        for batch in batches(chance, digested(a_script(chance, 300)[:length])):
            stream.feed(*batch)
            if chance.random() < often:
                stream.commit()
        stream.commit()
        stream.store.close()
        census = surveyed(directory / "state", at_once)
        assert found(census) == []
        dedup = stream.pipeline._join.predictions.dedup
        assert sum(census.dedup_entries.values()) == len(dedup)
        pending = sum(count for (state, _), count in census.waiting.items() if state == 0)
        assert pending == stream.pipeline._join.predictions.pending
    finally:
        stream.store.close()
        shutil.rmtree(directory)


def test_a_lost_entry_of_the_index_is_named_with_those_that_wait_for_it(directory):
    key, ids = next((k, v) for k, v in entries(directory, "expiry") if k[0] == 0)
    with altering(directory) as database:
        put(database, "expiry", key, None)
    census = surveyed(directory)
    waiting = [start for start in range(0, len(ids), 16) if ids[start : start + 16].hex()]
    assert 0 < census.index.count <= len(waiting)
    assert "and no entry of the index names it" in census.index.named[0]


def test_an_id_lost_from_an_entry_of_the_index_is_named(directory):
    key, ids = next((k, v) for k, v in entries(directory, "expiry") if k[0] == 1)
    with altering(directory) as database:
        put(database, "expiry", key, ids[16:] or b"\0" * 16)
    census = surveyed(directory)
    # early_horizon counts from the clock, which the last prediction moved to 3.99 s
    assert census.index.named == [f"id {ids[:16].hex()} waits until 3604, and no entry of the index names it"]


def test_an_id_named_twice_by_the_index_is_named(directory):
    key, ids = next((k, v) for k, v in entries(directory, "expiry") if k[0] == 2)
    with altering(directory) as database:
        put(database, "expiry", key, ids + ids[:16])
    assert found(surveyed(directory)) == [f"id {ids[:16].hex()} is named twice by the index"]


def test_an_entry_of_the_index_that_nobody_wrote_is_named(directory):
    with altering(directory) as database:
        put(database, "expiry", b"\x07" + b"\0" * 16, b"")
        put(database, "expiry", b"\x00" + b"\xff" * 16, b"")
    assert [line.partition(" of the index ")[2] for line in found(surveyed(directory))] == [
        "is none that was written"
    ] * 2


def test_a_dedup_entry_without_its_dedup_key_is_named(directory):
    key, ids = entries(directory, "dedup")[0]
    with altering(directory) as database:
        put(database, "dedup", key, ids[16:])
    assert found(surveyed(directory)) == [
        f"id {ids[:16].hex()} has a dedup entry of generation 0, and lies in no dedup key of it"
    ]


def test_a_record_that_cannot_be_decoded_is_named(directory):
    key, value = entries(directory, "entries")[7]
    with altering(directory) as database:
        put(database, "entries", key, value[:-3])
    census = surveyed(directory)
    assert census.records.named[0].startswith(f"the record of id {key.hex()} cannot be decoded")


def test_a_name_that_nobody_knows_is_named(directory):
    key, _ = entries(directory, "entries")[7]
    with altering(directory) as database:
        put(database, "entries", key, b"\x95\x04\xcd\x03\xe7\x01\x00\x01")  # [4, 999, 1, 0, 1]
    assert f"the record of id {key.hex()} cannot be decoded" in surveyed(directory).records.named[0]


def test_a_key_that_is_no_digest_is_named(directory):
    with altering(directory) as database:
        put(database, "entries", b"short", b"\x00")
    assert surveyed(directory).records.named == ["id 73686f7274 has 5 bytes, expected 16"]


def test_only_the_first_contradictions_are_named_and_all_are_counted(directory):
    with altering(directory) as database:
        for key, _ in entries(directory, "dedup"):
            put(database, "dedup", key, None)
    census = surveyed(directory)
    assert census.dedup_faults.count == 101
    assert len(census.dedup_faults.named) == 5


@pytest.mark.slow
@pytest.mark.parametrize("place", [0.001, 0.02, 0.5, 0.9])
def test_flipped_bits_of_what_is_kept_are_found(tmp_path, place):
    stream = DurableStream(tmp_path / "state", JoinSpec())
    for start in range(0, 8000, 1000):
        stream.feed(*digested(predict(str(n), at=n) for n in range(start, start + 1000)))
        stream.commit()
    stream.store._database.compact()
    stream.store.close()
    largest = max((tmp_path / "state").glob("*.sst"), key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[int(len(content) * place)] ^= 1
    largest.write_bytes(content)
    with pytest.raises(StateDamaged, match=str(largest)):
        surveyed(tmp_path / "state")
