"""Alarms that stay open are repeated again and again, and never out of turn."""

from __future__ import annotations

from streamwatch.core.alerting.outbox import Delivered, Failed, Refused
from streamwatch.telemetry import InternalEvent, NotificationFailed
from tests.cpu_budget import until
from tests.daemon.receivers import Disk, Fake, counted, delivering
from tests.edge.receivers.notifications import firing, resolved


async def test_open_alarms_are_repeated_until_they_end() -> None:
    fake = Fake(repeat_interval_seconds=0.005)
    async with delivering(fake) as deliveries:
        disk = Disk()
        disk.commit(deliveries, firing(), open_alarms=[firing()])
        await until(lambda: len(fake.reminded) >= 3)
        disk.commit(deliveries, resolved(firing()))
        await until(lambda: fake.delivered == ["firing_1", "resolved_of_firing_1"])
        times = len(fake.reminded)
        disk.commit(deliveries, firing("firing_2", "clicks"), open_alarms=[firing("firing_2", "clicks")])
        await until(lambda: len(fake.reminded) > times)
        assert fake.reminded[times:] == [["firing_2"]] * (len(fake.reminded) - times)


async def test_after_a_restart_open_alarms_are_repeated_though_nothing_is_owed() -> None:
    fake = Fake(repeat_interval_seconds=3_600.0)
    async with delivering(fake, open_alarms=[firing()]):
        await until(lambda: fake.reminded == [["firing_1"]])


async def test_a_reminder_does_not_run_ahead_of_what_is_still_owed() -> None:
    """Else the end of the alarm before would come after the beginning of this one."""
    again = firing("firing_2")
    fake = Fake(script=[Failed("http_500")], repeat_interval_seconds=0.002)
    async with delivering(fake) as deliveries:
        open_alarms = [again, firing("firing_3", "clicks")]
        Disk().commit(deliveries, resolved(firing()), again, open_alarms=open_alarms)
        await until(lambda: len(fake.reminded) > 2 and len(fake.delivered) > 2)
    assert set(fake.delivered) == {"resolved_of_firing_1"}
    assert {tuple(ids) for ids in fake.reminded} == {("firing_3",)}


async def test_reminders_that_fail_are_counted_and_hold_no_notification_up() -> None:
    fake = Fake(
        script=[lambda n: Refused("http_400") if n.id == "open" else Delivered()],
        repeat_interval_seconds=0.002,
    )
    events: list[InternalEvent] = []
    async with delivering(fake, open_alarms=[firing("open", "other")], events=events) as deliveries:
        await until(lambda: len(fake.reminded) > 2)
        logged = [event for event in events if isinstance(event, NotificationFailed)]
        assert [(event.notification, event.reason) for event in logged[:2]] == [("reminder", "http_400")] * 2
        Disk().commit(deliveries, firing(), open_alarms=[firing("open", "other")])
        await until(lambda: fake.delivered == ["firing_1"])
        assert counted(deliveries, "notifications_failed_total")["http_400", "fake"] > 2
        assert counted(deliveries, "notifications_dropped_total") == {}


async def test_of_500_open_alarms_no_request_repeats_more_than_50_and_one_that_is_refused_ends_none() -> None:
    """As Alertmanager refuses all of a request for one alert in it, and proxies refuse large ones."""
    alarms = [firing(f"firing_{n}", f"fraud-{n:03d}") for n in range(500)]
    fake = Fake(
        script=[lambda n: Refused("http_413") if n.id == "firing_50" else Delivered()],
        repeat_interval_seconds=3_600.0,
    )
    async with delivering(fake, open_alarms=alarms) as deliveries:
        await until(lambda: len(fake.reminded) == 10)
        assert [len(each) for each in fake.reminded] == [50] * 10
        assert [name for each in fake.reminded for name in each] == [each.id for each in alarms]
        assert counted(deliveries, "notifications_failed_total") == {("http_413", "fake"): 1}


async def test_reminders_of_a_receiver_that_is_away_are_not_all_tried() -> None:
    alarms = [firing(f"firing_{n}", f"fraud-{n:03d}") for n in range(120)]
    fake = Fake(script=[Failed("timeout"), Delivered()], repeat_interval_seconds=0.01)
    async with delivering(fake, open_alarms=alarms):
        await until(lambda: len(fake.reminded) >= 4)
        assert [len(each) for each in fake.reminded[:4]] == [50, 50, 50, 20]
        assert fake.reminded[0] == fake.reminded[1]
