"""The record by which a log is recognised is that at the offset asked for, in columns as in objects."""

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
