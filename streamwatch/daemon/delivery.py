"""Notices on their way: from the outbox to every outlet, at least once, without anybody waiting for it.

One task per outlet: one that hangs delays neither reading nor another outlet. What cannot be delivered ends
as a dead letter: an error in the log that names notice, outlet and reason, and a counter. It is not kept: the
alarm itself stays in the report, and a list nobody empties would only grow.

A notice is told when the commit that holds it is durable, and leaves the outbox with the next commit after
it was told. A crash in between tells it again, under the same id.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from streamwatch.core.notices import Notice
from streamwatch.core.outbox import Outbox
from streamwatch.core.outlets import Answer, Delivered, Failed, Gone, Outlet, Refused
from streamwatch.core.series import Family
from streamwatch.daemon.lane import DeliverySpec, Lane
from streamwatch.telemetry import AlertDead, AlertDelivered, AlertFailed, Happening, OutletGone


class Deliveries:
    """Keeps account of what is owed to whom, and delivers it.

    Parameters
    ----------
    outlets
        Whom to tell; names are unique.
    spec
        How long and how often.
    emit
        Told what happens.
    clock_ms
        Host time in milliseconds since the epoch.
    draw
        Uniform in [0, 1), for jitter.
    """

    def __init__(
        self,
        outlets: Sequence[Outlet],
        spec: DeliverySpec,
        emit: Callable[[Happening], None],
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._spec = spec
        self._emit = emit
        self._clock_ms = clock_ms
        self._draw = draw
        self._lanes = {outlet.name: Lane(outlet) for outlet in outlets}
        self._outbox = Outbox(list(self._lanes))
        self._standing: Sequence[Notice] = ()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._delivered: Counter[str] = Counter(dict.fromkeys(self._lanes, 0))
        self._failed: Counter[tuple[str, str]] = Counter()
        self._dead: Counter[tuple[str, str]] = Counter()

    def record(self, notice: Notice) -> bytes | None:
        """What the outbox keeps of a new notice until it is delivered; None where nobody wants it."""
        wanted = self._wanted(notice)
        return self._outbox.draft(notice, wanted) if wanted else None

    def add(self, notices: Sequence[Notice], standing: Sequence[Notice]) -> None:
        """Deliver new notices, now that the commit that holds them is durable.

        Parameters
        ----------
        notices
            The new ones, in order.
        standing
            All open alarms as of that commit, for outlets that are reminded of them.
        """
        self._standing = standing
        for notice in notices:
            self._outbox.add(notice, self._wanted(notice))
        for lane in self._lanes.values():
            self._bound(lane)
            lane.woken.set()

    @property
    def changed(self) -> bool:
        """Whether a commit is wanted even if nothing was read: without it a restart would repeat notices."""
        return self._outbox.changed

    def changes(self) -> Mapping[str, bytes | None]:
        """What the next commit writes to the outbox, beside new notices, since the last call."""
        return self._outbox.changes()

    def restore(self, outbox: Mapping[str, bytes], standing: Sequence[Notice]) -> None:
        """Owe exactly what the last durable commit says is owed, at a start or when state was opened anew."""
        self._standing = standing
        for name, notice in self._outbox.restore(outbox):
            self._bury(name, notice, "outlet_removed", 0)
        for lane in self._lanes.values():
            self._bound(lane)
            lane.woken.set()

    async def run(self) -> None:
        """Deliver until `stop`; ends at once where there are no outlets. Raises bugs only."""
        async with asyncio.TaskGroup() as group:
            self._tasks = [group.create_task(self._serve(lane)) for lane in self._lanes.values()]

    async def stop(self, seconds: float) -> None:
        """Let go out what goes out within `seconds`; the rest stays in the outbox for the next start."""
        self._stopping = True
        for lane in self._lanes.values():
            lane.woken.set()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def families(self) -> list[Family]:
        """What was delivered, what failed, what waits and what was given up, by outlet; since the start."""
        pending = [((name,), float(self._outbox.size(name))) for name in self._lanes]
        return [
            Family(
                "alerts_delivered_total",
                "counter",
                "Notices an outlet has taken.",
                ("outlet",),
                [((name,), float(n)) for name, n in sorted(self._delivered.items())],
            ),
            Family(
                "alerts_failed_total",
                "counter",
                "Attempts to deliver or to repeat that failed, by reason.",
                ("outlet", "reason"),
                [(key, float(n)) for key, n in sorted(self._failed.items())],
            ),
            Family("alerts_pending", "gauge", "Notices waiting for an outlet.", ("outlet",), pending),
            Family(
                "alerts_dead_total",
                "counter",
                "Notices an outlet was never told, by reason; each is an error in the log.",
                ("outlet", "reason"),
                [(key, float(n)) for key, n in sorted(self._dead.items())],
            ),
        ]

    async def _serve(self, lane: Lane) -> None:
        await lane.outlet.open()
        try:
            while not lane.gone:
                notice, seconds = self._next(lane)
                if seconds is None or seconds > 0:
                    if self._stopping:
                        return
                    await lane.wait(seconds)
                elif notice is not None:
                    lane.reminded = False
                    self._account(lane, notice, await lane.outlet.deliver(notice, self._clock_ms()))
                else:
                    await self._remind(lane)
        finally:
            await lane.outlet.close()

    def _next(self, lane: Lane) -> tuple[Notice | None, float | None]:
        """What to tell next (None: a reminder), and in how many seconds (None: nothing to do)."""
        now = asyncio.get_running_loop().time()
        name = lane.outlet.name
        repeats = lane.outlet.repeat_seconds is not None and self._standing and not self._stopping
        remind = max(lane.remind, lane.resume) - now
        notice = self._outbox.head(name)
        if repeats and (notice is None or (remind <= 0 and not lane.reminded)):
            return None, remind
        return notice, None if notice is None else lane.resume - now

    async def _remind(self, lane: Lane) -> None:
        """Repeat open alarms, but those about which there is something newer to tell first."""
        name, wait = lane.outlet.name, lane.outlet.repeat_seconds or 0.0
        lane.reminded = True
        lane.remind = asyncio.get_running_loop().time() + wait
        open_alarms = [n for n in self._standing if lane.outlet.wants(n)]
        told = [n for n in open_alarms if not self._outbox.owes(name, n.series)]
        if told:
            answer = await lane.outlet.remind(told, self._clock_ms())
            if isinstance(answer, Delivered):
                lane.failures = 0
                return
            self._failed[name, answer.reason] += 1
            if isinstance(answer, Gone):
                self._close(lane, answer)
            else:
                lane.pause(answer, self._spec, self._draw())

    def _account(self, lane: Lane, notice: Notice, answer: Answer) -> None:
        """Write down how an attempt went."""
        name = lane.outlet.name
        attempts = self._outbox.attempts(name, notice) + 1
        if isinstance(answer, Delivered):
            lane.failures = 0
            if self._outbox.settle(name, notice):
                self._delivered[name] += 1
                self._emit(AlertDelivered(name, notice.id, notice.kind, attempts))
            return
        self._failed[name, answer.reason] += 1
        match answer:
            case Gone():
                self._close(lane, answer)
            case Refused():
                lane.failures = 0
                self._bury(name, notice, answer.reason, attempts)
            case Failed():
                self._outbox.fail(name, notice)
                lane.pause(answer, self._spec, self._draw())
                self._give_up(name, answer.reason)
                if self._outbox.owed(name, notice):
                    wait = round(lane.resume - asyncio.get_running_loop().time(), 3)
                    self._emit(AlertFailed(name, lane.outlet.host, notice.id, answer.reason, attempts, wait))

    def _close(self, lane: Lane, answer: Gone) -> None:
        """Tell an outlet nothing more until the next start."""
        lane.gone = True
        self._emit(OutletGone(lane.outlet.name, lane.outlet.host, answer.reason))
        self._bound(lane)

    def _bound(self, lane: Lane) -> None:
        """Give up what waits beyond the limit; everything, if the outlet is gone."""
        name = lane.outlet.name
        most, reason = (0, "outlet_gone") if lane.gone else (self._spec.max_pending, "too_many_pending")
        if (beyond := self._outbox.size(name) - most) > 0:
            for notice in self._outbox.waiting(name)[:beyond]:
                self._bury(name, notice, reason, self._outbox.attempts(name, notice))

    def _give_up(self, name: str, reason: str) -> None:
        """Give up all that has waited too long, not only what was just tried: attempts are a minute apart."""
        due_ms = self._clock_ms() - self._spec.give_up_after_ms
        for notice in [each for each in self._outbox.waiting(name) if each.issued_ms <= due_ms]:
            self._bury(name, notice, reason, self._outbox.attempts(name, notice))

    def _bury(self, name: str, notice: Notice, reason: str, attempts: int) -> None:
        """Give a notice up for one outlet, and say so."""
        self._outbox.settle(name, notice)
        self._dead[name, reason] += 1
        alarm = notice.alarm
        model, detector = (alarm.model, alarm.detector) if alarm else ("", "")
        self._emit(AlertDead(name, notice.id, notice.kind, model, detector, reason, attempts))

    def _wanted(self, notice: Notice) -> list[str]:
        return [name for name, lane in self._lanes.items() if lane.outlet.wants(notice)]
