"""Delivery of notifications from the outbox to every receiver, at least once, in tasks of their own.

Each receiver has one task: a receiver that hangs delays neither reading nor another receiver. A notification
that cannot be delivered is dropped and counted; an error in the log names notification, receiver and reason.
It is not kept: the alarm itself stays in the report, and a list that nobody empties would only grow.

A notification is sent when the commit that holds it is durable, and leaves the outbox with the next commit
after it was sent. A crash in between sends it again, under the same id. A process that goes on, with a state
opened again or an election won again, remembers what it has sent.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.outbox import (
    Delivered,
    DeliveryResult,
    Failed,
    Gone,
    Outbox,
    Receiver,
    Refused,
)
from streamwatch.core.alerting.pacing import Orphans
from streamwatch.core.metrics import family
from streamwatch.core.metrics.metric import Durations
from streamwatch.core.metrics.series import Family
from streamwatch.daemon.status import host_ms
from streamwatch.telemetry import (
    InternalEvent,
    NotificationDropped,
    NotificationFailed,
    NotificationsDropped,
    NotificationSent,
    ReceiverGone,
)

MOST_REMINDED: Final = 50
"""Open incidents of one reminder, some 40 kB: proxies refuse large bodies (HTTP status 413), and one alert
that is refused lets a receiver refuse its whole request."""
REMINDER: Final = "reminder"
"""In the log of failed attempts, instead of the id of a notification."""
MOST_SETTLED: Final = 10_000
"""Most notifications, by receiver, of which a process remembers that they were delivered or dropped."""
_SILENT_SECONDS: Final = 0.1
"""Seconds between two checks of whether this process may notify."""


def _by_reason(counts: Mapping[tuple[str, str], int]) -> list[tuple[tuple[str, str], float]]:
    """Return samples with labels (reason, receiver) of counts by (receiver, reason)."""
    return sorted(((reason, name), float(n)) for (name, reason), n in counts.items())


@dataclass(frozen=True, slots=True)
class DeliverySpec:
    """Limits of delivery: how long to try, and how often."""

    give_up_after_ms: int = 86_400_000
    """Age since its decision, by the host's clock, at which a notification is dropped."""
    max_pending: int = 10_000
    """Most notifications that wait for one receiver; beyond it the oldest is dropped."""
    initial_seconds: float = 1.0
    """Upper bound of the wait after a first failure; it doubles with each further one."""
    maximum_seconds: float = 60.0
    """Largest value of that bound; each wait is drawn uniformly between 0 and the bound (full jitter)."""
    max_asked_seconds: float = 3_600.0
    """Longest wait that a receiver may ask for in its answer (`Retry-After`)."""


@dataclass(slots=True)
class ReceiverQueue:
    """One receiver, and when it may be sent the next notification."""

    receiver: Receiver
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there are new notifications or the daemon stops."""
    failures: int = 0
    """Failed attempts in a row."""
    resume: float = 0.0
    """Loop time before which no attempt is made."""
    remind: float = 0.0
    """Loop time of the next reminder of open alarms."""
    reminded: bool = False
    """Whether the last attempt was a reminder: then new notifications come first, even if reminders fail."""
    gone: bool = False
    """Whether the receiver answered `Gone`: nothing more is sent until the next start."""
    durations: Durations = field(default_factory=Durations)
    """Histogram of durations of attempts to deliver a notification."""

    def pause(self, answer: DeliveryResult, spec: DeliverySpec, draw: float) -> None:
        """Set the time of the next attempt after a failure: exponential back-off with full jitter.

        Parameters
        ----------
        answer
            Result of the attempt; the wait is at least what it asks for, up to `max_asked_seconds`.
        spec
            Bounds of the wait.
        draw
            Uniform in [0, 1).
        """
        ceiling = min(spec.maximum_seconds, spec.initial_seconds * 2.0 ** min(self.failures, 32))
        asked = (answer.after_seconds or 0.0) if isinstance(answer, Failed) else 0.0
        self.failures += 1
        wait = max(draw * ceiling, min(asked, spec.max_asked_seconds))
        self.resume = asyncio.get_running_loop().time() + wait

    async def wait(self, seconds: float | None) -> None:
        """Wait until the queue is woken, at most `seconds` (None: without limit)."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.woken.wait()
        self.woken.clear()


class Deliveries:
    """Delivers the notifications of the outbox, each kept until a commit has removed it.

    Parameters
    ----------
    receivers
        Receivers of notifications; names are unique.
    spec
        Limits of retries and of the number that wait.
    emit
        Receives internal events.
    clock_ms
        Host time in milliseconds since the epoch.
    draw
        Uniform in [0, 1), for jitter.
    speaks
        Returns whether this process may notify now: of several replicas only one may. None: always.
    """

    def __init__(
        self,
        receivers: Sequence[Receiver],
        spec: DeliverySpec,
        emit: Callable[[InternalEvent], None],
        clock_ms: Callable[[], int] = host_ms,
        draw: Callable[[], float] = random.random,
        speaks: Callable[[], bool] | None = None,
    ) -> None:
        self._speaks = speaks
        self._spec = spec
        self._emit = emit
        self._clock_ms = clock_ms
        self._draw = draw
        self._queues = {receiver.name: ReceiverQueue(receiver) for receiver in receivers}
        self.outbox = Outbox(list(self._queues))
        self._open_incidents: Sequence[Notification] = ()
        self._settled: dict[tuple[str, str], None] = {}
        """Receiver and id of what was delivered or dropped, the oldest first."""
        self._broken_off = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._sent: Counter[str] = Counter(dict.fromkeys(self._queues, 0))
        self._failed: Counter[tuple[str, str]] = Counter()
        """Failed attempts by receiver and reason."""
        self._dropped: Counter[tuple[str, str]] = Counter()
        """Dropped notifications by receiver and reason."""

    def record(self, notification: Notification, receivers: Sequence[str] | None = None) -> bytes | None:
        """Encode a notification for the outbox; None if no receiver is to get it.

        Parameters
        ----------
        notification
            Notification to be delivered.
        receivers
            Names of the receivers that get it; None: all that want it.
        """
        wanted = self.wanted(notification) if receivers is None else receivers
        return self.outbox.draft(notification, wanted) if wanted else None

    def add(
        self,
        notifications: Sequence[Notification],
        open_incidents: Sequence[Notification],
        issued_to: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Deliver new notifications, now that the commit that holds them is durable.

        Parameters
        ----------
        notifications
            New notifications, in order.
        open_incidents
            All open incidents as of that commit, for reminders.
        issued_to
            Receivers by id of the notification; None: all that want it.
        """
        self._open_incidents = open_incidents
        for notification in notifications:
            wanted = self.wanted(notification) if issued_to is None else issued_to[notification.id]
            self.outbox.add(notification, wanted)
        for queue in self._queues.values():
            self._bound(queue)
            queue.woken.set()

    def restore(
        self,
        outbox: Mapping[str, bytes],
        open_incidents: Sequence[Notification],
        orphans: Sequence[Orphans] = (),
    ) -> None:
        """Replace the outbox by that of the last durable commit, when a state was opened or taken over.

        What this process has delivered or dropped since then leaves it again.

        Parameters
        ----------
        outbox
            Encoded notifications by id.
        open_incidents
            All open incidents as of that commit, for reminders.
        orphans
            Notifications that waited to be issued to receivers no longer configured; dropped.
        """
        self._open_incidents = open_incidents
        for each in orphans:
            for notification in each.waiting:
                self._drop(each.receiver, notification, "receiver_removed", 0)
            if each.more:  # of which only their number was kept
                self._dropped[each.receiver, "receiver_removed"] += each.more
                self._emit(NotificationsDropped(each.receiver, each.more, "receiver_removed"))
        for name, notification in self.outbox.restore(outbox):
            self._drop(name, notification, "receiver_removed", 0)
        for name, queue in self._queues.items():
            for notification in self.outbox.waiting(name):
                if (name, notification.id) in self._settled:
                    self.outbox.settle(name, notification)
            self._bound(queue)
            queue.woken.set()

    def take_broken_off(self) -> int:
        """Return the attempts since the last call that were broken off, so that a receiver may have them."""
        count, self._broken_off = self._broken_off, 0
        return count

    async def run(self) -> None:
        """Deliver until `stop`; return at once without receivers."""
        async with asyncio.TaskGroup() as group:
            self._tasks = [group.create_task(self._serve(queue)) for queue in self._queues.values()]

    async def stop(self, seconds: float) -> None:
        """Deliver what can be delivered within `seconds`; the rest stays in the outbox for the next start."""
        self._stopping = True
        for queue in self._queues.values():
            queue.woken.set()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def families(self) -> list[Family]:
        """Notifications sent, failed, pending and dropped, and durations, by receiver, since the start."""
        sent = [((name,), float(n)) for name, n in sorted(self._sent.items())]
        pending = [((name,), float(self.outbox.size(name))) for name in self._queues]
        durations = [((name,), queue.durations.histogram()) for name, queue in self._queues.items()]
        return [
            family("notifications_sent_total", sent),
            family("notifications_failed_total", _by_reason(self._failed)),
            family("notifications_pending", pending),
            family("notifications_dropped_total", _by_reason(self._dropped)),
            family("notification_duration_seconds", durations),
        ]

    async def _serve(self, queue: ReceiverQueue) -> None:
        await queue.receiver.open()
        try:
            while not queue.gone:
                if self._speaks is not None and not self._speaks():
                    if self._stopping:
                        return
                    await queue.wait(_SILENT_SECONDS)
                    continue
                notification, seconds = self._next(queue)
                if seconds is None or seconds > 0:
                    if self._stopping:
                        return
                    await queue.wait(seconds)
                elif notification is not None:
                    queue.reminded = False
                    began = asyncio.get_running_loop().time()
                    answer = await self._unless_silenced(
                        queue.receiver.deliver(notification, self._clock_ms())
                    )
                    if answer is None:
                        self._broken_off += 1
                        continue
                    queue.durations.observe(asyncio.get_running_loop().time() - began)
                    self._account(queue, notification, answer)
                else:
                    await self._remind(queue)
        finally:
            await queue.receiver.close()

    async def _unless_silenced(self, attempt: Coroutine[Any, Any, DeliveryResult]) -> DeliveryResult | None:
        """Make an attempt; return None if it was cancelled because this process may no longer notify."""
        speaks = self._speaks
        if speaks is None:
            return await attempt
        attempting = asyncio.create_task(attempt)
        try:
            while not attempting.done() and speaks():
                await asyncio.wait({attempting}, timeout=_SILENT_SECONDS)
            return attempting.result() if attempting.done() else None
        finally:
            if not attempting.done():
                attempting.cancel()
                await asyncio.wait({attempting})

    def _next(self, queue: ReceiverQueue) -> tuple[Notification | None, float | None]:
        """Return the next notification (None: a reminder) and its delay in s (None: nothing to send)."""
        now = asyncio.get_running_loop().time()
        name = queue.receiver.name
        repeats = (
            queue.receiver.repeat_interval_seconds is not None and self._open_incidents and not self._stopping
        )
        remind = max(queue.remind, queue.resume) - now
        notification = self.outbox.head(name)
        if repeats and (notification is None or (remind <= 0 and not queue.reminded)):
            return None, remind
        return notification, None if notification is None else queue.resume - now

    async def _remind(self, queue: ReceiverQueue) -> None:
        """Send a reminder of open incidents, except those for which a newer notification waits."""
        name, wait = queue.receiver.name, queue.receiver.repeat_interval_seconds or 0.0
        queue.reminded = True
        queue.remind = asyncio.get_running_loop().time() + wait
        open_incidents = [n for n in self._open_incidents if queue.receiver.wants(n)]
        repeated = [n for n in open_incidents if not self.outbox.has_pending(name, n.series)]
        for start in range(0, len(repeated), MOST_REMINDED):
            some = repeated[start : start + MOST_REMINDED]
            answer = await self._unless_silenced(queue.receiver.remind(some, self._clock_ms()))
            if answer is None:
                return
            if isinstance(answer, Delivered):
                queue.failures = 0
                continue
            self._failed[name, answer.reason] += 1
            if isinstance(answer, Gone):
                self._close(queue, answer)
                return
            queue.pause(answer, self._spec, self._draw())
            wait = round(queue.resume - asyncio.get_running_loop().time(), 3)
            self._emit(
                NotificationFailed(name, queue.receiver.host, REMINDER, answer.reason, queue.failures, wait)
            )
            if isinstance(answer, Failed):
                return

    def _account(self, queue: ReceiverQueue, notification: Notification, answer: DeliveryResult) -> None:
        """Record the result of an attempt."""
        name = queue.receiver.name
        attempts = self.outbox.attempts(name, notification) + 1
        if isinstance(answer, Delivered):
            queue.failures = 0
            if self._settle(name, notification):
                self._sent[name] += 1
                self._emit(NotificationSent(name, notification.id, notification.kind, attempts))
            return
        self._failed[name, answer.reason] += 1
        match answer:
            case Gone():
                self._close(queue, answer)
            case Refused():
                queue.failures = 0
                if self.outbox.is_pending(name, notification):  # or it was given up meanwhile, and counted
                    self._drop(name, notification, answer.reason, attempts)
            case Failed():
                self.outbox.fail(name, notification)
                queue.pause(answer, self._spec, self._draw())
                self._give_up(name, answer.reason)
                if self.outbox.is_pending(name, notification):
                    wait = round(queue.resume - asyncio.get_running_loop().time(), 3)
                    self._emit(
                        NotificationFailed(
                            name, queue.receiver.host, notification.id, answer.reason, attempts, wait
                        )
                    )

    def _close(self, queue: ReceiverQueue, answer: Gone) -> None:
        """Deliver nothing more to a receiver until the next start."""
        queue.gone = True
        self._emit(ReceiverGone(queue.receiver.name, queue.receiver.host, answer.reason))
        self._bound(queue)

    def _bound(self, queue: ReceiverQueue) -> None:
        """Drop the oldest notifications beyond the limit; all of them if the receiver is gone."""
        most, reason = (0, "receiver_gone") if queue.gone else (self._spec.max_pending, "too_many_pending")
        name = queue.receiver.name
        if (beyond := self.outbox.size(name) - most) > 0:
            self._drop_all(name, self.outbox.waiting(name)[:beyond], reason)

    def _give_up(self, name: str, reason: str) -> None:
        """Drop all notifications that are too old, not only the one tried: attempts are a minute apart."""
        due_ms = self._clock_ms() - self._spec.give_up_after_ms
        old = [each for each in self.outbox.waiting(name) if each.issued_ms <= due_ms]
        self._drop_all(name, old, reason)

    def _drop_all(self, name: str, notifications: Sequence[Notification], reason: str) -> None:
        for notification in notifications:
            self._drop(name, notification, reason, self.outbox.attempts(name, notification))

    def _drop(self, name: str, notification: Notification, reason: str, attempts: int) -> None:
        """Drop a notification for one receiver, count it and emit `NotificationDropped`."""
        self._settle(name, notification)
        self._dropped[name, reason] += 1
        detectors = ", ".join(notification.detectors)
        marks = (name, notification.id, notification.kind, notification.incident, notification.model)
        self._emit(NotificationDropped(*marks, detectors, reason, attempts))

    def _settle(self, name: str, notification: Notification) -> bool:
        """Take a notification out of the outbox for one receiver; return whether it was pending."""
        if not self.outbox.settle(name, notification):
            return False
        self._settled[name, notification.id] = None
        if len(self._settled) > MOST_SETTLED:
            del self._settled[next(iter(self._settled))]
        return True

    def wanted(self, notification: Notification) -> list[str]:
        """Return the names of the receivers that want a notification, or were sent one of its incident."""
        return [
            name
            for name, queue in self._queues.items()
            if name in (notification.told or ()) or queue.receiver.wants(notification)
        ]
