"""Notices reach every outlet at least once, in order, whatever it does and whenever this side dies."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from streamwatch.core.notices import Notice
from streamwatch.core.outlets import Answer, Delivered, Failed, Gone, Refused
from streamwatch.daemon.delivery import Deliveries
from streamwatch.daemon.lane import DeliverySpec, Lane
from streamwatch.edge.notifiers import EndpointSpec, HttpOutlet, Slack, Webhook
from streamwatch.telemetry import (
    AlertDead,
    AlertDelivered,
    AlertFailed,
    Happening,
    OutletGone,
    Telemetry,
)
from tests.edge.notifiers.endpoint import endpoint, until
from tests.edge.notifiers.notices import NOW_MS, digest, firing, resolved

QUICK = DeliverySpec(initial_seconds=0.001, maximum_seconds=0.01)
HOUR_MS = 3_600_000
KEY = b"sixteen bytes or more"


@dataclass
class Fake:
    """An outlet that answers by a script; the last answer stays. An Event in it is waited for."""

    name: str = "fake"
    script: list[Any] = field(default_factory=lambda: [Delivered()])
    repeat_seconds: float | None = None
    severities: frozenset[str] = frozenset({"info", "warning", "error", "critical"})
    told: list[str] = field(default_factory=list)
    reminded: list[list[str]] = field(default_factory=list)
    host: str = "fake.example"
    opened: int = 0

    def wants(self, notice: Notice) -> bool:
        return notice.severity in self.severities

    async def open(self) -> None:
        self.opened += 1

    async def close(self) -> None:
        self.opened -= 1

    async def deliver(self, notice: Notice, now_ms: int) -> Answer:
        del now_ms
        self.told.append(notice.id)
        return await self._answer(notice)

    async def remind(self, standing: Sequence[Notice], now_ms: int) -> Answer:
        del now_ms
        self.reminded.append([notice.id for notice in standing])
        return await self._answer(standing[0])

    async def _answer(self, notice: Notice) -> Answer:
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            return Delivered()
        return answer(notice) if callable(answer) else answer


@dataclass
class Disk:
    """The outbox as a store keeps it: what was committed."""

    outbox: dict[str, bytes] = field(default_factory=dict)

    def commit(self, deliveries: Deliveries, *notices: Notice, standing: Sequence[Notice] = ()) -> None:
        """One commit of the daemon: notices and changes become durable, then delivery begins."""
        changes: dict[str, bytes | None] = dict(deliveries.changes())
        changes |= {notice.id: deliveries.record(notice) for notice in notices}
        for name, entry in changes.items():
            if entry is None:
                self.outbox.pop(name, None)
            else:
                self.outbox[name] = entry
        deliveries.add(notices, standing)


@dataclass
class Clock:
    ms: int = NOW_MS

    def __call__(self) -> int:
        return self.ms


@contextlib.asynccontextmanager
async def delivering(
    *outlets: Any,
    spec: DeliverySpec = QUICK,
    said: list[Happening] | None = None,
    clock: Callable[[], int] | None = None,
    outbox: Mapping[str, bytes] | None = None,
    standing: Sequence[Notice] = (),
) -> AsyncIterator[Deliveries]:
    """Deliveries that run, and are killed at the end."""
    emit = (lambda _: None) if said is None else said.append
    deliveries = Deliveries(outlets, spec, emit, clock or Clock(), lambda: 0.5)
    deliveries.restore(outbox or {}, standing)
    running = asyncio.create_task(deliveries.run())
    try:
        yield deliveries
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def counted(deliveries: Deliveries, name: str) -> dict[tuple[str, ...], float]:
    family = next(f for f in deliveries.families() if f.name == name)
    return {key: float(value) for key, value in family.samples if value}  # type: ignore[arg-type]


def web(url: str, name: str = "web", seconds: float = 5.0) -> HttpOutlet:
    return HttpOutlet(EndpointSpec(name, url, timeout_seconds=seconds), Webhook([KEY]))


async def test_a_notice_goes_to_every_outlet_that_wants_it_and_then_leaves_the_outbox() -> None:
    one, other, picky = Fake("one"), Fake("other"), Fake("picky", severities=frozenset({"critical"}))
    disk = Disk()
    said: list[Happening] = []
    async with delivering(one, other, picky, said=said) as deliveries:
        disk.commit(deliveries, firing())
        assert list(disk.outbox) == ["firing_1"]
        await until(lambda: one.told == other.told == ["firing_1"])
        await until(lambda: counted(deliveries, "alerts_pending") == {})
        disk.commit(deliveries)
    assert disk.outbox == {}
    assert picky.told == []
    assert counted(deliveries, "alerts_delivered_total") == {("one",): 1.0, ("other",): 1.0}
    assert said.count(AlertDelivered("one", "firing_1", "firing", 1)) == 1
    assert one.opened == 0, "closed"


async def test_what_nobody_wants_is_not_kept() -> None:
    async with delivering(Fake(severities=frozenset({"critical"}))) as deliveries:
        assert deliveries.record(firing()) is None
    assert Deliveries((), QUICK, lambda _: None).record(firing()) is None
    await Deliveries((), QUICK, lambda _: None).run()


async def test_a_failure_is_tried_again_until_it_works() -> None:
    fake = Fake(script=[Failed("http_500"), Failed("timeout"), Delivered()])
    said: list[Happening] = []
    async with delivering(fake, said=said) as deliveries:
        Disk().commit(deliveries, firing())
        await until(lambda: counted(deliveries, "alerts_delivered_total") != {})
        assert fake.told == ["firing_1"] * 3
        failed = {("fake", "http_500"): 1.0, ("fake", "timeout"): 1.0}
        assert counted(deliveries, "alerts_failed_total") == failed
    assert [h.attempts for h in said if isinstance(h, AlertFailed | AlertDelivered)] == [1, 2, 3]


async def test_waits_double_up_to_a_bound_with_full_jitter_and_are_as_long_as_asked_for() -> None:
    now = asyncio.get_running_loop().time
    lane = Lane(Fake())
    waits: list[float] = []
    for draw in (1.0, 1.0, 1.0, 0.0, 0.25, 1.0, 1.0, 1.0):
        lane.pause(Failed("http_500"), DeliverySpec(), draw)
        waits.append(lane.resume - now())
    assert waits == pytest.approx([1, 2, 4, 0, 4, 32, 60, 60], abs=0.05)
    lane.pause(Failed("http_429", 120.0), DeliverySpec(), 1.0)
    assert lane.resume - now() == pytest.approx(120, abs=0.05)
    lane.pause(Failed("http_429", 1e9), DeliverySpec(), 1.0)
    assert lane.resume - now() == pytest.approx(3_600, abs=0.05)


async def test_a_refused_notice_is_a_dead_letter_and_the_next_goes_on() -> None:
    fake = Fake(script=[Refused("http_400"), Delivered()])
    said: list[Happening] = []
    disk = Disk()
    async with delivering(fake, said=said) as deliveries:
        disk.commit(deliveries, firing(), firing("firing_2", "clicks"))
        await until(lambda: counted(deliveries, "alerts_delivered_total") != {})
        assert counted(deliveries, "alerts_dead_total") == {("fake", "http_400"): 1.0}
        disk.commit(deliveries)
    assert disk.outbox == {}
    dead = AlertDead("fake", "firing_1", "firing", "fraud-v3", "page_hinkley", "http_400", 1)
    assert [h for h in said if isinstance(h, AlertDead)] == [dead]


async def test_an_outlet_that_is_gone_is_told_nothing_more_and_it_is_said_once() -> None:
    fake, other = Fake(script=[Gone("http_410")]), Fake("other")
    said: list[Happening] = []
    disk = Disk()
    async with delivering(fake, other, said=said) as deliveries:
        disk.commit(deliveries, firing(), digest())
        await until(lambda: len(other.told) == 2 and fake.opened == 0)
        disk.commit(deliveries, firing("firing_2"))
        await until(lambda: len(other.told) == 3)
        disk.commit(deliveries)
        assert counted(deliveries, "alerts_dead_total") == {("fake", "outlet_gone"): 3.0}
    assert fake.told == ["firing_1"]
    assert disk.outbox == {}
    assert [h for h in said if isinstance(h, OutletGone)] == [OutletGone("fake", "fake.example", "http_410")]


async def test_what_cannot_be_delivered_for_too_long_is_given_up() -> None:
    clock = Clock()
    fake = Fake(script=[Failed("timeout")])
    async with delivering(fake, clock=clock) as deliveries:
        Disk().commit(deliveries, firing())
        await until(lambda: len(fake.told) > 2)
        assert counted(deliveries, "alerts_dead_total") == {}
        clock.ms += 24 * HOUR_MS
        await until(lambda: counted(deliveries, "alerts_dead_total") == {("fake", "timeout"): 1.0})
        assert counted(deliveries, "alerts_pending") == {}


async def test_with_the_one_that_was_tried_everything_is_given_up_that_has_waited_too_long() -> None:
    clock = Clock()
    fake = Fake(script=[Failed("http_500", 3_600.0)])
    young = firing("firing_young", "young", issued_ms=NOW_MS + 1)
    async with delivering(fake, clock=clock) as deliveries:
        disk = Disk()
        disk.commit(deliveries, *(firing(f"firing_{i}", f"m{i}") for i in range(5)), young)
        clock.ms += 24 * HOUR_MS
        await until(lambda: counted(deliveries, "alerts_dead_total") == {("fake", "http_500"): 5.0})
        assert counted(deliveries, "alerts_pending") == {("fake",): 1.0}
        disk.commit(deliveries)
    assert list(disk.outbox) == ["firing_young"]
    assert len(fake.told) == 1, "it asked for an hour"


async def test_beyond_the_limit_the_oldest_is_given_up() -> None:
    held = asyncio.Event()
    fake = Fake(script=[held, Delivered()])
    async with delivering(fake, spec=replace(QUICK, max_pending=3)) as deliveries:
        notices = [firing(f"firing_{i}", f"m{i}", issued_ms=NOW_MS + i) for i in range(5)]
        Disk().commit(deliveries, *notices)
        assert counted(deliveries, "alerts_pending") == {("fake",): 3.0}
        assert counted(deliveries, "alerts_dead_total") == {("fake", "too_many_pending"): 2.0}
        held.set()
        await until(lambda: counted(deliveries, "alerts_pending") == {})
    assert fake.told == ["firing_2", "firing_3", "firing_4"]


async def test_no_end_overtakes_its_alarm_and_no_failing_alarm_blocks_others() -> None:
    def poison(notice: Notice) -> Answer:
        return Failed("http_500") if notice.series == firing().series and poisoned else Delivered()

    poisoned = True
    fake = Fake(script=[poison])
    async with delivering(fake) as deliveries:
        Disk().commit(deliveries, firing(), resolved(firing()), firing("firing_2", "clicks"), digest())
        await until(lambda: {"firing_2", "digest_1"} <= set(fake.told))
        assert "resolved_of_firing_1" not in fake.told
        poisoned = False
        await until(lambda: counted(deliveries, "alerts_pending") == {})
    assert fake.told[-2:] == ["firing_1", "resolved_of_firing_1"]


async def test_a_hanging_outlet_delays_no_other() -> None:
    stuck, good = Fake("stuck", script=[asyncio.Event()]), Fake("good")
    async with delivering(stuck, good) as deliveries:
        for i in range(20):
            Disk().commit(deliveries, firing(f"firing_{i}", f"m{i}"))
        await until(lambda: len(good.told) == 20)
        assert stuck.told == ["firing_0"]
        assert counted(deliveries, "alerts_pending") == {("stuck",): 20.0}


async def test_open_alarms_are_repeated_until_they_end() -> None:
    fake = Fake(repeat_seconds=0.005)
    async with delivering(fake) as deliveries:
        disk = Disk()
        disk.commit(deliveries, firing(), standing=[firing()])
        await until(lambda: len(fake.reminded) >= 3)
        disk.commit(deliveries, resolved(firing()))
        await until(lambda: fake.told == ["firing_1", "resolved_of_firing_1"])
        times = len(fake.reminded)
        disk.commit(deliveries, firing("firing_2", "clicks"), standing=[firing("firing_2", "clicks")])
        await until(lambda: len(fake.reminded) > times)
        assert fake.reminded[times:] == [["firing_2"]] * (len(fake.reminded) - times)


async def test_after_a_restart_open_alarms_are_repeated_though_nothing_is_owed() -> None:
    fake = Fake(repeat_seconds=3_600.0)
    async with delivering(fake, standing=[firing()]):
        await until(lambda: fake.reminded == [["firing_1"]])


async def test_a_reminder_does_not_run_ahead_of_what_is_still_owed() -> None:
    """Else the end of the alarm before would come after the beginning of this one."""
    again = firing("firing_2")
    fake = Fake(script=[Failed("http_500")], repeat_seconds=0.002)
    async with delivering(fake) as deliveries:
        standing = [again, firing("firing_3", "clicks")]
        Disk().commit(deliveries, resolved(firing()), again, standing=standing)
        await until(lambda: len(fake.reminded) > 2 and len(fake.told) > 2)
    assert set(fake.told) == {"resolved_of_firing_1"}
    assert {tuple(ids) for ids in fake.reminded} == {("firing_3",)}


async def test_reminders_that_fail_are_counted_and_hold_no_notice_up() -> None:
    fake = Fake(
        script=[lambda n: Refused("http_400") if n.id == "open" else Delivered()], repeat_seconds=0.002
    )
    async with delivering(fake, standing=[firing("open", "other")]) as deliveries:
        await until(lambda: len(fake.reminded) > 2)
        Disk().commit(deliveries, firing(), standing=[firing("open", "other")])
        await until(lambda: fake.told == ["firing_1"])
        assert counted(deliveries, "alerts_failed_total")["fake", "http_400"] > 2
        assert counted(deliveries, "alerts_dead_total") == {}


async def test_a_stop_lets_out_what_goes_out_and_leaves_the_rest_to_the_next_start() -> None:
    good, stuck, down = Fake("good"), Fake("stuck", script=[asyncio.Event()]), Fake("down", [Failed("dns")])
    disk = Disk()
    async with delivering(good, stuck, down, spec=DeliverySpec(initial_seconds=3_600)) as deliveries:
        disk.commit(deliveries, firing(), digest())
        await until(lambda: bool(stuck.told and down.told))
        await deliveries.stop(0.05)
        disk.commit(deliveries)
    assert good.told == ["firing_1", "digest_1"]
    assert {good.opened, stuck.opened, down.opened} == {0}
    good, stuck, down = Fake("good"), Fake("stuck"), Fake("down")
    async with delivering(good, stuck, down, outbox=disk.outbox) as deliveries:
        await until(lambda: counted(deliveries, "alerts_pending") == {})
    assert good.told == []
    assert set(stuck.told) == set(down.told) == {"firing_1", "digest_1"}


async def test_a_restart_keeps_the_order_of_an_alarm_and_its_end_decided_at_once() -> None:
    disk, fake = Disk(), Fake()
    down = Fake(script=[Failed("dns")])
    async with delivering(down) as deliveries:
        begin = firing("firing_z")
        disk.commit(deliveries, begin, resolved(begin, id="a_resolved"))
    async with delivering(fake, outbox=disk.outbox) as deliveries:
        await until(lambda: counted(deliveries, "alerts_pending") == {})
    assert fake.told == ["firing_z", "a_resolved"]


async def test_notices_of_an_outlet_that_was_removed_are_dead_letters() -> None:
    disk = Disk()
    async with delivering(Fake("old", [Failed("dns")]), Fake("kept", [Failed("dns")])) as deliveries:
        disk.commit(deliveries, firing())
    kept = Fake("kept")
    async with delivering(kept, outbox=disk.outbox) as deliveries:
        assert counted(deliveries, "alerts_dead_total") == {("old", "outlet_removed"): 1.0}
        await until(lambda: kept.told == ["firing_1"])
        await until(lambda: counted(deliveries, "alerts_pending") == {})
        disk.commit(deliveries)
    assert disk.outbox == {}


async def test_state_opened_anew_while_delivering_is_what_counts() -> None:
    """A commit failed: what it held was never announced, and what it would have removed is told again."""
    disk, fake = Disk(), Fake()
    async with delivering(fake) as deliveries:
        disk.commit(deliveries, firing())
        await until(lambda: counted(deliveries, "alerts_pending") == {})
        assert deliveries.changed
        deliveries.restore(disk.outbox, ())
        assert not deliveries.changed
        await until(lambda: fake.told == ["firing_1", "firing_1"])
        await until(lambda: deliveries.changed)
        disk.commit(deliveries)
    assert disk.outbox == {}


async def test_attempts_are_remembered_over_a_restart() -> None:
    disk, said = Disk(), list[Happening]()
    fake = Fake(script=[Failed("dns")])
    async with delivering(fake) as deliveries:
        disk.commit(deliveries, firing())
        await until(lambda: len(fake.told) == 4)
        disk.commit(deliveries)
    async with delivering(Fake(), outbox=disk.outbox, said=said) as deliveries:
        await until(lambda: counted(deliveries, "alerts_pending") == {})
    (delivered,) = (h for h in said if isinstance(h, AlertDelivered))
    assert delivered.attempts >= 4


async def test_killed_between_the_post_and_its_answer_the_same_id_is_sent_again() -> None:
    disk = Disk()
    async with endpoint("late", 200) as receiver:
        async with delivering(web(receiver.url)) as deliveries:
            disk.commit(deliveries, firing())
            await receiver.received(1)
        async with delivering(web(receiver.url), outbox=disk.outbox) as deliveries:
            posts = await receiver.received(2)
            await until(lambda: counted(deliveries, "alerts_pending") == {})
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
                await until(lambda d=deliveries: counted(d, "alerts_pending") == {})
        assert [post.headers["webhook-id"] for post in receiver.posts] == ["firing_1", "firing_1"]


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (["hang", 200], "timeout"),
        ([500, 200], "http_500"),
        ([(429, {"Retry-After": "0"}), 200], "http_429"),
        ([(302, {"Location": "http://169.254.169.254/"}), 200], "http_302"),
        (["reset", 200], "connection"),
    ],
    ids=["hang", "500", "429", "302", "reset"],
)
async def test_each_trouble_of_a_real_endpoint_is_counted_and_overcome(
    trouble: list[Any], reason: str
) -> None:
    async with endpoint(*trouble) as receiver:
        async with delivering(web(receiver.url, seconds=0.3)) as deliveries:
            Disk().commit(deliveries, firing())
            posts = await receiver.received(2)
            await until(lambda: counted(deliveries, "alerts_delivered_total") == {("web",): 1.0})
            assert counted(deliveries, "alerts_failed_total") == {("web", reason): 1.0}
        assert {post.headers["webhook-id"] for post in posts} == {"firing_1"}


async def test_an_endpoint_that_asks_for_time_is_left_alone() -> None:
    said: list[Happening] = []
    async with (
        endpoint((429, {"Retry-After": "1800"})) as receiver,
        delivering(web(receiver.url), said=said) as deliveries,
    ):
        Disk().commit(deliveries, firing())
        await until(lambda: any(isinstance(h, AlertFailed) for h in said))
        Disk().commit(deliveries, firing("firing_2", "clicks"))
        (failed,) = (h for h in said if isinstance(h, AlertFailed))
        assert failed.retry_in_seconds == pytest.approx(1_800, abs=1)
        await asyncio.wait_for(deliveries.stop(1.0), 5)
        assert len(receiver.posts) == 1


async def test_no_secret_is_ever_logged() -> None:
    log = io.StringIO()
    telemetry = Telemetry("debug", "json", log)
    encoded = base64.b64encode(KEY).decode()
    async with endpoint(500, (302, {"Location": "/SECRET"}), "reset", 404, 410) as receiver:
        url = f"{receiver.url}/SECRET/T0?key=SECRET".replace("//127", "//user:SECRET@127")
        outlet = HttpOutlet(EndpointSpec("web", url), Webhook([KEY]))
        nowhere = HttpOutlet(EndpointSpec("nowhere", "http://no-such-host.invalid/SECRET"), Slack())
        deliveries = Deliveries([outlet, nowhere], QUICK, telemetry.emit, Clock(), lambda: 0.5)
        running = asyncio.create_task(deliveries.run())
        Disk().commit(deliveries, *(firing(f"firing_{i}", f"m{i}") for i in range(3)))
        await until(lambda: telemetry.count(OutletGone) == 1 and telemetry.count(AlertFailed) > 3)
        await deliveries.stop(0.1)
        await running
    written = log.getvalue()
    assert "outlet_gone" in written
    assert "127.0.0.1" in written
    assert "SECRET" not in written
    assert encoded not in written
