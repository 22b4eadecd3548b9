"""What the daemon makes of polls: what it rejects, whom it holds back, what it shows of partitions."""

from __future__ import annotations

import asyncio
import json

from streamwatch.core.events import Partition
from streamwatch.core.ports import PartitionState, Poll
from streamwatch.daemon import Intake
from streamwatch.edge.stores.memory import MemoryStore
from tests.house import (
    NOW_MS,
    L,
    P,
    Record,
    house,
    label,
    poll,
    prediction,
    run_through,
    until,
)


async def test_a_rejected_record_is_told_by_its_place_and_counted_by_its_reason() -> None:
    bad = Record("predictions", 0, 1, NOW_MS, b'{"id": "secret-id", ')
    h = house(poll(prediction(0), bad))
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
    assert dict(family.samples) == {("invalid_json",): 1}


async def test_partitions_that_are_ahead_while_others_catch_up_are_held_back() -> None:
    far = NOW_MS - 3_600_000
    behind = poll(prediction(0, at_ms=far), label(0, at_ms=far + 1_800_000), caught_up=False)
    h = house(behind)
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: h.source.paused == {L})
    h.source.polls.append(poll(prediction(1, at_ms=NOW_MS - 1_000)))
    await until(lambda: h.source.paused == frozenset())
    h.daemon.stop()
    await running


async def test_a_partition_that_is_gone_holds_nothing_back_and_has_no_position() -> None:
    gone = Partition("labels", 1)
    begun = poll(prediction(0, at_ms=NOW_MS - 7_200_000), label(0), caught_up=False)
    h = house(Poll(begun.records, {**begun.partitions, gone: PartitionState(0, 5, caught_up=False)}))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: gone in h.intake.positions)
    assert h.intake.pipeline.timeline.label_ms == -1
    h.source.polls.append(poll(prediction(1), label(1)))
    await until(lambda: h.intake.pipeline.timeline.label_ms == NOW_MS)
    assert set(h.intake.positions) == {P, L}
    assert h.source.paused == frozenset()
    h.daemon.stop()
    await running


async def test_a_partition_that_was_gone_at_a_start_holds_nothing_back() -> None:
    h = house()
    h.intake.pipeline.timeline.add(P, "prediction")
    gone = Partition("labels", 1)
    h.intake.pipeline.timeline.add(gone, "label")
    restored = {P: 0, gone: 5}
    old = h.intake
    intake = Intake(old._checkpoint, MemoryStore(), old._topics, old._telemetry, lambda: NOW_MS, restored)
    await intake.take(poll(prediction(0), label(0)))
    assert set(intake.positions) == {P, L}
    assert intake.pipeline.timeline.label_ms == NOW_MS


async def test_catching_up_is_told_once_and_shown() -> None:
    h = house(poll(prediction(0), caught_up=False), poll(prediction(1)), poll(prediction(2)))
    await run_through(h)
    assert h.events().count("catch_up_finished") == 1


async def test_a_poll_larger_than_a_turn_gives_way_in_between() -> None:
    h = house()
    turns = 0

    async def spin() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    spinning = asyncio.create_task(spin())
    await h.intake.take(poll(*(prediction(i) for i in range(5_000))))
    spinning.cancel()
    assert turns >= 9
    assert h.intake.records == 5_000


def test_lag_is_never_negative_and_absent_before_the_first_fetch() -> None:
    h = house()
    h.vitals.partitions = {
        P: PartitionState(10, 7, False),
        L: PartitionState(3, 10, False),
        Partition("labels", 1): PartitionState(0, -1, False),
    }
    (family,) = [f for f in h.vitals.families() if f.name == "consumer_lag_records"]
    assert family.labels == ("partition", "topic")
    assert dict(family.samples) == {("0", "predictions"): 0.0, ("0", "labels"): 7.0}


async def test_in_memory_what_a_poll_found_of_the_logs_is_shown_by_cause_with_the_next_report() -> None:
    h = house(poll(prediction(0)))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: bool(h.server.reports))
    assert h.live("fingerprint_unverifiable_total") == 0.0
    commits = h.live("commits_total")
    h.source.losses, h.source.records_lost = {"retention": 2}, {"retention": 40}
    await until(lambda: h.live("commits_total") > commits)
    families = {f.name: dict(f.samples) for f in h.vitals.families()}
    assert families["losses_total"] == {("retention",): 2.0}
    assert families["records_lost_total"] == {("retention",): 40.0}
    assert families["state_durable"] == {(): 0.0}
    assert families["start_timestamp_seconds"] == {(): NOW_MS / 1_000}
    h.daemon.stop()
    await running
