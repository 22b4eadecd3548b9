"""From alarms to notifications in the outbox: decided before a commit, delivered once it is durable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from streamwatch.core.alerting.book import AlarmBook, WatchedModels
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.events import Alarm
from streamwatch.core.metrics.series import Family
from streamwatch.core.predictions.kind import ActiveHint
from streamwatch.daemon.deliveries import Deliveries
from streamwatch.telemetry import AlarmRaised, VerdictChanged

_VERDICTS = {1: "better", -1: "worse", 0: "open"}
ALARMS = "alarms"
"""Section of a commit that holds the open alarms."""


@dataclass(frozen=True, slots=True)
class AlertDecisions:
    """Decisions of one commit about alarms."""

    sections: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    outbox: Mapping[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    notifications: Sequence[Notification] = ()
    open_incidents: Sequence[Notification] = ()
    """All incidents that are open afterwards, each as its last notification."""
    families: Sequence[Family] = ()


NOTHING = AlertDecisions()


def event_of(alarm: Alarm) -> AlarmRaised | VerdictChanged:
    """The internal event that reports an alarm."""
    verdict = alarm.judgement
    if verdict is None:
        marks = (alarm.model, alarm.detector, alarm.ordinal, alarm.outcome, alarm.event_ms)
        return AlarmRaised(*marks, alarm.before, alarm.after)
    marks = (alarm.model, verdict.opponent, _VERDICTS[verdict.verdict], verdict.since, verdict.since_ms)
    return VerdictChanged(*marks, alarm.outcome, alarm.event_ms, verdict.basis, verdict.status)


class Alerting:
    """The book of alarms of one life of the state, and the deliveries of the process.

    Parameters
    ----------
    book
        Decides which alarms are announced, and holds those that are open.
    deliveries
        Queues of the receivers.
    models
        Returns the models as they are now, by which open alarms are reviewed.
    now_ms
        The wall clock.
    owed
        Notifications of the last commit that have yet to be delivered.
    hints
        Returns the active early hints by model; None if receivers are not notified of hints.
    """

    def __init__(
        self,
        book: AlarmBook,
        deliveries: Deliveries,
        models: Callable[[], WatchedModels],
        now_ms: Callable[[], int],
        owed: Mapping[str, bytes],
        hints: Callable[[], Mapping[str, ActiveHint]] | None = None,
    ) -> None:
        self._book = book
        self._deliveries = deliveries
        self._models = models
        self._now_ms = now_ms
        self._owed = owed
        self._hints = hints

    def begin(self) -> None:
        """Deliver from now on, beginning with the notifications that the last commit left undelivered."""
        self._deliveries.restore(self._owed, self._book.open_incidents())
        self._owed = {}

    def due(self, *, behind: bool) -> bool:
        """Tell whether there is something to commit although nothing was read."""
        return self._deliveries.outbox.changed or self._book.due(self._now_ms(), behind=behind)

    def decide(
        self, alarms: Sequence[Alarm], retired: Sequence[str], *, in_backlog: bool, behind: bool
    ) -> AlertDecisions:
        """Decide what the next commit holds.

        Parameters
        ----------
        alarms, retired
            Since the last one.
        in_backlog
            Whether some of the alarms may have been found in a backlog.
        behind
            Whether it is still being read.
        """
        book, models, now_ms = self._book, self._models(), self._now_ms()
        notifications = book.announce(alarms, now_ms, models, behind=in_backlog)
        for model in retired:
            notifications += book.retire(model, now_ms)
        hints = None if self._hints is None else self._hints()
        notifications += book.review(models, now_ms, behind=behind, hints=hints)
        records = {notification.id: self._deliveries.record(notification) for notification in notifications}
        outbox = {
            **self._deliveries.outbox.changes(),
            **{name: record for name, record in records.items() if record is not None},
        }
        return AlertDecisions(
            {ALARMS: book.state()}, outbox, notifications, book.open_incidents(), book.families()
        )

    def tell(self, outgoing: AlertDecisions) -> None:
        """Hand the notifications of a commit that is now durable to the receivers."""
        self._deliveries.add(outgoing.notifications, outgoing.open_incidents)
