"""What was decided, who was told of it, and what commits know: checked at every step and at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.outbox import Delivered, DeliveryResult, Gone, Refused
from streamwatch.core.metrics.series import Family
from streamwatch.core.records.events import Alarm
from streamwatch.daemon.alerting import ALARMS, AlertDecisions
from streamwatch.telemetry import InternalEvent, NotificationDropped
from tests.faults.simulation.alerts import Alerts
from tests.faults.simulation.disk import Disk, Image, require

IDENTITY = "simulated"
Key = tuple[str, str]
"""Receiver and id."""


class Ledger:
    """Kept by nobody the daemon knows, over all runs.

    A notification is *settled* for a receiver when it took it and its answer arrived, when it refused it, or
    when it was given up. The first commit decided after that need not hold it any more: if that one is
    durable it must not be told again, if not a crash or a failure explains that it is.
    """

    def __init__(self, alerts: Alerts, disk: Disk) -> None:
        self._alerts = alerts
        self._disk = disk
        self._decided: dict[str, tuple[int, Notification, frozenset[str]]] = {}
        """By id: the commit, what it is, who wants it; in order."""
        self._settling: dict[Key, int | None] = {}
        """Settled since state was opened: number of the commit that may forget it."""
        self._forgotten: set[Key] = set()
        """Durably."""
        self._once: set[Key] = set()
        """Ever settled."""
        self._taken: dict[Key, Notification] = {}
        self._fresh: set[Key] = set()
        """Taken since state was opened."""
        self._failed: set[Key] = set()
        """Not answered well at the last attempt."""
        self._refused: set[Key] = set()
        self._lost: set[Key] = set()
        self._life: Counter[Key] = Counter()
        """Given up in this life, by receiver and reason."""
        self._receivers: set[str] = set()
        self.now_ms: Callable[[], int] = lambda: 0
        """Of the host, in this life."""
        self.gone: set[str] = set()
        """In this life."""
        self.ended_by = ""
        """How the life before ended."""
        self.between: Counter[str] = Counter()
        """Told, and then the state opened that does not know: by what came between."""
        self.counts: Counter[str] = Counter()

    def begins(self, receivers: Sequence[str], now_ms) -> None:
        """A process."""
        self._receivers, self.now_ms = set(receivers), now_ms
        self.gone, self._life = set(), Counter()

    def ends(self, families: Sequence[Family], how: str) -> None:
        """Of a process: what was given up must have been counted."""
        self.ended_by = how
        dead = next(family for family in families if family.name == "notifications_dropped_total")
        counted = {(receiver, reason): n for (reason, receiver), n in dead.samples}
        require(counted == dict(self._life), f"given up {self._life}, counted {dead.samples}")

    def opened(self, number: int) -> None:
        """State goes on from this commit."""
        for key, commit in self._settling.items():
            if commit is not None and commit <= number:
                self._forgotten.add(key)
        cause = self.ended_by or "state lost"
        for key in self._fresh - self._forgotten:
            self.between[f"{cause}, {'answered' if key in self._settling else 'not answered'}"] += 1
            self._lost.add(key)
        self.ended_by = ""
        self._settling, self._fresh = {}, set()
        self.remembered(self._disk.images[number])

    def decided(self, number: int, outgoing: AlertDecisions) -> None:
        """By a commit that is yet to come."""
        for key, commit in self._settling.items():
            if commit is None:
                self._settling[key] = number
        for notification in outgoing.notifications:
            require(notification.id not in self._decided, f"decided twice: {notification}")
            severities = severities_of(notification)
            wanted = [r.name for r in self._alerts.receivers if not r.severities.isdisjoint(severities)]
            self._in_turn(notification)
            self._decided[notification.id] = number, notification, self._receivers.intersection(wanted)

    def _in_turn(self, notification: Notification) -> None:
        """An incident begins, goes on and ends; what is news began or ended just then."""
        earlier = [known for _, known, _ in self._decided.values() if known.incident == notification.incident]
        is_open = any(part.reason is None for part in notification.parts)
        due = "updated" if earlier and is_open else "resolved" if earlier else "firing"
        require(notification.kind in {due, "digest"}, f"expected {due}, got {notification}")
        before = {part.alarm.detector: part for part in earlier[-1].parts} if earlier else {}
        for part in notification.parts:
            known = before.get(part.alarm.detector)
            same = known is not None and (known.reason is None) is (part.reason is None)
            require(
                same is not (part.alarm.detector in notification.news), f"news that are none: {notification}"
            )

    def tried(self, receiver: str, notification: Notification, now_ms: int) -> None:
        """A receiver is told something."""
        key = receiver, notification.id
        require(now_ms == self.now_ms(), "sent with another time")
        self._durable(notification)
        require(receiver in self._decided[notification.id][2], f"{receiver} does not want {notification}")
        require(receiver not in self.gone, f"{receiver} is told, though it is gone")
        require(
            key not in self._forgotten,
            f"{receiver} is told what a durable commit says it was told: {notification}",
        )
        require(key not in self._settling, f"{receiver} is told again, and nothing happened: {notification}")
        if key in self._taken:
            explained = key in self._failed or key in self._lost
            require(explained, f"{receiver} is told again, and nothing explains it: {notification}")
            self.counts["repeats"] += 1
        for earlier in self._series(notification):
            if earlier.id == notification.id:
                break
            if receiver in self._decided[earlier.id][2]:
                require(
                    (receiver, earlier.id) in self._once,
                    f"{receiver} is told {notification} before {earlier}",
                )
        self.counts["attempts"] += 1

    def took(self, receiver: str, notification: Notification) -> None:
        """Result: the receiver took the notification."""
        key = receiver, notification.id
        self._taken.setdefault(key, notification)
        self._fresh.add(key)

    def answered(self, receiver: str, notification: Notification, answer: DeliveryResult) -> None:
        """And this side knows."""
        key = receiver, notification.id
        self._failed.discard(key)
        if isinstance(answer, Delivered | Refused):
            self._settle(key)
            if isinstance(answer, Refused):
                self._refused.add(key)
        else:
            self._failed.add(key)
            if isinstance(answer, Gone):
                self.gone.add(receiver)

    def heard(self, event: InternalEvent) -> None:
        """What deliveries say: a notification is given up for a reason that is true."""
        if not isinstance(event, NotificationDropped):
            return
        receiver, reason = event.receiver, event.reason
        key = receiver, event.notification
        self._life[receiver, reason] += 1
        self.counts["given up"] += 1
        require(event.notification in self._decided, f"given up before it is decided: {event}")
        notification = self._decided[event.notification][1]
        owed = sum(
            number <= self._durable_number and receiver in wanted and not self._is_settled((receiver, name))
            for name, (number, _, wanted) in self._decided.items()
        )
        age_ms = self.now_ms() - notification.issued_ms
        true = {
            "receiver_removed": receiver not in self._receivers,
            "receiver_gone": receiver in self.gone,
            "too_many_pending": owed > self._alerts.delivery.max_pending,
            "http_400": key in self._refused,
        }.get(reason, age_ms >= self._alerts.delivery.give_up_after_ms)
        require(true, f"{receiver} is not told {notification}, given up for {reason}")
        self._settle(key)

    def reminded(self, receiver: str, open_incidents: Sequence[Notification]) -> None:
        """Of incidents that are open, and of which there is nothing else to tell."""
        self.counts["reminders"] += 1
        alarms = self._alarms(self._disk.images[: self._disk.durable + 1])
        for notification in open_incidents:
            _, last, wanted = self._decided[notification.id]
            self._durable(msgspec.structs.replace(notification, parts=last.parts, number=last.number))
            require(
                notification.detectors == last.detectors, f"decided as {last}, reminded as {notification}"
            )
            for part in notification.parts:
                require(alarm_key(part.alarm) in alarms, f"reminded of an alarm that is not: {notification}")
            require(receiver in wanted, f"{receiver} does not want to be reminded of {notification}")
            series = self._series(notification)
            at = next(place for place, known in enumerate(series) if known.id == notification.id)
            for known in series[: at + 1]:
                told = receiver not in self._decided[known.id][2] or (receiver, known.id) in self._once
                require(told, f"{receiver} is reminded of {notification} before it is told {known}")
            for known in series[at + 1 :]:
                newer = known.incident == notification.incident and (receiver, known.id) in self._once
                require(not newer, f"{receiver} knows better: {known}")

    def remembered(self, image: Image) -> None:
        """Whatever was told, the state knows; what it does not know was never decided."""
        self._decided = {name: known for name, known in self._decided.items() if known[0] <= image.number}
        alarms = self._alarms(self._disk.images[: image.number + 1])
        for notification in self._taken.values():
            require(notification.id in self._decided, f"told and forgotten: {notification}")
            for alarm in alarms_of(notification):
                require(alarm_key(alarm) in alarms, f"told and un-happened: {notification}")

    def audit(self, totals: Counter[tuple[str, str]] | None) -> None:
        """At the end, when everything had its time; `totals` are alarms by series where no model retired."""
        image = self._disk.images[-1]
        self.remembered(image)
        require(not image.saved.outbox, f"left in the outbox: {sorted(image.saved.outbox)}")
        for name, (_, notification, wanted) in self._decided.items():
            for receiver in wanted:
                require(
                    (receiver, name) in self._once,
                    f"{receiver} was neither told nor given up: {notification}",
                )
        alarms = [alarm for each in self._disk.images for alarm in each.alarms]
        told = [notification for _, notification, _ in self._decided.values()]
        news = [part for n in told for part in n.parts if part.alarm.detector in n.news]
        firing = Counter(alarm_key(part.alarm) for part in news if part.reason is None)
        twice = firing - Counter(map(alarm_key, alarms))  # a model that retired and came back may repeat one
        require(not twice, f"announced more often than found: {twice}")
        book = AlarmBook(self._alerts.spec, IDENTITY)
        if ALARMS in image.saved.sections:
            book.restore(image.saved.sections[ALARMS])
        kept = Counter({f.name: sum(value for _, value in f.samples) for f in book.families()})
        held_back = kept["alarms_suppressed_total"] + kept["alarms_digested_total"]
        require(len(alarms) == firing.total() + held_back, "an alarm is neither announced nor held back")
        ended = sum(part.reason is not None for part in news)
        require(kept["alarms_open"] == firing.total() - ended, "an alarm is neither open nor resolved")
        for notification in told:
            for part in notification.parts:
                most = None if totals is None else totals[part.alarm.model, part.alarm.detector]
                require(most is None or part.alarm.ordinal <= most, f"beyond {most}: {notification}")
        self.counts["notifications"] = len(told)
        self.counts["alarms"] = len(alarms)
        for notification in told:
            self.counts[notification.kind] += 1

    @property
    def _durable_number(self) -> int:
        return self._disk.images[self._disk.durable].number

    def _durable(self, notification: Notification) -> None:
        number, decided, _ = self._decided.get(notification.id, (None, None, None))
        require(number is not None, f"nobody decided {notification}")
        require(number <= self._durable_number, f"told before commit {number} is durable: {notification}")
        require(notification == decided, f"decided as {decided}, told as {notification}")

    def _series(self, notification: Notification) -> list[Notification]:
        """Everything durably decided about it, in order."""
        decided = self._decided.values()
        return [n for k, n, _ in decided if n.series == notification.series and k <= self._durable_number]

    def _is_settled(self, key: Key) -> bool:
        return key in self._settling or key in self._forgotten

    def _settle(self, key: Key) -> None:
        self._once.add(key)
        self._settling.setdefault(key, None)

    @staticmethod
    def _alarms(images: Sequence[Image]) -> set[tuple[str, str, int, int, int]]:
        return {alarm_key(alarm) for image in images for alarm in image.alarms}


def alarms_of(notification: Notification) -> Sequence[Alarm]:
    earliest = notification.digest.earliest if notification.digest else ()
    return [*(part.alarm for part in notification.parts), *earliest]


def severities_of(notification: Notification) -> set[str]:
    """Whoever wants one of its alarms is told all of it."""
    return {part.severity for part in notification.parts} or {notification.severity}


def alarm_key(alarm: Alarm) -> tuple[str, str, int, int, int]:
    return alarm.model, alarm.detector, alarm.ordinal, alarm.outcome, alarm.event_ms
