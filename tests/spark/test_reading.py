"""Rows of a range, put together from what is taken piece by piece."""

from __future__ import annotations

from streamwatch.core.records.events import Partition
from streamwatch.core.records.fetched import PADDING
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord, gathered
from streamwatch.spark.reading import add_rows
from tests.edge.sources.kafka.batches.pieces import piece_of

SOMEWHERE = Partition("predictions", 0)


def test_rows_of_one_answer_share_its_bytes_and_keep_their_content():
    records = [KafkaRecord(*SOMEWHERE, n, n, None, b"value %d" % n, (), None, 0) for n in range(9)]
    answers = [piece_of(records[:6])[:2], piece_of(records[6:])[:2]]
    found = []
    for rows, data in answers:
        for start in range(0, len(rows), 2):
            add_rows(found, rows[start : start + 2], data)
    assert len(found) == 2
    together = gathered(SOMEWHERE, found)
    assert [together.record(row) for row in range(9)] == records
    assert len(together.data) == sum(len(data) for _, data in answers) + PADDING
