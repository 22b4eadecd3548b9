"""Several batches in one pass: what is plain is read as batch by batch, all else is left to that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka.batches.frames import Damage
from streamwatch.edge.sources.kafka.batches.opened import PlainBatches, Scanner, compiled_plain_batches
from streamwatch.edge.sources.kafka.batches.reader import PartitionReader
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan, new_rows, padded_copy, with_padding
from tests.edge.sources.kafka.batches.raw_batches import (
    APPEND_TIME,
    COMMIT,
    GZIP,
    TRANSACTIONAL,
    RawBatch,
    marker,
    record,
    sized,
)
from tests.tiers import examples

HERE = Partition("events", 3)
MOST = 1 << 22
ROWS = 64


@pytest.fixture(scope="module")
def plain() -> PlainBatches:
    if (found := compiled_plain_batches()) is None:
        pytest.skip("this processor has no instruction for CRC-32C")
    return found


@dataclass
class Reading:
    """Everything that a reader says until it has no more to say."""

    records: list[KafkaRecord]
    position: int
    damage: Damage | None
    done: bool


def read(
    data: bytes | memoryview,
    plain: PlainBatches | None,
    *,
    position: int,
    most: int,
    room: int,
    largest: int,
    aborted: list[tuple[int, int]],
) -> Reading:
    scanner = Scanner(compiled_scan(), ROWS, plain)
    reader = PartitionReader(HERE, data, position, most, aborted, scanner, MOST, largest)
    records: list[KafkaRecord] = []
    while not reader.done and reader.damage is None:
        taken = reader.take(room)
        records += [taken.record(row) for row in range(len(taken))]
        if reader.heavy:
            reader.unpack()
    return Reading(records, reader.position, reader.damage, reader.done)


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """Batches one after another: most of them plain, some of each other kind, now and then a bit is wrong."""
    data = bytearray()
    offset = 0
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(
            st.sampled_from(["plain"] * 6 + ["append", "gap", "gzip", "transaction", "marker", "odd"])
        )
        offset += draw(st.integers(1, 3)) if kind == "gap" else 0
        deltas = sorted(draw(st.sets(st.integers(0, 12), min_size=1)))
        values = st.one_of(st.none(), st.binary(max_size=30))
        written = [record(d, draw(values), draw(values), ms=draw(st.integers(-5, 5))) for d in deltas]
        if kind == "odd":
            written[draw(st.integers(0, len(written) - 1))] = sized(draw(st.binary(max_size=20)))
        if kind == "marker":
            data += marker(COMMIT, offset, 9)
            offset += 1
            continue
        flags = {"append": APPEND_TIME, "transaction": TRANSACTIONAL}.get(kind, 0)
        last = deltas[-1] + draw(st.integers(0, 2))
        codec = GZIP if kind == "gzip" else 0
        data += RawBatch(written, offset, codec, flags, producer=9, last_delta=last).bytes()
        offset += last + 1
    if draw(st.integers(0, 3)) == 0:
        data[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.integers(0, 3)) == 0 else bytes(data)


@pytest.mark.slow
@given(
    answers(),
    st.integers(0, 20),
    st.sampled_from([-1, 5, 30, 1_000]),
    st.sampled_from([1, 7, 40, 500]),
    st.sampled_from([10, 60, MOST]),
    st.sampled_from([[], [], [(9, 4)]]),
)
@settings(max_examples=examples(10))
def test_what_is_read_in_one_pass_is_what_is_read_batch_by_batch(
    plain: PlainBatches,
    data: bytes,
    position: int,
    most: int,
    room: int,
    largest: int,
    aborted: list[tuple[int, int]],
):
    padded = padded_copy(memoryview(data))
    one, other, in_place = (
        read(given, chosen, position=position, most=most, room=room, largest=largest, aborted=aborted)
        for given, chosen in ((data, plain), (data, None), (padded, plain))
    )
    assert one == other == in_place


def test_batches_with_padding_are_read_where_they_are_unless_most_of_it_is_not_theirs(plain: PlainBatches):
    batches = [RawBatch([record(d, b"v%d" % d, b"k") for d in range(5)], 5 * n).bytes() for n in range(9)]
    data = padded_copy(memoryview(b"".join(batches)))
    reader = PartitionReader(HERE, data, 0, -1, [], Scanner(compiled_scan(), 16, plain), MOST)
    taken = [reader.take(room) for room in (18, 5, 500)]
    assert [len(each) for each in taken] == [18, 5, 22]
    assert [each.data is with_padding(data) for each in taken] == [True, False, True]
    found = [(each.offset, each.key, each.value) for records in taken for each in records]
    assert found == [(n, b"k", b"v%d" % (n % 5)) for n in range(45)]


def test_plain_batches_are_passed_in_one_call(plain: PlainBatches):
    batches = [RawBatch([record(d) for d in range(5)], 5 * n).bytes() for n in range(8)]
    data = np.frombuffer(b"".join(batches), np.uint8)
    assert plain(data, 0, 64, 0, -1, MOST, new_rows(64)) == (40, len(data), 40)


def test_a_batch_that_has_no_room_is_left_whole(plain: PlainBatches):
    batches = [RawBatch([record(d) for d in range(5)], 5 * n).bytes() for n in range(8)]
    data = np.frombuffer(b"".join(batches), np.uint8)
    assert plain(data, 0, 13, 0, -1, MOST, new_rows(13)) == (10, 2 * len(batches[0]), 10)
