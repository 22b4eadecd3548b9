"""What a daemon makes of the results topic: whole batches, each once, and no alarm reported twice."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from streamwatch.assembly.alerts import build_deliveries
from streamwatch.assembly.job_settings import buckets_spec
from streamwatch.assembly.state import results_opening
from streamwatch.core.buckets.contract import ALARM, MODEL, TOTALS, BucketsSpec
from streamwatch.core.buckets.results import (
    LOSS,
    MARK,
    WATERMARK,
    BatchMark,
    DataLoss,
    ResultRecord,
    ResultsFormatError,
    data_loss_of,
    encode_data_loss,
    encode_mark,
    encode_watermark,
    mark_of,
    watermark_of,
)
from streamwatch.core.buckets.view import RecordCounts, Totals, encode_totals
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.ports import Poll
from streamwatch.core.records.events import Alarm, Outcome, Partition
from streamwatch.daemon.results import LastReportedBatch, ResultsCheckpoint, ResultsProcessor
from streamwatch.edge.stores.kind import StateRefused
from streamwatch.settings import Settings
from streamwatch.telemetry import Telemetry
from tests.daemon.fake_daemon import NOW_MS, SPEC, Record, only, only_samples, stands

TOPIC = Partition("streamwatch-results", 0)


class Topic:
    """A results topic without compaction; compaction takes away what a later record of its key replaces."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def write(self, result: ResultRecord) -> None:
        value = result.value() if result.body else None
        self.records.append(Record(*TOPIC, len(self.records), NOW_MS, value, result.key))

    def batch(self, number: int, *results: tuple[str, str, bytes], life: str = "life", whole: bool = True):
        for result in results:
            self.write(ResultRecord(life, number, *result))
        if whole:
            mark = encode_mark(BatchMark(life, NOW_MS))
            self.write(ResultRecord(life, number, MARK, "", mark))
        return self

    def compacted(self) -> Topic:
        last = {record.key: record for record in self.records}
        found = Topic()
        found.records = [record for record in self.records if last[record.key] is record]
        return found

    def poll(self, start: int = 0, *, caught_up: bool = True) -> Poll:
        return Poll({TOPIC: self.records[start:]}, {TOPIC: stands(len(self.records), caught_up=caught_up)})


def totals(accepted: int, name: str = "ids/0") -> tuple[str, str, bytes]:
    return TOTALS, name, encode_totals(Totals(NOW_MS, JoinCounters(predictions_accepted=accepted)))


def alarm(number: int, model: str = "m") -> tuple[str, str, bytes]:
    alarm = Alarm(
        model,
        "page_hinkley",
        number,
        100 * number,
        NOW_MS + number,
        NOW_MS + number,
        51.0,
        50.0,
        0.1,
        0.4,
        900.0,
    )
    return ALARM, f"models/0/{number:012d}", msgspec.msgpack.encode(alarm)


def model(name: str, answers: Sequence[str]) -> tuple[str, str, bytes]:
    monitors = EstimatorSet(SPEC)
    monitors.fold([Outcome(name, "a", answer, NOW_MS, 0) for answer in answers])
    return MODEL, name, monitors.snapshot(name)


def processor(reported: LastReportedBatch | None = None) -> ResultsProcessor:
    checkpoint = ResultsCheckpoint(reported or LastReportedBatch())
    spec = BucketsSpec({"predictions": "prediction", "labels": "label"}, monitors=SPEC)
    return ResultsProcessor(spec, checkpoint, Telemetry(stream=io.StringIO()), lambda: NOW_MS)


def report(of: ResultsProcessor):
    slices = of.report_in_slices()
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return end.value


def accepted(of: ResultsProcessor) -> float:
    return only(report(of).families, "predictions_accepted_total")


async def test_counters_of_all_buckets_are_shown_as_one():
    topic = Topic().batch(1, totals(3), totals(4, "ids/1"))
    found = processor()
    await found.receive(topic.poll())
    assert found.has_report
    assert accepted(found) == 7


async def test_nothing_is_shown_before_the_topic_was_read_to_its_end():
    topic = Topic().batch(1, totals(3)).batch(2, totals(5))
    found = processor()
    await found.receive(topic.poll(caught_up=False))
    assert not found.has_report
    await found.receive(topic.poll(len(topic.records)))
    assert accepted(found) == 5


async def test_half_a_batch_is_not_shown():
    topic = Topic().batch(1, totals(3))
    found = processor()
    await found.receive(topic.poll())
    read = len(topic.records)
    topic.batch(2, totals(9), whole=False)
    await found.receive(topic.poll(read))
    assert accepted(found) == 3
    read = len(topic.records)
    topic.batch(2, totals(2, "ids/1"))
    await found.receive(topic.poll(read))
    assert accepted(found) == 11


async def test_a_batch_that_was_written_twice_counts_once_and_repeats_no_alarm():
    topic = Topic().batch(1, totals(3), alarm(1)).batch(2, totals(5), alarm(2))
    found = processor()
    await found.receive(topic.poll())
    assert [each.ordinal for each in found.settle()[0]] == [1, 2]
    read = len(topic.records)
    topic.batch(2, totals(5), alarm(2))
    await found.receive(topic.poll(read))
    assert found.settle()[0] == []
    assert accepted(found) == 5


async def test_a_start_from_the_compacted_topic_gives_what_is_known_of_each_model_last():
    topic = Topic().batch(1, totals(3), model("m", "ab"), model("n", "a")).batch(2, model("m", "abab"))
    found = processor()
    await found.receive(topic.compacted().poll())
    monitors = EstimatorSet(SPEC)
    for _, _, body in (model("n", "a"), model("m", "abab")):
        monitors.restore(body)
    for name in ("m", "n"):
        assert found.view.monitors.snapshot(name) == monitors.snapshot(name)
    shown = {family.name: sorted(family.samples) for family in report(found).families}
    for family in monitors.families():
        assert shown[family.name] == sorted(family.samples)


async def test_a_restart_reports_only_alarms_after_the_batch_that_was_reported():
    topic = Topic().batch(1, alarm(1)).batch(2, alarm(2)).batch(3, alarm(3))
    found = processor(LastReportedBatch("life", 2))
    await found.receive(topic.compacted().poll())
    assert [each.ordinal for each in found.settle()[0]] == [3]
    assert [each.ordinal for each in report(found).alarms] == [1, 2, 3]


async def test_a_model_that_was_taken_away_has_retired():
    topic = Topic().batch(1, model("m", "ab"), model("n", "ab"))
    found = processor()
    await found.receive(topic.poll())
    read = len(topic.records)
    topic.batch(2, (MODEL, "m", b""))
    await found.receive(topic.poll(read))
    assert found.settle() == ([], ["m"])
    assert found.view.monitors.models() == ["n"]


async def test_another_job_on_the_topic_begins_anew():
    topic = Topic().batch(9, totals(30), totals(1, "ids/7"), alarm(1), model("old", "ab"))
    found = processor()
    await found.receive(topic.poll())
    found.settle()
    read = len(topic.records)
    topic.batch(1, totals(3), alarm(1, "n"), life="another")
    await found.receive(topic.poll(read))
    assert accepted(found) == 3
    assert [each.model for each in found.settle()[0]] == ["n"]
    assert found.view.monitors.models() == []
    anew = processor(LastReportedBatch("life", 9))
    await anew.receive(topic.compacted().poll())
    assert accepted(anew) == 3


async def test_a_topic_that_lost_batches_that_were_reported_is_refused():
    with pytest.raises(StateRefused, match="ends with batch 1, but batch 2 was seen before"):
        await processor(LastReportedBatch("life", 2)).receive(Topic().batch(1, totals(3)).poll())


async def test_a_record_of_others_is_refused():
    topic = Topic()
    topic.records.append(Record(*TOPIC, 0, NOW_MS, b"{}", b"key"))
    with pytest.raises(ResultsFormatError, match="expected a record of results"):
        await processor().receive(topic.poll())


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (mark_of, b"\x81\xa4life\xa1\xff"),
        (watermark_of, b"\x93\xa1\xff\x01\x02"),
        (data_loss_of, b"\x92\x81\xa1\xff\x01\x80"),
    ],
)
def test_a_result_with_a_text_that_is_no_utf_8_is_refused(read, body):
    with pytest.raises(ResultsFormatError):
        read(body)


async def test_what_the_job_did_not_find_of_its_topics_adds_up_over_ranges():
    first, second = DataLoss({"retention": 1}, {"retention": 40}), DataLoss({"retention": 1, "truncation": 1})
    topic = (
        Topic()
        .batch(1, (LOSS, "p/0/5", encode_data_loss(first)))
        .batch(2, (LOSS, "p/1/5", encode_data_loss(second)))
    )
    found = processor()
    await found.receive(topic.poll())
    assert found.data_loss == DataLoss({"retention": 2, "truncation": 1}, {"retention": 40})


async def test_a_recreated_topic_is_read_from_its_beginning():
    topic = Topic().batch(5, totals(30))
    found = processor()
    await found.receive(topic.poll())
    found.flush(frozenset({TOPIC}))
    assert not found.has_report
    await found.receive(Topic().batch(1, totals(2), life="another").poll())
    assert accepted(found) == 2


def settings(folder: Path, **changed: object) -> Settings:
    return Settings(
        kafka={"bootstrap_servers": ["localhost:9092"]},
        topics={"predictions": ["predictions"], "labels": ["labels"]},
        state={"directory": folder / "state"},
        source="results",
        **changed,
    )


async def committed(chosen: Settings, poll: Poll) -> tuple[list[str], int]:
    """Open the state, take in a poll, commit, close: models of new notifications, and incidents then open."""
    telemetry = Telemetry(stream=io.StringIO())
    spec = replace(buckets_spec(chosen), monitors=SPEC)
    state = results_opening(chosen, spec, telemetry, build_deliveries(chosen, telemetry))()
    try:
        await state.processor.receive(poll)
        assert state.alerting is not None
        alarms, retired = state.processor.settle()
        outgoing = state.alerting.decide(alarms, retired, in_backlog=False, behind=False)
        state.store.commit(state.checkpoint.changes(outgoing.sections, outgoing.outbox))
        state.store.flush()
        return [each.parts[0].alarm.model for each in outgoing.notifications], len(outgoing.open_incidents)
    finally:
        state.store.close()


async def test_what_was_committed_is_not_reported_again_after_a_restart(tmp_path: Path):
    chosen = settings(tmp_path)
    topic = Topic().batch(1, model("m", "ab"), model("n", "ab"), alarm(1))
    assert await committed(chosen, topic.poll()) == (["m"], 1)
    assert await committed(chosen, topic.poll()) == ([], 1)
    topic.batch(1, model("m", "ab"), model("n", "ab"), alarm(1)).batch(2, alarm(2, "n"))
    assert await committed(chosen, topic.poll()) == (["n"], 2)
    assert await committed(chosen, topic.compacted().poll()) == ([], 2)


async def test_a_state_of_the_other_source_is_refused(tmp_path: Path):
    chosen = settings(tmp_path)
    await committed(chosen, Topic().batch(1, totals(1)).poll())
    from streamwatch.assembly.state import state_opening  # noqa: PLC0415
    from streamwatch.assembly.topics import build_topics  # noqa: PLC0415

    other = chosen.model_copy(update={"source": "kafka"})
    with pytest.raises(StateRefused, match="source: expected the one with which the state"):
        state_opening(other, build_topics(other), Telemetry(stream=io.StringIO()))()


async def test_progress_of_the_job_is_that_of_the_last_whole_batch():
    found, topic = processor(), Topic()
    assert not any(family.samples for family in found.families())
    topic.batch(1, totals(3))
    mark = encode_mark(BatchMark("life", NOW_MS - 5_000, {"p": {"0": 7}}, {"p": 11, "l": 0}))
    topic.write(ResultRecord("life", 2, *totals(4)))
    topic.records.append(
        Record(
            *TOPIC,
            len(topic.records),
            NOW_MS + 4_000,
            ResultRecord("life", 2, MARK, "", mark).value(),
            b"batch/",
        )
    )
    topic.write(ResultRecord("life", 3, *totals(9)))
    await found.receive(topic.poll())
    families = found.families()
    assert only(families, "results_batch") == 2
    assert only(families, "results_batch_timestamp_seconds") == (NOW_MS + 4_000) / 1_000
    assert only(families, "results_batch_end_timestamp_seconds") == (NOW_MS - 5_000) / 1_000
    assert dict(only_samples(families, "results_waiting_records")) == {("l",): 0.0, ("p",): 11.0}


async def test_the_clock_of_the_job_is_behind_while_most_records_of_a_batch_are_from_its_future():
    """Reported for what batches add; of the first one that is seen nothing is known before it."""
    found, topic, values = processor(), Topic(), []
    counted = [
        ({"p": 90}, {"future": 80}),
        ({"p": 95, "l": 5}, {"future": 85}),
        ({"p": 99, "l": 7}, {"future": 89}),
    ]
    counted += [counted[-1], ({"p": 109, "l": 17}, {"future": 99, "jump": 9})]
    for number, (evaluated, corrected) in enumerate(counted, 1):
        records = RecordCounts(evaluated=evaluated, corrected=corrected)
        read = len(topic.records)
        topic.batch(number, (TOTALS, "ids/0", encode_totals(Totals(NOW_MS, records=records))))
        await found.receive(topic.poll(read))
        values += [dict(only_samples(found.families(), "host_clock_behind")).get(())]
    assert values == [None, 0.0, 1.0, 1.0, 0.0]


async def test_the_newest_record_time_of_each_partition_is_that_of_the_last_batch_that_read_it():
    topic = Topic()
    for number, (partition, record_ms) in enumerate([(0, 1_000), (1, 2_000), (0, 3_000)], 1):
        topic.batch(
            number, totals(number), (WATERMARK, *encode_watermark(Partition("p", partition), record_ms))
        )
    for each in (topic, topic.compacted()):
        found = processor()
        await found.receive(each.poll())
        assert dict(only_samples(report(found).families, "watermark_timestamp_seconds")) == {
            ("0", "p"): 3.0,
            ("1", "p"): 2.0,
        }


async def test_another_job_reports_its_own_partitions_only():
    topic = Topic().batch(4, totals(3), (WATERMARK, *encode_watermark(Partition("p", 0), 1_000)))
    topic.batch(1, totals(1), (WATERMARK, *encode_watermark(Partition("q", 0), 2_000)), life="another")
    found = processor()
    await found.receive(topic.poll())
    assert only(found.families(), "results_batch") == 1
    samples = dict(only_samples(report(found).families, "watermark_timestamp_seconds"))
    assert samples == {("0", "q"): 2.0}
