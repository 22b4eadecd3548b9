"""What the daemon makes of polls: what it rejects, whom it holds back, what it shows of partitions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from streamwatch.core.join import prediction_order
from streamwatch.core.merge import MergeProgress, MergeSpec
from streamwatch.core.merge.released import Key
from streamwatch.core.pipeline import pipeline
from streamwatch.core.ports import PartitionState, Poll
from streamwatch.core.records.events import Alarm, Partition
from streamwatch.core.specs import JoinSpec
from streamwatch.daemon import merged_records as giving_way
from streamwatch.daemon.consume_loop import Backlog
from streamwatch.daemon.results import NewestBatch
from streamwatch.telemetry import Telemetry
from tests.cpu_budget import until
from tests.daemon.fake_daemon import (
    NOW_MS,
    L,
    P,
    Record,
    fake_daemon,
    label,
    only,
    only_samples,
    poll,
    prediction,
    run_through,
    stands,
    taken,
)

AHEAD = stands(0, caught_up=False)
"""A partition of which there is more to read."""


async def test_a_rejected_record_is_reported_by_its_position_and_counted_by_its_reason() -> None:
    bad = Record("predictions", 0, 1, NOW_MS, b'{"id": "secret-id", ')
    h = fake_daemon(poll(prediction(0), bad))
    await run_through(h)
    (line,) = [json.loads(x) for x in h.log.getvalue().splitlines() if "record_rejected" in x]
    assert (line["topic"], line["partition"], line["offset"], line["reason"]) == (
        "predictions",
        0,
        1,
        "invalid_json",
    )
    assert "secret-id" not in h.log.getvalue()
    (family,) = [f for f in h.server.reports[-1].families if f.name == "records_invalid_total"]
    assert dict(family.samples) == {("invalid_json", "predictions"): 1}


async def test_of_a_rejected_record_the_path_and_the_fields_there_are_reported() -> None:
    bad = Record("predictions", 0, 1, NOW_MS, b'{"ID": "secret-id", "model": "m", "prediction": "secret"}')
    h = fake_daemon(poll(prediction(0), bad))
    await run_through(h)
    (line,) = [json.loads(x) for x in h.log.getvalue().splitlines() if "record_rejected" in x]
    assert line["detail"] == "looked at value.id: value has the fields ID, model, prediction"
    assert "secret" not in h.log.getvalue()


async def test_partitions_that_are_ahead_while_others_catch_up_are_held_back() -> None:
    far = NOW_MS - 3_600_000
    ahead = [label(i, record_ms=far + 1_800_000 + i) for i in range(3)]
    behind = {P: stands(1, caught_up=False), L: stands(3, caught_up=False)}
    h = fake_daemon(
        Poll({P: [prediction(0, record_ms=far)], L: ahead}, behind),
        merge=MergeSpec(settle_ms=0, max_held_records=2),
    )
    h.source.idle = False
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: h.source.paused == {L})
    assert h.processor.positions == {P: 1, L: 0}, "the prediction precedes all that can come; the labels wait"
    assert only(h.status.families(), "merge_held_records") == 3
    h.source.polls.append(Poll({P: [prediction(1, record_ms=NOW_MS - 1_000)]}, {P: stands(2), L: stands(3)}))
    await until(lambda: h.source.paused == frozenset() and h.processor.positions == {P: 2, L: 3})
    h.daemon.stop()
    await running


async def test_how_polls_deliver_the_records_of_two_topics_makes_no_difference() -> None:
    records = [prediction(i, record_ms=NOW_MS - 10_000 + 20 * i) for i in range(60)]
    records += [label(i, "ab"[i % 3 == 0], record_ms=NOW_MS - 9_995 + 23 * i) for i in range(60)]
    whole, side_by_side, one_by_one = fake_daemon(), fake_daemon(), fake_daemon()
    await taken(whole.processor, poll(*records))
    await taken(side_by_side.processor, poll(*(r for r in records if r.topic == "labels"), caught_up=False))
    await taken(side_by_side.processor, poll(*(r for r in records if r.topic == "predictions")))
    for record in records:
        await taken(one_by_one.processor, Poll({Partition(record.topic, 0): [record]}, {P: AHEAD, L: AHEAD}))
    await taken(one_by_one.processor, Poll({}, {P: stands(60), L: stands(60)}))
    states = {h.processor.pipeline.snapshot() for h in (whole, side_by_side, one_by_one)}
    assert len(states) == 1
    assert whole.processor.pipeline.join.counters.predictions_resolved == 60
    assert [h.processor.progress.out_of_order for h in (whole, side_by_side, one_by_one)] == [{}, {}, {}]


async def test_a_record_that_comes_after_later_ones_is_taken_at_once_and_counted_with_its_lateness() -> None:
    h = fake_daemon(poll(prediction(0), label(0)), poll(prediction(1, record_ms=NOW_MS - 2_500)))
    late = Partition("predictions", 1)
    record = Record("predictions", 1, 0, NOW_MS - 2_500, prediction(7).value)
    h.source.idle = False
    h.source.polls[1] = Poll({late: [record]}, {P: stands(1), L: stands(1), late: stands(1)})
    await run_through(h)
    assert h.processor.positions == {P: 1, L: 1, late: 1}
    assert h.processor.pipeline.clock_ms == NOW_MS
    families = {f.name: dict(f.samples) for f in h.server.reports[-1].families}
    assert families["records_out_of_order_total"] == {("predictions",): 1}
    assert families["records_lateness_seconds_total"] == {("predictions",): 2.5}
    assert families["clock_timestamp_seconds"] == {(): NOW_MS / 1_000}
    assert families["watermark_timestamp_seconds"] == {
        ("0", "labels"): NOW_MS / 1_000,
        ("0", "predictions"): NOW_MS / 1_000,
        ("1", "predictions"): NOW_MS / 1_000 - 2.5,
    }


async def test_a_partition_that_was_at_its_end_and_then_hangs_is_left_behind_and_reported() -> None:
    now_ms = [0]
    h = fake_daemon(merge=MergeSpec(settle_ms=0, max_hold_back_ms=600_000), monotonic_ms=lambda: now_ms[0])
    await taken(h.processor, poll(prediction(0), label(0)))
    hanging = Poll({P: [prediction(1, record_ms=NOW_MS + 1)]}, {P: stands(2), L: stands(1, caught_up=False)})
    await taken(h.processor, hanging)
    now_ms[0] = 599_999
    await taken(h.processor, Poll({}, hanging.partitions))
    assert h.processor.positions[P] == 1
    assert dict(only_samples(h.processor.families(), "merge_hold_seconds")) == {("0", "labels"): 599.999}
    now_ms[0] = 600_000
    await taken(h.processor, Poll({}, hanging.partitions))
    assert h.processor.positions[P] == 2
    assert h.processor.progress.left_behind == 1
    events = [json.loads(line) for line in h.log.getvalue().splitlines()]
    assert [(t["topic"], t["partition"]) for t in events if t["event"] == "partition_left_behind"] == [
        ("labels", 0)
    ]
    await taken(h.processor, Poll({L: [label(1, record_ms=NOW_MS - 1)]}, {P: stands(2), L: stands(2)}))
    assert h.processor.positions[L] == 2, "it is taken at once, at the time of the clock"


async def test_while_brokers_are_away_nobody_is_left_behind() -> None:
    now_ms = [0]
    h = fake_daemon(merge=MergeSpec(settle_ms=0, max_hold_back_ms=1_000), monotonic_ms=lambda: now_ms[0])
    await taken(h.processor, poll(prediction(0), label(0)))
    hanging = Poll({P: [prediction(1, record_ms=NOW_MS + 1)]}, {P: stands(2), L: stands(1, caught_up=False)})
    await taken(h.processor, hanging)
    now_ms[0] = 10_000
    await h.processor.receive(Poll({}, hanging.partitions), connected=False)
    assert not h.processor.has_ready
    now_ms[0] = 10_999
    await h.processor.receive(Poll({}, hanging.partitions))
    assert not h.processor.has_ready


async def test_a_host_whose_clock_is_behind_is_reported_and_holds_nothing_back() -> None:
    day_ms = 86_400_000
    stamped = [NOW_MS + day_ms + i for i in range(20)]
    h = fake_daemon()
    await taken(h.processor, poll(*(prediction(i, record_ms=at) for i, at in enumerate(stamped))))
    assert h.events() == ["host_clock_behind"]
    assert h.processor.positions == {P: 20, L: 0}
    assert h.processor.pipeline.clock_ms == stamped[-1]
    assert h.processor.progress.corrected == {}
    assert dict(only_samples(h.processor.families(), "host_clock_behind")) == {(): 1.0}


async def test_one_record_from_the_future_moves_no_clock_and_is_counted_by_its_reason() -> None:
    h = fake_daemon()
    given = poll(prediction(0), prediction(1, record_ms=NOW_MS + 86_400_000), prediction(2), label(0))
    await taken(h.processor, given)
    assert h.processor.pipeline.clock_ms == NOW_MS
    assert h.processor.progress.corrected == {"future": 1}


async def test_what_was_held_of_a_log_that_is_gone_comes_before_what_replaces_it() -> None:
    h = fake_daemon(
        poll(prediction(0), prediction(1), caught_up=False),
        Poll({P: [prediction(0, "b")]}, {P: stands(1), L: stands(0)}, frozenset({P})),
    )
    h.source.idle = False
    await run_through(h)
    assert h.processor.positions == {P: 1, L: 0}
    assert h.processor.pipeline.join.counters.predictions_accepted == 2
    assert h.processor.pipeline.join.counters.predictions_conflict == 1, (
        "id 0 was predicted in the log of before"
    )


async def test_a_partition_that_is_gone_holds_nothing_back_and_has_no_position() -> None:
    gone = Partition("labels", 1)
    begun = poll(prediction(0, record_ms=NOW_MS - 7_200_000), label(0))
    h = fake_daemon(Poll(begun.records, {**begun.partitions, gone: AHEAD}))
    h.source.idle = False
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: gone in h.processor.positions)
    assert h.processor.pipeline.clock_ms == -1
    h.source.polls.append(poll(prediction(1), label(1)))
    await until(lambda: h.processor.pipeline.clock_ms == NOW_MS)
    assert set(h.processor.positions) == {P, L}
    assert h.source.paused == frozenset()
    h.daemon.stop()
    await running


async def test_a_partition_that_was_gone_at_a_start_holds_nothing_back() -> None:
    gone = Partition("labels", 1)
    restored = MergeProgress(
        {P: 0, gone: 5},
        {gone: NOW_MS - 7_200_000},
        Key(NOW_MS - 7_200_000, "labels", 1, 4),
        NOW_MS - 7_200_000,
    )
    h = fake_daemon(progress=restored)
    await taken(h.processor, poll(prediction(0), label(0)))
    assert set(h.processor.positions) == {P, L}
    assert h.processor.pipeline.clock_ms == NOW_MS
    assert h.processor.progress.out_of_order == {}


async def test_catching_up_is_reported_once_and_shown() -> None:
    h = fake_daemon(poll(prediction(0), caught_up=False), poll(prediction(1)), poll(prediction(2)))
    await run_through(h)
    assert h.events().count("catch_up_completed") == 1


@pytest.mark.parametrize("stops", [False, True])
async def test_no_commit_is_made_while_held_outcomes_are_being_released(
    stops: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "MOST_AT_ONCE", 100)
    monkeypatch.setattr(prediction_order, "ROOM", 2_000)
    many, began_ms = 5_000, NOW_MS - 3_600_000
    records = [prediction(i, record_ms=began_ms + i // 10) for i in range(many)]
    records += [label(i, record_ms=began_ms + 2_000 + i // 10) for i in range(many)]
    records += [prediction(many, record_ms=NOW_MS - 1_000)]
    ticks = count(0, 10)
    h = fake_daemon(
        poll(*records),
        join=JoinSpec(order="prediction_time", reorder_window_ms=60_000),
        monotonic=lambda: float(next(ticks)),  # a commit is always due
    )
    assert h.checkpoint is not None
    committed, between = list[bool](), 0
    evaluate, settle = h.processor.evaluate, h.processor.settle

    def evaluated() -> int:
        nonlocal between
        alarms = evaluate()
        between += not h.processor.may_commit
        if stops and between:
            h.daemon.stop()
        return alarms

    def settled() -> tuple[Sequence[Alarm], Sequence[str]]:
        committed.append(h.processor.may_commit)
        return settle()

    monkeypatch.setattr(h.processor, "evaluate", evaluated)
    monkeypatch.setattr(h.processor, "settle", settled)
    await run_through(h)
    assert between
    assert len(committed) > 1
    assert all(committed)
    assert h.checkpoint.monitors.outcomes_of("m") == many


async def test_a_poll_larger_than_a_turn_gives_way_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving_way, "HELD_SECONDS", 0.0)  # however fast a part was taken
    h = fake_daemon()
    turns = 0

    async def spin() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    spinning = asyncio.create_task(spin())
    await taken(h.processor, poll(*(prediction(i) for i in range(5_000))))
    spinning.cancel()
    assert turns >= 9
    assert h.processor.records == 5_000


def test_lag_is_never_negative_and_absent_before_the_first_fetch() -> None:
    h = fake_daemon()
    h.status.partitions = {
        P: PartitionState(10, 7, False),
        L: PartitionState(3, 10, False),
        Partition("labels", 1): PartitionState(0, -1, False),
    }
    (family,) = [f for f in h.status.families() if f.name == "consumer_lag_records"]
    assert family.labels == ("partition", "topic")
    assert dict(family.samples) == {("0", "predictions"): 0.0, ("0", "labels"): 7.0}


def test_lag_counts_what_was_fetched_and_is_not_evaluated_and_how_old_that_is() -> None:
    h = fake_daemon()
    h.status.partitions = {P: PartitionState(10, 10, True), L: PartitionState(3, 3, True)}
    now_ms = NOW_MS
    progress = MergeProgress(positions={P: 4, L: 3}, running_ms={P: now_ms - 60_000, L: now_ms - 60_000})
    h.status.progress = progress
    families = {f.name: dict(f.samples) for f in h.status.families()}
    assert families["consumer_lag_records"] == {("0", "predictions"): 6.0, ("0", "labels"): 0.0}
    assert families["consumer_lag_seconds"][("0", "predictions")] == 60.0
    assert families["consumer_lag_seconds"][("0", "labels")] == 0.0


def test_records_of_which_none_has_a_time_yet_have_no_age() -> None:
    h = fake_daemon()
    h.status.partitions = {P: PartitionState(10, 12, False)}
    h.status.progress = MergeProgress(positions={P: 10}, running_ms={P: -1})
    families = {f.name: dict(f.samples) for f in h.status.families()}
    assert families["consumer_lag_records"] == {("0", "predictions"): 2.0}
    assert families["consumer_lag_seconds"] == {}


def test_results_that_are_old_are_not_caught_up() -> None:
    h = fake_daemon()
    h.status.partitions = {P: PartitionState(10, 10, True)}
    h.source.up = True

    def caught_up() -> float:
        (family,) = [f for f in h.status.families() if f.name == "caught_up"]
        return float(family.samples[0][1])  # type: ignore[arg-type]

    assert caught_up() == 1.0
    h.status.results_stale = lambda: True
    assert caught_up() == 0.0
    newest = NewestBatch(interval_seconds=60.0)
    assert not newest.is_stale(NOW_MS), "there was none yet"
    newest.written_ms = NOW_MS
    assert not newest.is_stale(NOW_MS + 600_000)
    assert newest.is_stale(NOW_MS + 600_001)


async def test_in_memory_what_a_poll_found_of_the_logs_is_shown_by_cause_with_the_next_report() -> None:
    h = fake_daemon(poll(prediction(0)))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: bool(h.server.reports))
    assert h.live("kafka_position_unverified_total") == 0.0
    commits = h.live("commits_total")
    h.source.losses, h.source.records_lost = {"retention": 2}, {"retention": 40}
    await until(lambda: h.live("commits_total") > commits)
    families = {f.name: dict(f.samples) for f in h.status.families()}
    assert families["kafka_data_loss_total"] == {("retention",): 2.0}
    assert families["kafka_records_lost_total"] == {("retention",): 40.0}
    assert families["state_durable"] == {(): 0.0}
    assert families["process_start_time_seconds"] == {(): NOW_MS / 1_000}
    h.daemon.stop()
    await running


async def test_freed_memory_is_given_back_once_a_backlog_is_over_and_then_every_ten_seconds() -> None:
    now, returned = [0.0], list[float]()
    h = fake_daemon(
        poll(prediction(0)), monotonic=lambda: now[0], return_memory=lambda: returned.append(now[0])
    )
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: len(returned) == 1)
    assert returned == [0.0], "the backlog of the start is over"
    for now[0] in (9.9, 10.0, 15.0, 20.0):
        before = h.source.releases
        await until(lambda before=before: h.source.releases > before + 2)
    h.daemon.stop()
    await running
    assert returned == [0.0, 10.0, 20.0]


async def test_the_logs_are_evaluated_up_to_the_oldest_end_once_nothing_of_before_is_held() -> None:
    status, held, now = fake_daemon().status, set[int](), [10.0]
    processor: Any = SimpleNamespace(holds_from_before=lambda ms: any(each <= ms for each in held))
    backlog = Backlog(status, Telemetry(), lambda: now[0])
    status.partitions = {P: PartitionState(5, 5, caught_up=True, at_end_ms=9_000), L: AHEAD}
    backlog.look(processor, 0)
    assert status.evaluated_ms is None
    status.partitions = {
        P: PartitionState(5, 5, caught_up=True, at_end_ms=9_900),
        L: PartitionState(7, 7, caught_up=True, at_end_ms=9_800),
    }
    held.add(10_000)
    backlog.look(processor, 0)
    assert status.evaluated_ms is None, "what had been read at 10 s may be of before 9.8 s"
    now[0], held = 13.0, {11_000}
    backlog.look(processor, 0)
    assert status.evaluated_ms == 9_800
    held.clear()
    status.partitions = {P: stands(6, caught_up=False), L: AHEAD}
    backlog.look(processor, 0)
    assert status.evaluated_ms == 9_800
