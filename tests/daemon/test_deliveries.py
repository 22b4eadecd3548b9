"""Notifications reach every receiver at least once and in order, whatever it answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.outbox import Delivered, DeliveryResult, Failed, Gone, Refused
from streamwatch.daemon.deliveries import Deliveries, DeliverySpec, ReceiverQueue
from streamwatch.telemetry import (
    InternalEvent,
    NotificationDropped,
    NotificationFailed,
    NotificationSent,
    ReceiverGone,
)
from tests.cpu_budget import until
from tests.daemon.receivers import HOUR_MS, QUICK, Clock, Disk, Fake, counted, delivering
from tests.edge.receivers.notifications import NOW_MS, digest, firing, resolved


async def test_a_notification_goes_to_every_receiver_that_wants_it_and_then_leaves_the_outbox() -> None:
    one, other, picky = Fake("one"), Fake("other"), Fake("picky", severities=frozenset({"critical"}))
    disk = Disk()
    events: list[InternalEvent] = []
    async with delivering(one, other, picky, events=events) as deliveries:
        disk.commit(deliveries, firing())
        assert list(disk.outbox) == ["firing_1"]
        await until(lambda: one.delivered == other.delivered == ["firing_1"])
        await until(lambda: counted(deliveries, "notifications_pending") == {})
        disk.commit(deliveries)
    assert disk.outbox == {}
    assert picky.delivered == []
    assert counted(deliveries, "notifications_sent_total") == {("one",): 1.0, ("other",): 1.0}
    assert events.count(NotificationSent("one", "firing_1", "firing", 1)) == 1
    assert one.opened == 0, "closed"


async def test_what_nobody_wants_is_not_kept() -> None:
    async with delivering(Fake(severities=frozenset({"critical"}))) as deliveries:
        assert deliveries.record(firing()) is None
    assert Deliveries((), QUICK, lambda _: None).record(firing()) is None
    await Deliveries((), QUICK, lambda _: None).run()


async def test_a_failure_is_tried_again_until_it_works() -> None:
    fake = Fake(script=[Failed("http_500"), Failed("timeout"), Delivered()])
    events: list[InternalEvent] = []
    async with delivering(fake, events=events) as deliveries:
        Disk().commit(deliveries, firing())
        await until(lambda: counted(deliveries, "notifications_sent_total") != {})
        assert fake.delivered == ["firing_1"] * 3
        failed = {("http_500", "fake"): 1.0, ("timeout", "fake"): 1.0}
        assert counted(deliveries, "notifications_failed_total") == failed
    assert [h.attempts for h in events if isinstance(h, NotificationFailed | NotificationSent)] == [1, 2, 3]


async def test_waits_double_up_to_a_bound_with_full_jitter_and_are_as_long_as_asked_for() -> None:
    now = asyncio.get_running_loop().time
    queue = ReceiverQueue(Fake())

    def waits(answer: Failed, draw: float, seconds: float) -> bool:
        earliest = now() + seconds
        queue.pause(answer, DeliverySpec(), draw)
        return earliest <= queue.resume <= now() + seconds

    for draw, seconds in ((1.0, 1), (1.0, 2), (1.0, 4), (0.0, 0), (0.25, 4), (1.0, 32), (1.0, 60), (1.0, 60)):
        assert waits(Failed("http_500"), draw, seconds), seconds
    assert waits(Failed("http_429", 120.0), 1.0, 120)
    assert waits(Failed("http_429", 1e9), 1.0, 3_600)


async def test_a_refused_notification_is_dropped_and_the_next_goes_on() -> None:
    fake = Fake(script=[Refused("http_400"), Delivered()])
    events: list[InternalEvent] = []
    disk = Disk()
    async with delivering(fake, events=events) as deliveries:
        disk.commit(deliveries, firing(), firing("firing_2", "clicks"))
        await until(lambda: counted(deliveries, "notifications_sent_total") != {})
        assert counted(deliveries, "notifications_dropped_total") == {("http_400", "fake"): 1.0}
        disk.commit(deliveries)
    assert disk.outbox == {}
    dead = NotificationDropped(
        "fake", "firing_1", "firing", "incident_of_fraud-v3", "fraud-v3", "page_hinkley", "http_400", 1
    )
    assert [h for h in events if isinstance(h, NotificationDropped)] == [dead]


async def test_a_receiver_that_is_gone_gets_nothing_more_and_that_is_reported_once() -> None:
    fake, other = Fake(script=[Gone("http_410")]), Fake("other")
    events: list[InternalEvent] = []
    disk = Disk()
    async with delivering(fake, other, events=events) as deliveries:
        disk.commit(deliveries, firing(), digest())
        await until(lambda: len(other.delivered) == 2 and fake.opened == 0)
        disk.commit(deliveries, firing("firing_2"))
        await until(lambda: len(other.delivered) == 3)
        disk.commit(deliveries)
        assert counted(deliveries, "notifications_dropped_total") == {("receiver_gone", "fake"): 3.0}
    assert fake.delivered == ["firing_1"]
    assert disk.outbox == {}
    assert [h for h in events if isinstance(h, ReceiverGone)] == [
        ReceiverGone("fake", "fake.example", "http_410")
    ]


async def test_what_cannot_be_delivered_for_too_long_is_given_up() -> None:
    clock = Clock()
    fake = Fake(script=[Failed("timeout")])
    async with delivering(fake, clock=clock) as deliveries:
        Disk().commit(deliveries, firing())
        await until(lambda: len(fake.delivered) > 2)
        assert counted(deliveries, "notifications_dropped_total") == {}
        clock.ms += 24 * HOUR_MS
        await until(lambda: counted(deliveries, "notifications_dropped_total") == {("timeout", "fake"): 1.0})
        assert counted(deliveries, "notifications_pending") == {}


async def test_with_the_one_that_was_tried_everything_is_given_up_that_has_waited_too_long() -> None:
    clock = Clock()
    fake = Fake(script=[Failed("http_500", 3_600.0)])
    young = firing("firing_young", "young", issued_ms=NOW_MS + 1)
    async with delivering(fake, clock=clock) as deliveries:
        disk = Disk()
        disk.commit(deliveries, *(firing(f"firing_{i}", f"m{i}") for i in range(5)), young)
        clock.ms += 24 * HOUR_MS
        await until(lambda: counted(deliveries, "notifications_dropped_total") == {("http_500", "fake"): 5.0})
        assert counted(deliveries, "notifications_pending") == {("fake",): 1.0}
        disk.commit(deliveries)
    assert list(disk.outbox) == ["firing_young"]
    assert len(fake.delivered) == 1, "it asked for an hour"


async def test_beyond_the_limit_the_oldest_is_given_up() -> None:
    held = asyncio.Event()
    fake = Fake(script=[held, Delivered()])
    async with delivering(fake, spec=replace(QUICK, max_pending=3)) as deliveries:
        notifications = [firing(f"firing_{i}", f"m{i}", issued_ms=NOW_MS + i) for i in range(5)]
        Disk().commit(deliveries, *notifications)
        assert counted(deliveries, "notifications_pending") == {("fake",): 3.0}
        assert counted(deliveries, "notifications_dropped_total") == {("too_many_pending", "fake"): 2.0}
        held.set()
        await until(lambda: counted(deliveries, "notifications_pending") == {})
    assert fake.delivered == ["firing_2", "firing_3", "firing_4"]


async def test_no_end_overtakes_its_alarm_and_no_failing_alarm_blocks_others() -> None:
    def poison(notification: Notification) -> DeliveryResult:
        return Failed("http_500") if notification.series == firing().series and poisoned else Delivered()

    poisoned = True
    fake = Fake(script=[poison])
    async with delivering(fake) as deliveries:
        Disk().commit(deliveries, firing(), resolved(firing()), firing("firing_2", "clicks"), digest())
        await until(lambda: {"firing_2", "digest_1"} <= set(fake.delivered))
        assert "resolved_of_firing_1" not in fake.delivered
        poisoned = False
        await until(lambda: counted(deliveries, "notifications_pending") == {})
    assert fake.delivered[-2:] == ["firing_1", "resolved_of_firing_1"]


async def test_a_hanging_receiver_delays_no_other() -> None:
    stuck, good = Fake("stuck", script=[asyncio.Event()]), Fake("good")
    async with delivering(stuck, good) as deliveries:
        for i in range(20):
            Disk().commit(deliveries, firing(f"firing_{i}", f"m{i}"))
        await until(lambda: len(good.delivered) == 20)
        assert stuck.delivered == ["firing_0"]
        assert counted(deliveries, "notifications_pending") == {("stuck",): 20.0}


async def test_beyond_the_limit_what_was_decided_first_is_given_up_though_the_clock_was_set_back() -> None:
    begin = firing()
    end = resolved(begin, issued_ms=NOW_MS - HOUR_MS)
    held = asyncio.Event()
    fake = Fake(script=[held, Delivered()])
    async with delivering(fake, spec=replace(QUICK, max_pending=1)) as deliveries:
        Disk().commit(deliveries, begin, end)
        held.set()
        await until(lambda: counted(deliveries, "notifications_pending") == {})
    assert fake.delivered == ["resolved_of_firing_1"]


async def test_what_was_given_up_while_it_was_refused_is_counted_once() -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def refusing(*_: object) -> DeliveryResult:
        asked.set()
        await answered.wait()
        return Refused("http_413")

    fake = Fake()
    fake.deliver = refusing  # type: ignore[method-assign]
    async with delivering(fake, spec=replace(QUICK, max_pending=1)) as deliveries:
        disk = Disk()
        disk.commit(deliveries, firing("firing_1", "a"))
        await asked.wait()
        disk.commit(deliveries, firing("firing_2", "b"))
        assert counted(deliveries, "notifications_dropped_total") == {("too_many_pending", "fake"): 1}
        answered.set()
        await until(lambda: deliveries.outbox.size("fake") == 0)
        assert counted(deliveries, "notifications_dropped_total") == {
            ("http_413", "fake"): 1,
            ("too_many_pending", "fake"): 1,
        }


async def test_after_a_restart_what_was_decided_first_is_sent_first_whoever_else_was_sent_it() -> None:
    first, second = firing("first", number=1), firing("second", number=2)
    down = [Fake("web", [Failed("http_500")]), Fake("chat", [Failed("http_500")])]
    disk = Disk()
    async with delivering(*down) as deliveries:
        for issued_to in ({"second": ["web"]}, {"first": ["chat"], "second": ["chat"]}):
            issued = [each for each in (first, second) if each.id in issued_to]
            for each in issued:
                entry = deliveries.record(each, issued_to[each.id])
                assert entry is not None
                disk.outbox[each.id] = entry
            deliveries.add(issued, [], issued_to)
    chat = Fake("chat")
    async with delivering(Fake("web"), chat, outbox=disk.outbox):
        await until(lambda: len(chat.delivered) == 2)
    assert chat.delivered == ["first", "second"]
