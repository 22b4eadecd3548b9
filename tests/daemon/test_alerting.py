"""Alarms are decided with the commit that holds them and sent once it is durable; nobody waits for more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.estimators.notifying.model_facts import Level
from streamwatch.core.predictions.kind import ActiveHint
from streamwatch.daemon import (
    CommitSpec,
    ConsumeLoopSpec,
    DaemonStatus,
)
from streamwatch.daemon.alerting import ALARMS, Alerting
from streamwatch.daemon.consume_loop import ConsumeLoop
from streamwatch.edge.stores.kind import StateFailed
from streamwatch.telemetry import Telemetry
from tests.core.model_store import ModelStore
from tests.cpu_budget import until
from tests.daemon.fake_alerting import (
    HOUR_MS,
    NOW_MS,
    SPEC,
    FakeDaemon,
    alarm,
    telling,
)
from tests.daemon.fake_daemon import FakeSource


async def test_a_notification_is_kept_with_its_alarm_and_delivered_when_both_are_durable() -> None:
    async with telling(FakeDaemon()) as fake_daemon:
        fake_daemon.store.may_flush.clear()
        fake_daemon.find(alarm())
        await fake_daemon.commits.settle(soon=True)
        (kept,) = fake_daemon.model_store.outbox
        assert kept.encode() in fake_daemon.model_store.sections[ALARMS], "one commit holds both"
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert fake_daemon.receiver.delivered == []
        assert fake_daemon.shown == []
        fake_daemon.store.may_flush.set()
        await until(lambda: fake_daemon.receiver.kinds == ["firing"])
        assert fake_daemon.receiver.delivered[0].id == kept
        assert [each.outgoing.notifications[0].id for each in fake_daemon.shown] == [kept]


async def test_an_idle_stream_commits_that_a_notification_was_delivered_and_then_nothing_more() -> None:
    async with telling(FakeDaemon()) as fake_daemon:
        fake_daemon.find(alarm())
        await fake_daemon.turns(
            lambda: fake_daemon.receiver.kinds == ["firing"] and fake_daemon.model_store.outbox == {}
        )
        await fake_daemon.rests()
        commits = fake_daemon.model_store.commits
        for _ in range(20):
            await fake_daemon.commits.settle(soon=True)
            await asyncio.sleep(0.001)
        assert fake_daemon.model_store.commits == commits


async def test_an_idle_stream_ends_an_alarm_whose_time_is_over() -> None:
    async with telling(FakeDaemon()) as fake_daemon:
        fake_daemon.find(alarm())
        await fake_daemon.rests()
        fake_daemon.now_ms += 2 * HOUR_MS
        await fake_daemon.turns(lambda: fake_daemon.receiver.kinds == ["firing", "resolved"])
        assert fake_daemon.receiver.delivered[1].parts[0].reason == "accepted_as_new_level"
        await fake_daemon.turns(lambda: fake_daemon.model_store.outbox == {})
        assert fake_daemon.alerting.due(behind=False) is False


@pytest.mark.parametrize("begun", [True, False])
async def test_a_receiver_is_sent_the_end_of_what_it_was_sent_whatever_settings_give_it_by_then(
    *, begun: bool
) -> None:
    store = ModelStore()
    async with telling(FakeDaemon(store)) as fake_daemon:
        fake_daemon.receiver.wants = lambda _: begun  # type: ignore[method-assign]
        fake_daemon.find(alarm())
        await fake_daemon.rests()
        sent = ["firing"] * begun
        await fake_daemon.turns(lambda: fake_daemon.receiver.kinds == sent and store.outbox == {})
    async with telling(FakeDaemon(store)) as again:
        again.receiver.wants = lambda _: False  # type: ignore[method-assign]
        again.now_ms += 2 * HOUR_MS
        await again.rests()
        await again.turns(lambda: store.outbox == {})
    assert store.outbox == {}
    assert again.receiver.kinds == ["resolved"] * begun


async def test_an_alarm_ends_with_its_model_be_it_within_one_commit() -> None:
    async with telling(FakeDaemon()) as fake_daemon:
        fake_daemon.find(alarm())
        fake_daemon.processor.retired.append("m")
        await fake_daemon.turns(lambda: fake_daemon.receiver.kinds == ["firing", "resolved"])
        assert fake_daemon.receiver.delivered[1].parts[0].reason == "model_retired"


def test_hints_sent_by_a_life_with_notify_are_over_in_one_without_and_sent_anew_in_the_next_with() -> None:
    active = {"m": ActiveHint(1, NOW_MS, "fraud", more=True, before=0.1, now=0.4)}
    kept, kinds, incidents = b"", list[list[str]](), set[str]()
    for hints in (lambda: active, None, None, lambda: active):
        daemon, book = FakeDaemon(), AlarmBook(SPEC, "state-1")
        if kept:
            book.restore(kept)
        models: Any = daemon.models
        alerting = Alerting(book, daemon.deliveries, lambda models=models: models, lambda: NOW_MS, {}, hints)
        decided = alerting.decide([], [], in_backlog=False, behind=False)
        kept = decided.sections[ALARMS]
        kinds.append([each.kind for each in decided.notifications])
        incidents |= {each.incident for each in decided.notifications}
    assert kinds == [["firing"], ["resolved"], [], ["firing"]]
    assert len(incidents) == 2


async def test_state_in_memory_delivers_at_once_and_keeps_nothing() -> None:
    async with telling(FakeDaemon(durable=False)) as fake_daemon:
        fake_daemon.find(alarm())
        await fake_daemon.turns(lambda: fake_daemon.receiver.kinds == ["firing"])
        fake_daemon.models.found["m"] = Level(0.1, 0.05, 10.0, 2_000)
        fake_daemon.find()
        await fake_daemon.turns(lambda: fake_daemon.receiver.kinds == ["firing", "resolved"])
        await fake_daemon.rests()
        assert fake_daemon.receiver.delivered[1].parts[0].reason == "back_to_level"
        assert fake_daemon.model_store.commits == 0


@pytest.mark.parametrize("written", [True, False])
async def test_what_could_not_be_flushed_is_sent_by_the_next_life_if_it_is_there(*, written: bool) -> None:
    async with telling(FakeDaemon()) as fake_daemon:
        fake_daemon.store.fails = True
        before = fake_daemon.model_store if written else ModelStore()
        fake_daemon.find(alarm())
        with pytest.raises(StateFailed):
            await fake_daemon.turns(lambda: False)
        assert fake_daemon.receiver.delivered == []
        fake_daemon.model_store = before
        fake_daemon.begin_life()
        fake_daemon.alerting.begin()
        if not written:
            assert fake_daemon.model_store.saved().outbox == {}
            fake_daemon.find(alarm())  # read again
        await fake_daemon.turns(
            lambda: fake_daemon.receiver.kinds == ["firing"] and fake_daemon.model_store.outbox == {}
        )


async def test_killed_after_the_commit_the_next_life_owes_the_same_id_and_knows_the_alarm_as_open() -> None:
    async with telling(FakeDaemon()) as fake_daemon:
        fake_daemon.store.may_flush.clear()
        fake_daemon.find(alarm())
        await fake_daemon.commits.settle(soon=True)
        (kept,) = fake_daemon.model_store.outbox
        fake_daemon.store.may_flush.set()
    async with telling(FakeDaemon(fake_daemon.model_store)) as again:
        await until(lambda: [notification.id for notification in again.receiver.delivered] == [kept])
        again.find(alarm(ordinal=2))
        await again.rests()
        assert again.receiver.kinds == ["firing"], "it is open already"


async def test_the_end_of_a_backlog_is_part_of_it_and_what_comes_after_is_not() -> None:
    """The poll that reads the last of a backlog says that it is caught up; so may all of a short one."""
    old_ms = NOW_MS - 3 * HOUR_MS
    async with telling(FakeDaemon()) as fake_daemon:
        fake_daemon.find(alarm("a", event_ms=old_ms), alarm("b", event_ms=old_ms), alarm("now"))
        await fake_daemon.turns(lambda: len(fake_daemon.receiver.delivered) == 2)
        assert sorted(fake_daemon.receiver.kinds) == ["digest", "firing"]
        (found,) = (each.digest for each in fake_daemon.receiver.delivered if each.digest is not None)
        assert found.alarms == 2
        await fake_daemon.rests()
        fake_daemon.find(alarm("late", event_ms=old_ms))
        await fake_daemon.turns(lambda: len(fake_daemon.receiver.delivered) == 3)
        assert fake_daemon.receiver.kinds[2] == "firing"
        fake_daemon.behind = True
        fake_daemon.find(alarm("c", event_ms=old_ms))
        await fake_daemon.turns(lambda: fake_daemon.processor.uncommitted == 0)
        fake_daemon.behind = False
        await fake_daemon.turns(lambda: len(fake_daemon.receiver.delivered) == 4)
        assert fake_daemon.receiver.kinds[3] == "digest"


async def test_what_is_owed_and_what_is_open_does_not_wait_for_kafka() -> None:
    async with telling(FakeDaemon()) as first:
        first.find(alarm("delivered"))
        await first.turns(lambda: first.receiver.kinds == ["firing"] and first.model_store.outbox == {})
    first.find(alarm("owed"))
    await first.turns(lambda: first.model_store.outbox != {})
    await first.commits.abandon()
    again = FakeDaemon(first.model_store)
    again.receiver.repeat_interval_seconds = 60.0
    source = FakeSource(hang=asyncio.Event())
    telemetry = Telemetry("error")
    reading = ConsumeLoop(
        source,
        ConsumeLoopSpec(lambda: again.state, CommitSpec()),
        DaemonStatus(source, telemetry),
        telemetry,
        again.shown.append,
    )
    stop = asyncio.Event()
    delivering = asyncio.create_task(again.deliveries.run())
    running = asyncio.create_task(reading.run(stop))
    try:
        (kept,) = first.model_store.outbox
        await until(lambda: [notification.id for notification in again.receiver.delivered] == [kept])
        await until(lambda: again.receiver.reminded == [first.receiver.delivered[0].id])
        assert not source.assigned
    finally:
        delivering.cancel()
        running.cancel()
        await asyncio.gather(running, delivering, return_exceptions=True)
    assert again.store.closed
