"""The record by which a log is recognised is that at the offset asked for, in columns as in objects."""

import weakref

import numpy as np
import pytest

from streamwatch.core.fetched import OFFSET
from streamwatch.daemon.recent_records import RecentRecords
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord, KafkaRecords, gathered, piece_of

PARTITION = ("predictions", 0)


def in_objects(offsets):
    return [KafkaRecord(*PARTITION, offset, 1_000 + offset, None, b"%d" % offset) for offset in offsets]


def in_columns(offsets):
    return gathered(PARTITION, [piece_of(in_objects(offsets))])


@pytest.mark.parametrize("records", [in_objects, in_columns])
def test_the_record_at_an_offset_is_found_wherever_it_was_delivered(records):
    delivered = [[3, 4, 9], [10], [12, 13, 17, 40]]
    for asked in range(2, 43):
        recent = RecentRecords()
        for offsets in delivered:
            recent.add(PARTITION, records(offsets))
        there = asked in {offset for offsets in delivered for offset in offsets}
        found = recent.take({PARTITION: asked})
        assert {place: record.value for place, record in found.items()} == (
            {PARTITION: b"%d" % asked} if there else {}
        )


def test_no_object_is_made_of_records_that_nobody_asked_for():
    class Counted(KafkaRecords):
        made = 0

        def record(self, row):
            type(self).made += 1
            return super().record(row)

    columns = in_columns(range(1_000))
    assert np.array_equal(columns.rows[:, OFFSET], np.arange(1_000))
    recent = RecentRecords()
    recent.add(PARTITION, Counted(PARTITION, columns.data, columns.rows))
    assert recent.take({PARTITION: 617})[PARTITION].offset == 617
    assert Counted.made == 1


@pytest.mark.parametrize("records", [in_objects, in_columns])
def test_of_what_was_evaluated_only_the_last_record_is_kept(records):
    recent = RecentRecords()
    delivered = [records(range(start, start + 100)) for start in range(0, 500, 100)]
    held = [weakref.ref(one.data) for one in delivered if isinstance(one, KafkaRecords)]
    for one in delivered:
        recent.add(PARTITION, one)
    del one, delivered
    recent.let_go({PARTITION: 299})
    assert [reference() is None for reference in held] == [True, True, True, False, False][: len(held)]
    recent.let_go({PARTITION: 350, ("labels", 1): 7})
    assert [reference() is None for reference in held] == [True, True, True, False, False][: len(held)]
    assert recent.take({PARTITION: 350})[PARTITION].value == b"350"
    recent.let_go({PARTITION: 499})
    assert all(reference() is None for reference in held)
    assert recent.take({PARTITION: 499})[PARTITION].value == b"499"
    assert recent.take({PARTITION: 500}) == {}
