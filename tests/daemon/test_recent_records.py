"""The record by which a log is recognised is that at the offset asked for, in columns as in objects."""

import weakref
from io import StringIO

import numpy as np
import pytest

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.merge import MergeProgress, MergeSpec
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.ports import Poll
from streamwatch.core.records.fetched import OFFSET
from streamwatch.core.specs import JoinSpec
from streamwatch.daemon import BatchProcessor
from streamwatch.daemon.merged_records import RecentRecords
from streamwatch.edge.keys import digest_bytes, id_keys
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord, KafkaRecords, gathered
from streamwatch.edge.stores.memory import MemoryStore
from streamwatch.telemetry import Telemetry
from tests.daemon.fake_daemon import CLOCKS, NOW_MS, SPEC, L, P, label, plain_topics, prediction, stands
from tests.edge.sources.kafka.batches.pieces import piece_of

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
        assert {partition: record.value for partition, record in found.items()} == (
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
    recent.drop_before({PARTITION: 299})
    assert [reference() is None for reference in held] == [True, True, True, False, False][: len(held)]
    recent.drop_before({PARTITION: 350, ("labels", 1): 7})
    assert [reference() is None for reference in held] == [True, True, True, False, False][: len(held)]
    assert recent.take({PARTITION: 350})[PARTITION].value == b"350"
    recent.drop_before({PARTITION: 499})
    assert all(reference() is None for reference in held)
    assert recent.take({PARTITION: 499})[PARTITION].value == b"499"
    assert recent.take({PARTITION: 500}) == {}


async def test_a_log_made_anew_is_known_by_its_own_records_though_no_commit_came_between() -> None:
    monitors = EstimatorSet(SPEC)
    topics = plain_topics(id_keys("", digest=True))
    checkpoint = Checkpoint(Pipeline(JoinSpec(), monitors, digest_bytes), monitors, SPEC, 1_000)
    telemetry = Telemetry(stream=StringIO())
    merge = MergeSpec(settle_ms=0), MergeProgress()
    processor = BatchProcessor(checkpoint, MemoryStore(), topics, telemetry, CLOCKS, *merge)

    def evaluate():
        while processor.has_ready:
            processor.evaluate()

    async def deliver(records, read, moved=frozenset()):
        states = {P: stands(read, caught_up=False), L: stands(200, caught_up=False)}
        await processor.receive(Poll(records, states, moved))
        evaluate()

    before = {P: [prediction(k, record_ms=NOW_MS + k) for k in range(100)]}
    await deliver(before | {L: [label(k, record_ms=NOW_MS + k) for k in range(101)]}, 100)
    processor.forget_records(frozenset({P}))
    processor.flush(frozenset({P}))
    evaluate()
    anew = {P: [prediction(k, record_ms=NOW_MS + 500 + k) for k in range(50)]}
    await deliver(anew, 50, frozenset({P}))
    await deliver({L: [label(150, record_ms=NOW_MS + 10_000)]}, 50)
    assert processor.take_newest()[P].offset == 49
