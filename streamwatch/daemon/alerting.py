"""Notifications of alarms: decided before a commit, stored in its outbox, delivered once it is durable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import msgspec

from streamwatch.core.alerting.beside_incidents import ListWorse
from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.pacing import Pacing, PacingSpec
from streamwatch.core.alerting.rules import ModelLabels, TopicsOfRun
from streamwatch.core.estimators.comparisons.set import ComparisonVerdict
from streamwatch.core.estimators.notifying.model_facts import ModelFacts
from streamwatch.core.estimators.registers.fleet import VERDICT_WORDS
from streamwatch.core.join.models import ModelActivity
from streamwatch.core.metrics.series import Family
from streamwatch.core.predictions.kind import ActiveHint
from streamwatch.core.publishing.candidacy import Decisions
from streamwatch.core.records.events import Alarm
from streamwatch.daemon.deliveries import Deliveries
from streamwatch.telemetry import AlarmRaised, VerdictChanged

ALARMS = "alarms"
"""Section of a commit that holds the open alarms."""
PACING = "pacing"
"""Section of a commit that holds notifications to be issued to receivers later."""


@dataclass(frozen=True, slots=True)
class AlertDecisions:
    """Decisions of one commit about alarms."""

    sections: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Sections of the commit by name: the alarm book and the pacing."""
    outbox: Mapping[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    """Changed entries of the outbox by id of the notification; None removes one."""
    notifications: Sequence[Notification] = ()
    """Notifications that are issued to receivers, or decided and issued later."""
    announced: Sequence[Notification] = ()
    """Those of them that no earlier commit has decided, for the events topic."""
    issued_to: Mapping[str, Sequence[str]] | None = None
    """Names of receivers by id of the notification; None: all that want it."""
    open_incidents: Sequence[Notification] = ()
    """All incidents that are open after the decisions, each as its last notification."""
    families: Callable[[], Sequence[Family]] = tuple
    """Returns the metrics of alarms for a report, until the next decisions: few commits have one."""


NOTHING = AlertDecisions()


@dataclass(frozen=True, slots=True)
class WatchedFleet:
    """Labels of the models that are watched, and their topics."""

    labels: ModelLabels = field(default_factory=ModelLabels)
    activity: Callable[[], Mapping[str, ModelActivity]] = dict
    """Returns the activity of every model, summed over its folds."""
    topics: TopicsOfRun = field(default_factory=TopicsOfRun)

    def families(self) -> list[Family]:
        """Return the metric that has the labels of each model; without samples if no model is known."""
        return [self.labels.family(self.activity(), self.topics)]


def event_of(alarm: Alarm) -> AlarmRaised | VerdictChanged:
    """Convert an alarm to the internal event that reports it."""
    verdict = alarm.judgement
    if verdict is None:
        marks = (alarm.model, alarm.detector, alarm.ordinal, alarm.outcome, alarm.event_ms)
        return AlarmRaised(*marks, alarm.before, alarm.after)
    marks = (alarm.model, verdict.opponent, VERDICT_WORDS[verdict.verdict], verdict.since, verdict.since_ms)
    return VerdictChanged(*marks, alarm.outcome, alarm.event_ms, verdict.basis, verdict.status)


class Alerting:
    """Decides on notifications with the alarm book of the open state, and delivers them.

    Parameters
    ----------
    book
        Decides which alarms are announced, and holds those that are open.
    deliveries
        Queues of the receivers; one object for the process.
    models
        Returns the current facts about models, by which open alarms are reviewed.
    now_ms
        The wall clock.
    owed
        Outbox of the last commit: encoded notifications to be delivered, by id.
    hints
        Returns the active early hints by model; None if receivers are not notified of hints.
    comparisons
        Returns the verdicts on all challengers; None if receivers are not notified of them.
    list_worse
        Lists the models that are worse than an opponent; required if the book makes digests.
    pacing
        Decides when a notification is issued to which receiver; None: each at once.
    fleet
        Labels of models.
    anew
        With several replicas: returns an empty alarm book and pacing, to restore another replica's decisions
        into; nothing is decided until `take_over`. None without replicas.
    """

    def __init__(  # noqa: PLR0913
        self,
        book: AlarmBook,
        deliveries: Deliveries,
        models: Callable[[], ModelFacts],
        now_ms: Callable[[], int],
        owed: Mapping[str, bytes],
        hints: Callable[[], Mapping[str, ActiveHint]] | None = None,
        *,
        comparisons: Callable[[], Sequence[ComparisonVerdict]] | None = None,
        list_worse: ListWorse | None = None,
        pacing: Pacing | None = None,
        fleet: WatchedFleet | None = None,
        anew: Callable[[], tuple[AlarmBook, Pacing]] | None = None,
    ) -> None:
        self._book = book
        self._deliveries = deliveries
        self._models = models
        self._now_ms = now_ms
        self._owed = owed
        self._hints = hints
        self._comparisons = comparisons
        self._list_worse = list_worse
        self._pacing = pacing or Pacing(PacingSpec(), (), "")
        self._anew = anew
        self._is_silent = anew is not None
        self._entries = dict(owed)
        """Entries of the outbox after the last decision, by id."""
        self._replaced: dict[str, bytes | None] = {}
        """Changes that turn the outbox into that of the previous holder, for the next commit."""
        self.fleet = fleet or WatchedFleet()
        """Labels of the models, for reports."""

    def begin(self) -> None:
        """Begin to deliver notifications, first those of the last commit's outbox.

        With several replicas, nothing is delivered before `take_over`.
        """
        if self._is_silent:
            return
        self._deliveries.restore(self._owed, self._open_incidents(), self._pacing.take_orphans())
        self._owed = {}

    # Several replicas: decisions are passed from holder to holder.

    def take_over(self, decisions: Decisions) -> None:
        """Begin to decide and deliver, continuing from the decisions of the previous holder.

        Raises
        ------
        PackedError
            If the decisions are of another version.
        """
        self.follow(decisions)
        self._replaced = {**dict.fromkeys(self._entries), **decisions.outbox}
        self._entries = dict(decisions.outbox)
        self._is_silent = False
        self._deliveries.restore(self._entries, self._open_incidents(), self._pacing.take_orphans())

    def take_broken_off(self) -> int:
        """Return how many attempts to deliver were broken off since the last call; they are made again."""
        return self._deliveries.take_broken_off()

    def silence(self) -> None:
        """Stop deciding and delivering, as another replica is the holder."""
        self._is_silent = True
        self._deliveries.restore({}, [])

    def follow(self, decisions: Decisions) -> None:
        """Replace the alarm book and pacing by those of the holder, to be shown in reports.

        Raises
        ------
        PackedError
            If the decisions are of another version.
        """
        assert self._anew is not None  # noqa: S101 - of one of several replicas
        book, pacing = self._anew()
        book.restore(decisions.alarms)
        pacing.restore(decisions.pacing)
        self._book, self._pacing = book, pacing

    def shown(self) -> AlertDecisions:
        """Return open incidents and metrics without decisions, for a commit of a follower."""
        return AlertDecisions(open_incidents=self._open_incidents(), families=self._families)

    def _families(self) -> list[Family]:
        return [*self._book.families(), *self._pacing.families()]

    def decided(self, event: int, retired: int, verdicts: list[tuple[str, str, int]]) -> Decisions:
        """Return all decisions up to now, for the next holder.

        Parameters
        ----------
        event, retired
            Numbers of the last alarm and of the last retirement that were considered.
        verdicts
            Last published verdict of each comparison.
        """
        return Decisions(
            event, retired, self._book.state(), self._pacing.state(), dict(self._entries), verdicts
        )

    def due(self, *, behind: bool) -> bool:
        """Return whether a commit is needed for notifications, even if no record was read.

        Parameters
        ----------
        behind
            Whether a backlog is being read.
        """
        if self._is_silent:
            return False
        now_ms, outbox = self._now_ms(), self._deliveries.outbox
        return (
            outbox.changed
            or self._pacing.due(now_ms, outbox.waiting)
            or self._book.due(now_ms, behind=behind)
        )

    def decide(
        self, alarms: Sequence[Alarm], retired: Sequence[str], *, in_backlog: bool, behind: bool
    ) -> AlertDecisions:
        """Decide on the notifications of the next commit.

        Parameters
        ----------
        alarms, retired
            Alarms and names of retired models since the last commit.
        in_backlog
            Whether some of the alarms may have been found in a backlog.
        behind
            Whether a backlog is still being read.
        """
        book, models, now_ms = self._book, self._models(), self._now_ms()
        notifications = book.announce(alarms, now_ms, models, behind=in_backlog)
        for model in retired:
            notifications += book.retire(model, now_ms)
        hints = None if self._hints is None else self._hints()
        compared = None if self._comparisons is None else self._comparisons()
        notifications += book.review(
            models,
            now_ms,
            behind=behind,
            hints=hints,
            comparisons=compared,
            list_worse=self._list_worse,
        )
        stamped = [self.fleet.labels.stamped(each) for each in notifications]
        issued, issued_to, announced = self._issue(stamped, now_ms)
        records = {each.id: self._deliveries.record(each, issued_to[each.id]) for each in issued}
        outbox = {
            **self._replaced,
            **self._deliveries.outbox.changes(),
            **{name: record for name, record in records.items() if record is not None},
        }
        self._replaced = {}
        for name, record in outbox.items():
            if record is None:
                self._entries.pop(name, None)
            else:
                self._entries[name] = record
        return AlertDecisions(
            {ALARMS: book.state(), PACING: self._pacing.state()},
            outbox,
            issued,
            announced,
            issued_to,
            self._open_incidents(),
            self._families,
        )

    def _issue(
        self, notifications: Sequence[Notification], now_ms: int
    ) -> tuple[list[Notification], dict[str, list[str]], list[Notification]]:
        """Choose the notifications issued now, in the order of decision, their receivers, and which are new.

        Pacing keeps the others for later.
        """
        pacing, issued = self._pacing, dict[str, Notification]()
        issued_to: dict[str, list[str]] = {}
        number = max(self._deliveries.outbox.newest, pacing.newest)
        for decided in notifications:
            number += 1
            notification = issued[decided.id] = msgspec.structs.replace(decided, number=number)
            receivers = issued_to[notification.id] = []
            for receiver in self._deliveries.wanted(notification):
                if pacing.paces(receiver, notification):
                    pacing.take(receiver, notification, now_ms)
                    if not pacing.closes(receiver):
                        self._book.tell(notification, receiver)
                elif not pacing.has_nothing_open(receiver, notification):
                    receivers.append(receiver)
                    self._book.tell(notification, receiver)
        announced = list(issued.values())
        for receiver in pacing.receivers:
            pending = self._deliveries.outbox.waiting(receiver)
            for released in pacing.release(receiver, now_ms, pending):
                if released.number:
                    issued[released.id] = released
                else:  # a digest
                    number += 1
                    issued[released.id] = msgspec.structs.replace(released, number=number)
                    announced.append(issued[released.id])
                issued_to.setdefault(released.id, []).append(receiver)
                self._book.tell(released, receiver)
        return sorted(issued.values(), key=attrgetter("number")), issued_to, announced

    def _open_incidents(self) -> list[Notification]:
        return self.fleet.labels.all_stamped(self._book.open_incidents())

    def deliver(self, outgoing: AlertDecisions) -> None:
        """Hand the notifications of a commit that is now durable to the receivers."""
        self._deliveries.add(outgoing.notifications, outgoing.open_incidents, outgoing.issued_to)
