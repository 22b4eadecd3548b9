"""What the durable store keeps, what it lets go, and what it says of itself."""

from __future__ import annotations

from itertools import pairwise

import pytest

from streamwatch.core.events import Label, Prediction
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.stores.rocksdb import RocksStore
from streamwatch.edge.stores.rocksdb.reading.inspect import Inspection
from streamwatch.edge.stores.rocksdb.reading.verify import faults
from streamwatch.edge.stores.rocksdb.rows.names import MAX_NAMES, Names
from tests.core.join.join_stream import Stream, label, predict
from tests.edge.stores.rocksdb.stream import DurableStream, alive_now, digested, rocks_spec


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
    spec = rocks_spec(tmp_path / "deep" / "state", JoinSpec())
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
        held={b"2": b"two", b"1": b"one"},
        outbox={"alarm-1": b"!"},
    )
    stream.commit(models={"n": None}, held={b"2": None}, outbox={"alarm-1": None, "alarm-2": b"?"})
    stream.commit(journal=b"three")
    saved = stream.reopen()
    assert saved.commits == 3
    assert saved.models == {"m": b"snapshot"}
    assert saved.journal == [(1, b"one"), (3, b"three")]
    assert saved.held == {b"1": b"one"}
    assert saved.outbox == {"alarm-2": b"?"}


def test_what_waits_for_its_order_comes_back_in_the_order_of_keys(stream):
    stream.commit(held={b"b": b"", b"\xff": b"", b"a": b""})
    stream.commit(held={b"\x00": b""})
    assert list(stream.reopen().held) == [b"\x00", b"a", b"b", b"\xff"]


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


def test_what_resolves_between_two_commits_never_waits_on_disk(stream):
    stream.feed(*digested(pairs(0, 100)))
    stream.feed(*digested([predict("late")]))
    stream.commit()
    stream.store.close()
    state = Inspection(stream.rocks.directory)
    named = [key for due in state.due() for key in due.ids]
    state.close()
    assert named == [event.id for event in digested([predict("late")])]


def test_a_record_keeps_every_field(tmp_path):
    spec = JoinSpec(order="prediction_time")
    memory, durable = Stream(spec), DurableStream(tmp_path / "state", spec, cache_entries=0)
    events = digested(
        [
            predict("known", at=1),
            label("known", at=2),
            predict("plain", "naïve class", at=1_750_000_000_123),
            predict("own", at=5000, timestamp_ms=-1, scores={"x": 0.1 + 0.2, "naïve": 1e-300}),
            predict("both", at=7, timestamp_ms=2**53),
            predict("both", "y", at=2500, model="n", scores={}),
            label("early", "w", at=11, timestamp_ms=0),
            Label(predict("bare").id, "v", 12),
            predict("bare", at=13),
        ]
    )
    for stream in (memory, durable):
        stream.feed(*events)
    durable.commit()
    durable.reopen()
    assert alive_now(durable) == alive_now(memory)
    durable.store.close()


def test_models_and_classes_beyond_the_bound_are_written_out():
    names = Names([f"name {number}" for number in range(MAX_NAMES)])
    assert names.number("one more") == "one more"
    assert names.name("one more") == "one more"
    assert names.name(names.number("name 7")) == "name 7"
    assert len(names.names) == MAX_NAMES


def test_changed_horizons_leave_older_deadlines_alone(tmp_path):
    stream = DurableStream(tmp_path / "state", JoinSpec(horizon_ms=10_000, early_horizon_ms=10_000))
    stream.feed(*digested([predict("old", at=0), label("early", at=0)]))
    stream.commit()
    stream.spec = JoinSpec(horizon_ms=60_000, early_horizon_ms=60_000)
    stream.rocks = rocks_spec(tmp_path / "state", stream.spec)
    stream.reopen()
    stream.feed(*digested([predict("new", at=0), label("new early", at=0)]))
    stream.commit()
    stream.reopen()
    stream.until(10_000)
    assert stream.counters.predictions_expired == 1
    assert stream.counters.with_model.orphaned == 1
    stream.until(60_000)
    assert stream.counters.predictions_expired == 2
    assert stream.counters.with_model.orphaned == 2
    stream.store.close()


def left_on_disk(stream):
    return len(list(stream.store._database.items("entries"))), len(
        list(stream.store._database.items("dedup"))
    )


def test_dead_dedup_entries_are_cleared_a_bounded_number_per_commit_also_after_a_restart(stream):
    for start in range(0, 5000, 500):
        stream.feed(*digested(pairs(start, 500)))
        stream.commit()
    stream.until(20_000)
    stream.commit()
    left = [left_on_disk(stream)[0]]
    stream.reopen()
    while left[-1]:
        stream.commit()
        left.append(left_on_disk(stream)[0])
        assert len(left) < 50
    assert left_on_disk(stream) == (0, 0)
    assert max(before - after for before, after in pairwise(left)) <= 500


def test_a_dead_dedup_entry_that_was_not_cleared_yet_does_not_speak(stream):
    for start in range(0, 5000, 500):
        stream.feed(*digested(pairs(start, 500)))
        stream.commit()
    stream.until(20_000)
    stream.commit()
    assert left_on_disk(stream)[0] > 0
    stream.reopen()
    assert len(stream.feed(*digested(pairs(0, 5000, 20_000)))) == 5000
    assert stream.counters.predictions_duplicate == 0


def test_memory_holds_no_more_ids_than_it_may_and_those_due_next(tmp_path):
    stream = DurableStream(tmp_path / "state", JoinSpec(), cache_entries=100)
    for start in range(0, 20_000, 500):
        stream.feed(*digested(predict(str(n), at=n * 1000) for n in range(start, start + 500)))
        stream.commit()
    for _ in range(3):
        stream.feed()
        stream.commit()
    assert len(stream.store._records.by_id) <= 100 + stream.rocks.expiry_cache_entries
    assert len(stream.store._caches[0].index.buckets) <= stream.rocks.expiry_cache_entries
    assert stream.value("oldest_pending_timestamp_seconds") == 0
    stream.store.close()


def test_much_that_falls_due_at_once_leaves_room_for_what_was_touched_last(tmp_path):
    stream = DurableStream(tmp_path / "state", JoinSpec(), cache_entries=100)
    stream.feed(*digested(predict(str(n)) for n in range(500)))
    stream.commit()
    later = digested(predict(f"later {n}", at=10_000) for n in range(50))
    stream.feed(*later)
    stream.commit()
    assert {event.id for event in later} <= stream.store._records.by_id.keys()
    stream.store.close()


def test_index_entries_are_removed_once_nothing_they_name_waits(stream):
    stream.feed(*digested(predict(str(n), at=n) for n in range(1000)))
    stream.commit()
    stream.feed(*digested(label(str(n), at=n) for n in range(1000)))
    stream.commit()
    stream.reopen()
    stream.feed()
    stream.commit()
    assert list(stream.store._database.items("expiry")) == []


def test_an_id_that_is_no_digest_is_a_bug(stream):
    stream.feed(Prediction("plain id", "m", "x", 0))
    with pytest.raises(ValueError, match="a digest of 16 bytes, got 'plain id'"):
        stream.commit()


def test_families_say_how_much_there_is(stream):
    stream.feed(*digested(pairs(0, 10)))
    stream.commit()
    values = {family.name: family.samples[0][1] for family in stream.store.families()}
    assert values["state_cache_entries"] == 10
    assert values["state_entries"] == 10


def test_a_verified_state_has_no_faults_and_a_missing_entry_or_dedup_key_is_one(stream):
    stream.feed(*digested([*pairs(0, 3), predict("waits"), label("early"), Label("bare", "x", 0)]))
    stream.commit()
    database = stream.store._database
    entry, dedup_key = next(database.items("expiry"))[0], next(database.items("dedup"))[0]
    stream.store.close()
    assert found(stream) == []
    stream.reopen()
    stream.store._database._families["expiry"].delete(entry)
    stream.store._database._families["dedup"].delete(dedup_key)
    stream.store.close()
    assert len([fault for fault in found(stream) if "no entry of the index names it" in fault]) == 1
    assert len([fault for fault in found(stream) if "lies in no dedup key" in fault]) == 3


def found(stream):
    state = Inspection(stream.rocks.directory)
    try:
        return list(faults(state))
    finally:
        state.close()


def test_a_commit_after_none_of_the_records_changed_still_counts(stream):
    stream.commit()
    stream.commit()
    assert stream.reopen().commits == 2
