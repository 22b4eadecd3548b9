"""Released records become a row for each event; whatever is counted of records stays counted of records."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from streamwatch.core.events import Decoded, EventGroup, Invalid, Partition, Prediction, Skipped
from streamwatch.core.merge import MergeProgress, Released
from streamwatch.core.merge.elements import EVENTS_PER_TURN, expanded, expanded_in_turns
from streamwatch.core.merge.released import CONTINUED, IN_ORDER
from streamwatch.core.records import OBJECT, PREDICTION, ROW, RecordBatch
from streamwatch.core.vocabulary import Vocabulary

PARTITIONS = (Partition("a", 0), Partition("a", 1), Partition("b", 0))


def prediction(name: str) -> Prediction:
    return Prediction(name, "m", "x", -1)


def random_record(chance: random.Random, n: int) -> Decoded | None:
    """What a record decodes to; None for one that its row says all of."""
    match chance.randrange(5):
        case 0:
            return None
        case 1:
            return Invalid("a", 0, n, "missing_id")
        case 2:
            return EventGroup(())
        case 3:
            return EventGroup((prediction(f"{n}#0"),), tied=1)
        case _:
            size = chance.randrange(2, 6)
            return EventGroup(tuple(prediction(f"{n}#{i}") for i in range(size)), tied=chance.randrange(3))


def released(chance: random.Random, count: int) -> tuple[Released, list[Decoded | None]]:
    """A stretch of the sequence, the first of its records late, and what each of them holds."""
    found = [random_record(chance, n) for n in range(count)]
    rows = np.zeros(count, ROW)
    objects: list[Decoded] = []
    for row, each in zip(rows, found, strict=True):
        row["side"], row["object"] = (PREDICTION, -1) if each is None else (OBJECT, len(objects))
        objects += [] if each is None else [each]
    times = np.sort(np.array([chance.randrange(1_000) for _ in range(count)], np.int64))
    late = np.full(count, IN_ORDER)
    late[: count // 4] = 7
    reasons = np.array([chance.randrange(2) for _ in range(count)], np.uint8)
    places = np.array([chance.randrange(3) for _ in range(count)], np.int64)
    batch = RecordBatch(rows, None, objects, Vocabulary())
    offsets = np.arange(100, 100 + count)
    return Released(batch, PARTITIONS, places, offsets, times, times + 1, late, reasons), found


@pytest.mark.parametrize("seed", range(20))
def test_each_event_has_a_row_and_a_record_is_counted_once_however_it_is_cut(seed: int) -> None:
    chance = random.Random(seed)
    whole, found = released(chance, 40)
    rows = expanded(whole)
    expected: list[tuple[int, object]] = []
    for offset, each in zip(whole.offsets.tolist(), found, strict=True):
        events = each.events or (Skipped(-1),) if isinstance(each, EventGroup) else (each,)
        expected += [(offset, event) for event in events]
    at = rows.records.rows["object"].tolist()
    shown = [None if place < 0 else rows.records.objects[place] for place in at]
    assert list(zip(rows.offsets.tolist(), shown, strict=True)) == expected
    for name in ("places", "times_ms", "clock_ms"):
        by_offset = dict(zip(whole.offsets.tolist(), getattr(whole, name).tolist(), strict=True))
        assert getattr(rows, name).tolist() == [by_offset[offset] for offset, _ in expected]

    at_once, cut = MergeProgress(), MergeProgress()
    at_once.note(rows)
    start = 0
    while start < len(rows):
        stop = rows.end_of_record(start + chance.randrange(1, 4))
        assert rows.lateness_ms[stop - 1] != CONTINUED
        cut.note(rows.part(start, stop))
        start = stop
    assert cut.state() == at_once.state()

    topics = [PARTITIONS[place].topic for place in whole.places.tolist()]
    several = [each for each in found if isinstance(each, EventGroup)]
    assert at_once.evaluated == Counter(topics)
    assert sum(at_once.events.values()) == sum(len(each.events) for each in several) + 40 - len(several)
    assert sum(at_once.skipped.values()) == sum(not each.events for each in several)
    assert sum(at_once.tied.values()) == sum(each.tied for each in several)
    assert sum(at_once.out_of_order.values()) == 10
    assert sum(at_once.corrected.values()) == int((whole.reasons > 0).sum())
    last = whole.offsets[-1]
    assert at_once.last is not None
    assert at_once.last.offset == last


def test_records_of_one_event_each_stay_as_they_are() -> None:
    batch = RecordBatch(np.zeros(3, ROW), None, (), Vocabulary())
    none = np.zeros(3, np.int64)
    plain = Released(batch, PARTITIONS, none, none, none, none, none - 1, none.astype(np.uint8))
    assert expanded(plain) is plain
    progress = MergeProgress()
    progress.note(plain)
    assert progress.evaluated == progress.events == {"a": 3}


def test_records_with_many_events_become_rows_a_few_at_a_time() -> None:
    sizes = (3, EVENTS_PER_TURN + 5, 1, EVENTS_PER_TURN - 1, 1, 2, 0)
    objects: list[Decoded] = [
        EventGroup(tuple(prediction(f"{n}#{i}") for i in range(size))) for n, size in enumerate(sizes)
    ]
    rows = np.zeros(len(sizes), ROW)
    rows["side"], rows["object"] = OBJECT, np.arange(len(sizes))
    order = np.arange(len(sizes))
    stretch = Released(
        RecordBatch(rows, None, objects, Vocabulary()),
        PARTITIONS,
        order * 0,
        order,
        order,
        order,
        np.full(len(sizes), IN_ORDER),
        (order * 0).astype(np.uint8),
    )
    parts = list(expanded_in_turns([stretch]))
    assert [len(part) for part in parts] == [EVENTS_PER_TURN + 8, EVENTS_PER_TURN, 4]
    whole = expanded(stretch)
    assert [o for part in parts for o in part.offsets.tolist()] == whole.offsets.tolist()
    assert [e for part in parts for e in part.records.events()] == whole.records.events()
