"""What was decided, who was told of it, and what commits know: checked at every step and at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from streamwatch.core.alarm_book import AlarmBook
from streamwatch.core.events import Alarm
from streamwatch.core.notices import Notice
from streamwatch.core.outlets import Answer, Delivered, Gone, Refused
from streamwatch.core.series import Family
from streamwatch.daemon.alerting import ALARMS, Outgoing
from streamwatch.telemetry import AlertDead, Happening
from tests.faults.simulation.alerts import Alerts
from tests.faults.simulation.disk import Disk, Image, require

IDENTITY = "simulated"
Key = tuple[str, str]
"""Outlet and id."""


class Ledger:
    """Kept by nobody the daemon knows, over all lives.

    A notice is *settled* for an outlet when it took it and its answer arrived, when it refused it, or when
    it was given up. The first commit decided after that need not hold it any more: if that one is durable
    it must not be told again, if not a crash or a failure explains that it is.
    """

    def __init__(self, alerts: Alerts, disk: Disk) -> None:
        self._alerts = alerts
        self._disk = disk
        self._decided: dict[str, tuple[int, Notice, frozenset[str]]] = {}
        """By id: the commit, what it is, who wants it; in order."""
        self._settling: dict[Key, int | None] = {}
        """Settled since state was opened: number of the commit that may forget it."""
        self._forgotten: set[Key] = set()
        """Durably."""
        self._once: set[Key] = set()
        """Ever settled."""
        self._taken: dict[Key, Notice] = {}
        self._fresh: set[Key] = set()
        """Taken since state was opened."""
        self._failed: set[Key] = set()
        """Not answered well at the last attempt."""
        self._refused: set[Key] = set()
        self._lost: set[Key] = set()
        self._life: Counter[Key] = Counter()
        """Given up in this life, by outlet and reason."""
        self._outlets: set[str] = set()
        self.now_ms: Callable[[], int] = lambda: 0
        """Of the host, in this life."""
        self.gone: set[str] = set()
        """In this life."""
        self.ended_by = ""
        """How the life before ended."""
        self.between: Counter[str] = Counter()
        """Told, and then the state opened that does not know: by what came between."""
        self.counts: Counter[str] = Counter()

    def begins(self, outlets: Sequence[str], now_ms) -> None:
        """A process."""
        self._outlets, self.now_ms = set(outlets), now_ms
        self.gone, self._life = set(), Counter()

    def ends(self, families: Sequence[Family], how: str) -> None:
        """Of a process: what was given up must have been counted."""
        self.ended_by = how
        dead = next(family for family in families if family.name == "alerts_dead_total")
        require(dict(dead.samples) == dict(self._life), f"given up {self._life}, counted {dead.samples}")

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

    def decided(self, number: int, outgoing: Outgoing) -> None:
        """By a commit that is yet to come."""
        for key, commit in self._settling.items():
            if commit is None:
                self._settling[key] = number
        for notice in outgoing.notices:
            require(notice.id not in self._decided, f"decided twice: {notice}")
            wanted = [r.name for r in self._alerts.receivers if notice.severity in r.severities]
            self._decided[notice.id] = number, notice, self._outlets.intersection(wanted)

    def tried(self, outlet: str, notice: Notice, now_ms: int) -> None:
        """An outlet is told something."""
        key = outlet, notice.id
        require(now_ms == self.now_ms(), "sent with another time")
        self._durable(notice)
        require(outlet in self._decided[notice.id][2], f"{outlet} does not want {notice}")
        require(outlet not in self.gone, f"{outlet} is told, though it is gone")
        require(
            key not in self._forgotten, f"{outlet} is told what a durable commit says it was told: {notice}"
        )
        require(key not in self._settling, f"{outlet} is told again, and nothing happened: {notice}")
        if key in self._taken:
            explained = key in self._failed or key in self._lost
            require(explained, f"{outlet} is told again, and nothing explains it: {notice}")
            self.counts["repeats"] += 1
        for earlier in self._series(notice):
            if earlier.id == notice.id:
                break
            if outlet in self._decided[earlier.id][2]:
                require((outlet, earlier.id) in self._once, f"{outlet} is told {notice} before {earlier}")
        self.counts["attempts"] += 1

    def took(self, outlet: str, notice: Notice) -> None:
        """The other side has it."""
        key = outlet, notice.id
        self._taken.setdefault(key, notice)
        self._fresh.add(key)

    def answered(self, outlet: str, notice: Notice, answer: Answer) -> None:
        """And this side knows."""
        key = outlet, notice.id
        self._failed.discard(key)
        if isinstance(answer, Delivered | Refused):
            self._settle(key)
            if isinstance(answer, Refused):
                self._refused.add(key)
        else:
            self._failed.add(key)
            if isinstance(answer, Gone):
                self.gone.add(outlet)

    def heard(self, happening: Happening) -> None:
        """What deliveries say: a notice is given up for a reason that is true."""
        if not isinstance(happening, AlertDead):
            return
        outlet, reason = happening.outlet, happening.reason
        key = outlet, happening.notice
        self._life[outlet, reason] += 1
        self.counts["given up"] += 1
        require(happening.notice in self._decided, f"given up before it is decided: {happening}")
        notice = self._decided[happening.notice][1]
        owed = sum(
            number <= self._durable_number and outlet in wanted and not self._is_settled((outlet, name))
            for name, (number, _, wanted) in self._decided.items()
        )
        age_ms = self.now_ms() - notice.issued_ms
        true = {
            "outlet_removed": outlet not in self._outlets,
            "outlet_gone": outlet in self.gone,
            "too_many_pending": owed > self._alerts.delivery.max_pending,
            "http_400": key in self._refused,
        }.get(reason, age_ms >= self._alerts.delivery.give_up_after_ms)
        require(true, f"{outlet} is not told {notice}, given up for {reason}")
        self._settle(key)

    def reminded(self, outlet: str, standing: Sequence[Notice]) -> None:
        """Of alarms that are open, and of which there is nothing else to tell."""
        self.counts["reminders"] += 1
        alarms = self._alarms(self._disk.images[: self._disk.durable + 1])
        for notice in standing:
            _, first, wanted = self._decided[notice.id]
            self._durable(msgspec.structs.replace(notice, alarm=first.alarm, alarms=1))
            require(alarm_key(notice.alarm) in alarms, f"reminded of an alarm that is not: {notice}")
            require(outlet in wanted, f"{outlet} does not want to be reminded of {notice}")
            series = self._series(notice)
            last = next(place for place, known in enumerate(series) if known.id == notice.id)
            for known in series[: last + 1]:
                told = outlet not in self._decided[known.id][2] or (outlet, known.id) in self._once
                require(told, f"{outlet} is reminded of {notice} before it is told {known}")
            for known in series[last + 1 :]:
                require((outlet, known.id) not in self._once, f"{outlet} knows better: {known}")

    def remembered(self, image: Image) -> None:
        """Whatever was told, the state knows; what it does not know was never decided."""
        self._decided = {name: known for name, known in self._decided.items() if known[0] <= image.number}
        alarms = self._alarms(self._disk.images[: image.number + 1])
        for notice in self._taken.values():
            require(notice.id in self._decided, f"told and forgotten: {notice}")
            for alarm in (notice.alarm, *(notice.digest.earliest if notice.digest else ())):
                require(alarm is None or alarm_key(alarm) in alarms, f"told and un-happened: {notice}")

    def audit(self, totals: Counter[tuple[str, str]] | None) -> None:
        """At the end, when everything had its time; `totals` are alarms by series where no model retired."""
        image = self._disk.images[-1]
        self.remembered(image)
        require(not image.saved.outbox, f"left in the outbox: {sorted(image.saved.outbox)}")
        for name, (_, notice, wanted) in self._decided.items():
            for outlet in wanted:
                require((outlet, name) in self._once, f"{outlet} was neither told nor given up: {notice}")
        alarms = [alarm for each in self._disk.images for alarm in each.alarms]
        told = [notice for _, notice, _ in self._decided.values()]
        firing = Counter(alarm_key(notice.alarm) for notice in told if notice.kind == "firing")
        twice = firing - Counter(map(alarm_key, alarms))  # a model that retired and came back may repeat one
        require(not twice, f"announced more often than found: {twice}")
        book = AlarmBook(self._alerts.spec, IDENTITY)
        if ALARMS in image.saved.sections:
            book.restore(image.saved.sections[ALARMS])
        kept = Counter({f.name: sum(value for _, value in f.samples) for f in book.families()})
        held_back = kept["alarms_suppressed_total"] + kept["alarms_digested_total"]
        require(len(alarms) == firing.total() + held_back, "an alarm is neither announced nor held back")
        require(
            kept["alarms_open"] == firing.total() - sum(notice.kind == "resolved" for notice in told),
            "an alarm is neither open nor resolved",
        )
        for notice in told:
            if totals is not None and notice.alarm is not None:
                most = totals[notice.alarm.model, notice.alarm.detector]
                require(notice.alarm.ordinal <= most, f"beyond {most}: {notice}")
        self.counts["notices"] = len(told)
        self.counts["alarms"] = len(alarms)
        for notice in told:
            self.counts[notice.kind] += 1

    @property
    def _durable_number(self) -> int:
        return self._disk.images[self._disk.durable].number

    def _durable(self, notice: Notice) -> None:
        number, decided, _ = self._decided.get(notice.id, (None, None, None))
        require(number is not None, f"nobody decided {notice}")
        require(number <= self._durable_number, f"told before commit {number} is durable: {notice}")
        require(notice == decided, f"decided as {decided}, told as {notice}")

    def _series(self, notice: Notice) -> list[Notice]:
        """Everything durably decided about it, in order."""
        decided = self._decided.values()
        return [n for k, n, _ in decided if n.series == notice.series and k <= self._durable_number]

    def _is_settled(self, key: Key) -> bool:
        return key in self._settling or key in self._forgotten

    def _settle(self, key: Key) -> None:
        self._once.add(key)
        self._settling.setdefault(key, None)

    @staticmethod
    def _alarms(images: Sequence[Image]) -> set[tuple[str, str, int, int, int]]:
        return {alarm_key(alarm) for image in images for alarm in image.alarms}


def alarm_key(alarm: Alarm) -> tuple[str, str, int, int, int]:
    return alarm.model, alarm.detector, alarm.ordinal, alarm.outcome, alarm.at_ms
