"""Whenever this side stops or dies, every notification still reaches its receivers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streamwatch.core.alerting.outbox import Failed, Refused
from streamwatch.core.alerting.pacing import Orphans
from streamwatch.daemon import deliveries as module
from streamwatch.daemon.deliveries import Deliveries, DeliverySpec
from streamwatch.telemetry import (
    InternalEvent,
    NotificationDropped,
    NotificationsDropped,
    NotificationSent,
)
from tests.cpu_budget import until
from tests.daemon.receivers import HOUR_MS, Disk, Fake, counted, delivering, web
from tests.edge.receivers.endpoint import endpoint
from tests.edge.receivers.notifications import NOW_MS, digest, firing, resolved


async def test_a_stop_lets_out_what_goes_out_and_leaves_the_rest_to_the_next_start() -> None:
    good, stuck, down = Fake("good"), Fake("stuck", script=[asyncio.Event()]), Fake("down", [Failed("dns")])
    disk = Disk()
    async with delivering(good, stuck, down, spec=DeliverySpec(initial_seconds=3_600)) as deliveries:
        disk.commit(deliveries, firing(), digest())
        await until(lambda: bool(len(good.delivered) == 2 and stuck.delivered and down.delivered))
        await deliveries.stop(0.05)
        disk.commit(deliveries)
    assert good.delivered == ["firing_1", "digest_1"]
    assert {good.opened, stuck.opened, down.opened} == {0}
    good, stuck, down = Fake("good"), Fake("stuck"), Fake("down")
    async with delivering(good, stuck, down, outbox=disk.outbox) as deliveries:
        await until(lambda: counted(deliveries, "notifications_pending") == {})
    assert good.delivered == []
    assert set(stuck.delivered) == set(down.delivered) == {"firing_1", "digest_1"}


async def test_a_restart_keeps_the_order_of_an_alarm_and_its_end_decided_at_once() -> None:
    disk, fake = Disk(), Fake()
    down = Fake(script=[Failed("dns")])
    async with delivering(down) as deliveries:
        begin = firing("firing_z")
        disk.commit(deliveries, begin, resolved(begin, id="a_resolved"))
    async with delivering(fake, outbox=disk.outbox) as deliveries:
        await until(lambda: counted(deliveries, "notifications_pending") == {})
    assert fake.delivered == ["firing_z", "a_resolved"]


async def test_a_restart_keeps_the_order_of_decisions_though_the_clock_was_set_back() -> None:
    begin, disk = firing(), Disk()
    end = resolved(begin, issued_ms=NOW_MS - 24 * HOUR_MS)
    async with delivering(Fake(script=[Failed("dns")])) as deliveries:
        disk.commit(deliveries, begin)
        disk.commit(deliveries, end)
    again = firing("firing_2", issued_ms=NOW_MS - 48 * HOUR_MS)
    async with delivering(Fake(script=[Failed("dns")]), outbox=disk.outbox) as deliveries:
        disk.commit(deliveries, again)
    fake = Fake()
    async with delivering(fake, outbox=disk.outbox) as deliveries:
        await until(lambda: counted(deliveries, "notifications_pending") == {})
    assert fake.delivered == ["firing_1", "resolved_of_firing_1", "firing_2"]


async def test_notifications_of_a_receiver_that_was_removed_are_dropped() -> None:
    disk = Disk()
    async with delivering(Fake("old", [Failed("dns")]), Fake("kept", [Failed("dns")])) as deliveries:
        disk.commit(deliveries, firing())
    kept = Fake("kept")
    async with delivering(kept, outbox=disk.outbox) as deliveries:
        assert counted(deliveries, "notifications_dropped_total") == {("receiver_removed", "old"): 1.0}
        await until(lambda: kept.delivered == ["firing_1"])
        await until(lambda: counted(deliveries, "notifications_pending") == {})
        disk.commit(deliveries)
    assert disk.outbox == {}


async def test_all_that_waited_for_a_limit_of_a_removed_receiver_is_counted_as_dropped() -> None:
    events: list[InternalEvent] = []
    kept: Any = Fake("kept")
    deliveries = Deliveries([kept], DeliverySpec(), events.append)
    deliveries.restore({}, (), [Orphans("old", [firing(), firing("firing_2")], 480)])
    assert counted(deliveries, "notifications_dropped_total") == {("receiver_removed", "old"): 482.0}
    assert [each.notification for each in events if isinstance(each, NotificationDropped)] == [
        "firing_1",
        "firing_2",
    ]
    assert events[-1] == NotificationsDropped("old", 480, "receiver_removed")


async def test_what_was_delivered_before_state_is_opened_anew_is_not_sent_again() -> None:
    """A commit failed: what it held was never announced, and what it would have removed is known."""
    disk, fake, refusing = Disk(), Fake("takes"), Fake("refuses", [Refused("http_400")])
    async with delivering(fake, refusing) as deliveries:
        disk.commit(deliveries, firing())
        await until(lambda: counted(deliveries, "notifications_pending") == {})
        deliveries.restore({**disk.outbox}, ())
        assert counted(deliveries, "notifications_pending") == {}
        assert deliveries.outbox.changed
        disk.commit(deliveries, firing("firing_2"))
        await until(lambda: counted(deliveries, "notifications_pending") == {})
        disk.commit(deliveries)
    assert disk.outbox == {}
    assert fake.delivered == refusing.delivered == ["firing_1", "firing_2"]
    assert counted(deliveries, "notifications_dropped_total") == {("http_400", "refuses"): 2.0}


async def test_of_what_was_delivered_as_many_are_remembered_as_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_SETTLED", 2)
    disk, fake = Disk(), Fake()
    async with delivering(fake) as deliveries:
        disk.commit(deliveries, *(firing(f"firing_{n}") for n in range(3)))
        await until(lambda: len(fake.delivered) == 3)
        deliveries.restore(disk.outbox, ())
        await until(lambda: counted(deliveries, "notifications_pending") == {})
    assert fake.delivered == ["firing_0", "firing_1", "firing_2", "firing_0"]


async def test_what_was_on_its_way_when_another_replica_may_have_been_elected_is_counted_and_sent_again() -> (
    None
):
    disk, may, answer = Disk(), [True], asyncio.Event()
    fake = Fake(script=[answer])
    async with delivering(fake, speaks=lambda: may[0]) as deliveries:
        disk.commit(deliveries, firing())
        await until(lambda: fake.delivered == ["firing_1"])
        may[0] = False
        await until(lambda: deliveries._broken_off == 1)
        answer.set()
        deliveries.restore(disk.outbox, ())
        may[0] = True
        await until(lambda: counted(deliveries, "notifications_pending") == {})
        assert fake.delivered == ["firing_1", "firing_1"]
        assert [deliveries.take_broken_off() for _ in range(2)] == [1, 0]


async def test_attempts_are_remembered_over_a_restart() -> None:
    disk, events = Disk(), list[InternalEvent]()
    fake = Fake(script=[Failed("dns")])
    async with delivering(fake) as deliveries:
        disk.commit(deliveries, firing())
        await until(lambda: len(fake.delivered) >= 4)
        disk.commit(deliveries)
    async with delivering(Fake(), outbox=disk.outbox, events=events) as deliveries:
        await until(lambda: counted(deliveries, "notifications_pending") == {})
    (delivered,) = (h for h in events if isinstance(h, NotificationSent))
    assert delivered.attempts >= 4


async def test_killed_between_the_post_and_its_answer_the_same_id_is_sent_again() -> None:
    disk = Disk()
    async with endpoint("late", 200) as receiver:
        async with delivering(web(receiver.url)) as deliveries:
            disk.commit(deliveries, firing())
            await receiver.received(1)
        async with delivering(web(receiver.url), outbox=disk.outbox) as deliveries:
            posts = await receiver.received(2)
            await until(lambda: counted(deliveries, "notifications_pending") == {})
            disk.commit(deliveries)
    assert [post.headers["webhook-id"] for post in posts] == ["firing_1", "firing_1"]
    assert disk.outbox == {}


async def test_killed_between_the_answer_and_the_commit_the_same_id_is_sent_again() -> None:
    disk = Disk()
    async with endpoint() as receiver:
        for number in (1, 2):
            async with delivering(web(receiver.url), outbox=disk.outbox) as deliveries:
                if number == 1:
                    disk.commit(deliveries, firing())
                await receiver.received(number)
                await until(lambda d=deliveries: counted(d, "notifications_pending") == {})
        assert [post.headers["webhook-id"] for post in receiver.posts] == ["firing_1", "firing_1"]
