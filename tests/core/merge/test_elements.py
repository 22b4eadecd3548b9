"""Released records become a row for each event; whatever is counted of records stays counted of records."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from streamwatch.core.merge import MergeProgress, Released
from streamwatch.core.merge.inbox import KeptBatches
from streamwatch.core.merge.released import (
    CONTINUED,
    EVENTS_PER_TURN,
    IN_ORDER,
    Key,
    expanded,
    expanded_in_turns,
    together,
)
from streamwatch.core.records.batch import (
    OBJECT,
    PREDICTION,
    ROW,
    SEVERAL,
    RecordBatch,
    RecordElements,
    batch_of,
    rows_of,
)
from streamwatch.core.records.events import Decoded, EventGroup, Invalid, Partition, Prediction, Skipped
from streamwatch.core.records.vocabulary import Vocabulary

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


def columns(
    found: list[Decoded | None], offsets: NDArray[np.int64], clock_ms: NDArray[np.int64]
) -> RecordBatch:
    """What these decode to: events of half of the groups are rows, those of the others are objects."""
    some = [EventGroup(()) if each is None else each for each in found]
    batch = batch_of(some, offsets, clock_ms)
    for index, each in enumerate(found):
        if each is None:
            batch.rows[index : index + 1]["side"], batch.rows[index : index + 1]["object"] = PREDICTION, -1
        elif isinstance(each, EventGroup) and index % 2:
            rows = np.zeros(1, ROW)
            rows["side"], rows["object"] = SEVERAL, 0
            own = np.zeros(len(each.events), ROW)
            own["side"], own["object"], own["offset"] = PREDICTION, -1, -5
            own["id_low"] = [1_000 * index + i for i in range(len(own))]
            rows["offset"], rows["record_ms"] = offsets[index], clock_ms[index]
            elements = RecordElements(np.array([len(own)]), own, np.array([each.tied]))
            one = RecordBatch(rows, None, (), batch.vocabulary, elements=elements)
            batch = batch.with_rows(np.array([index]), one)
    return batch


def released(chance: random.Random, count: int) -> tuple[Released, list[Decoded | None]]:
    """A stretch of the sequence, the first of its records late, and what each of them holds."""
    found = [random_record(chance, n) for n in range(count)]
    times = np.sort(np.array([chance.randrange(1_000) for _ in range(count)], np.int64))
    late = np.full(count, IN_ORDER)
    late[: count // 4] = np.arange(count // 4) % 3
    reasons = np.array([chance.randrange(2) for _ in range(count)], np.uint8)
    indices = np.array([chance.randrange(3) for _ in range(count)], np.int64)
    offsets = np.arange(100, 100 + count)
    batch = columns(found, offsets, times + 1)
    return Released(batch, PARTITIONS, indices, offsets, times, times + 1, late, reasons), found


@pytest.mark.parametrize("seed", range(20))
def test_each_event_has_a_row_and_a_record_is_counted_once_however_it_is_cut(seed: int) -> None:
    chance = random.Random(seed)
    whole, found = released(chance, 40)
    rows = expanded(whole)
    expected: list[tuple[int, object]] = []
    for index, (offset, each) in enumerate(zip(whole.offsets.tolist(), found, strict=True)):
        clock_ms = int(whole.clock_ms[index])
        events = each.events or (Skipped(clock_ms),) if isinstance(each, EventGroup) else (each or 0,)
        if isinstance(each, EventGroup) and index % 2 and each.events:
            events = [1_000 * index + i for i in range(len(each.events))]
        expected += [(offset, event) for event in events]
    sides, at = rows.records.rows["side"].tolist(), rows.records.rows["object"].tolist()
    digests = rows.records.rows["id_low"].tolist()
    shown = [
        rows.records.objects[index] if side == OBJECT else digest
        for side, index, digest in zip(sides, at, digests, strict=True)
    ]
    assert list(zip(rows.offsets.tolist(), shown, strict=True)) == expected
    assert rows.records.rows["offset"].tolist() == rows.offsets.tolist()
    assert rows.records.rows["record_ms"].tolist() == rows.clock_ms.tolist()
    for name in ("indices", "times_ms", "clock_ms"):
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

    topics = [PARTITIONS[index].topic for index in whole.indices.tolist()]
    several = [each for each in found if isinstance(each, EventGroup)]
    assert at_once.evaluated == Counter(topics)
    assert sum(at_once.events.values()) == sum(len(each.events) for each in several) + 40 - len(several)
    assert sum(at_once.skipped.values()) == sum(not each.events for each in several)
    assert sum(at_once.tied.values()) == sum(each.tied for each in several)
    assert at_once.out_of_order == Counter(topics[:10])
    assert sum(at_once.lateness_ms.values()) == sum(n % 3 for n in range(10))
    assert sum(at_once.corrected.values()) == int((whole.reasons > 0).sum())
    newest = {PARTITIONS[index]: n for n, index in enumerate(whole.indices.tolist())}
    assert at_once.positions == {partition: 101 + n for partition, n in newest.items()}
    assert at_once.running_ms == {partition: whole.times_ms[n] for partition, n in newest.items()}
    assert at_once.clock_ms == whole.clock_ms[-1]
    assert at_once.last == Key(int(whole.times_ms[-1]), *PARTITIONS[whole.indices[-1]], 139)
    assert at_once.take_newest() == {partition: 100 + n for partition, n in newest.items()}
    assert at_once.take_newest() == {}
    again = MergeProgress.restored(at_once.state(), {"a", "b"})
    assert again.state() == at_once.state()
    fewer = MergeProgress.restored(at_once.state(), {"b"})
    assert (fewer.positions.keys(), fewer.running_ms.keys()) == ({PARTITIONS[2]}, {PARTITIONS[2]})
    assert fewer.evaluated == at_once.evaluated, "what was evaluated of a topic stays counted"


def said_by(batch: RecordBatch) -> list[tuple[int, object]]:
    """Offset of each record with its events, one by one, and with its number of ties."""
    whole = batch.spread()
    rows = whole.batch.rows
    sides, at, low = (rows[name].tolist() for name in ("side", "object", "id_low"))
    objects = whole.batch.objects
    events = [objects[at[k]] if side == OBJECT else low[k] for k, side in enumerate(sides)]
    return [*zip(rows["offset"].tolist(), events, strict=True), *enumerate(whole.tied.tolist())]


def test_of_records_with_several_events_those_that_are_held_are_kept_and_no_others() -> None:
    chance, kept, vocabulary = random.Random(3), KeptBatches(), Vocabulary()
    words, offsets = np.empty((0, 8), np.int64), list[int]()
    expected: dict[int, list[tuple[int, object]]] = {}
    for n in range(8):
        batch = replace(released(chance, 12)[0].records, vocabulary=vocabulary)
        batch.rows["offset"], batch.rows["record_ms"] = 100 * n + np.arange(12), 5
        expected |= {100 * n + k: said_by(batch.part(k, k + 1)) for k in range(12)}
        words, offsets = np.concatenate([words, kept.add([batch])]), offsets + batch.rows["offset"].tolist()
        left = [at for at in range(len(offsets)) if chance.random() < 0.7]
        words, offsets = words[left].copy(), [offsets[at] for at in left]
        if n % 3:
            rows = rows_of(words)
            kept.keep(rows)
            whole = kept.batch(rows, np.full(len(rows), 5))
            own, of_several = rows["side"], whole.elements.rows["side"]
            assert len(whole.objects) == (own == OBJECT).sum() + (of_several == OBJECT).sum()
            assert len(whole.elements) == (own == SEVERAL).sum()
        held = kept.batch(rows_of(words.copy()), np.full(len(words), 5))
        for at, offset in enumerate(offsets):
            assert said_by(held.part(at, at + 1)) == expected[offset]


def test_records_of_one_event_each_stay_as_they_are() -> None:
    batch = RecordBatch(np.zeros(3, ROW), None, (), Vocabulary())
    none = np.zeros(3, np.int64)
    plain = Released(batch, PARTITIONS, none, none, none, none, none - 1, none.astype(np.uint8))
    assert expanded(plain) is plain
    progress = MergeProgress()
    progress.note(plain)
    assert progress.evaluated == progress.events == {"a": 3}


def stretch_of(sizes: Sequence[int]) -> Released:
    """Records of one partition that hold so many predictions each."""
    objects: list[Decoded] = [
        EventGroup(tuple(prediction(f"{n}#{i}") for i in range(size))) for n, size in enumerate(sizes)
    ]
    order = np.arange(len(sizes))
    return Released(
        batch_of(objects, order),
        PARTITIONS,
        order * 0,
        order,
        order,
        order,
        np.full(len(sizes), IN_ORDER),
        (order * 0).astype(np.uint8),
    )


@pytest.mark.parametrize("sizes", [(EVENTS_PER_TURN + 5,), (EVENTS_PER_TURN, EVENTS_PER_TURN)])
def test_a_record_that_fills_a_turn_has_its_own(sizes: Sequence[int]) -> None:
    assert [len(part) for part in expanded_in_turns([stretch_of(sizes)])] == list(sizes)


@pytest.mark.parametrize("cuts", [(), (2,), (1, 3)])
def test_stretches_that_follow_each_other_are_put_together_with_the_texts_of_the_last(
    cuts: Sequence[int],
) -> None:
    whole = stretch_of((1, 2, 1, 3))
    parts = [whole.part(*edges) for edges in pairwise((0, *cuts, 4))]
    later = replace(parts[-1].records, texts=["known since"])
    joined = together([*parts[:-1], replace(parts[-1], records=later)])
    assert joined.records.texts is later.texts
    assert joined.offsets.tolist() == whole.offsets.tolist()
    assert joined.clock_ms.tolist() == whole.clock_ms.tolist()
    assert joined.records.events() == whole.records.events()


def test_nothing_put_together_is_an_empty_stretch() -> None:
    assert len(together([])) == 0


def test_records_with_many_events_become_rows_a_few_at_a_time() -> None:
    sizes = (3, EVENTS_PER_TURN + 5, 1, EVENTS_PER_TURN - 1, 1, 2, 0)
    stretch = stretch_of(sizes)
    parts = list(expanded_in_turns([stretch]))
    assert [len(part) for part in parts] == [EVENTS_PER_TURN + 8, EVENTS_PER_TURN, 4]
    whole = expanded(stretch)
    assert [o for part in parts for o in part.offsets.tolist()] == whole.offsets.tolist()
    assert [e for part in parts for e in part.records.events()] == whole.records.events()
