"""The store that keeps everything in this process."""

from __future__ import annotations

from itertools import pairwise

from streamwatch.core.events import Label, Prediction
from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import Stream


def pairs(start, count):
    for number in range(start, start + count):
        yield Prediction(str(number), "m", "x", 0)
        yield Label(str(number), "x", 0, "m")


def test_dead_dedup_entries_are_removed_a_bounded_number_per_commit():
    stream = Stream(JoinSpec(dedup_horizon_ms=8000))
    stream.feed(*pairs(0, 5000))
    assert len(stream.store.records()) == 5000
    sizes = []
    stream.until(20_000)
    while stream.store.records():
        stream.feed()
        sizes.append(len(stream.store.records()))
        assert len(sizes) < 200
    assert all(before - after <= 64 for before, after in pairwise(sizes))


def test_a_dead_dedup_entry_that_was_not_removed_yet_does_not_speak():
    stream = Stream(JoinSpec(dedup_horizon_ms=8000))
    stream.feed(*pairs(0, 5000))
    stream.until(20_000)
    assert "0" in stream.store.records()
    assert len(stream.feed(*pairs(0, 5000))) == 5000
    assert stream.value("predictions_duplicate_total") == stream.value("labels_duplicate_total") == 0
    for _ in range(200):
        stream.feed()
    assert len(stream.store.records()) == 5000


def test_settled_entries_do_not_pile_up_behind_one_that_never_settles():
    stream = Stream()
    stream.feed(Prediction("never", "m", "x", 0))
    for start in range(0, 50_000, 500):
        record_ms = start * 100
        stream.feed(*(event for n in range(500) for event in pair(start + n, record_ms + n * 100)))
    pending = stream.store.indices[0]
    assert pending.entries <= 2 * 1 + 4096 + 4 * 1001
    assert len(pending.buckets) <= pending.entries + 1
    assert stream.value("oldest_pending_timestamp_seconds") == 0


def pair(number, record_ms):
    return Prediction(str(number), "m", "x", record_ms), Label(str(number), "x", record_ms, "m")
