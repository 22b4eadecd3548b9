"""From alarms to notices in the outbox: decided before a commit, told once it is durable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from streamwatch.core.alarm_book import AlarmBook
from streamwatch.core.events import Alarm
from streamwatch.core.monitors import Monitors
from streamwatch.core.notices import Notice
from streamwatch.core.series import Family
from streamwatch.daemon.delivery import Deliveries

ALARMS = "alarms"
"""The section of a commit that holds which alarms are open."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What one commit decides about alarms."""

    sections: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    outbox: Mapping[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    notices: Sequence[Notice] = ()
    standing: Sequence[Notice] = ()
    """All alarms that are open afterwards."""
    families: Sequence[Family] = ()


NOTHING = Outgoing()


class Alerting:
    """The book of alarms of one life of the state, and the deliveries of the process.

    Parameters
    ----------
    book
        Which alarms are announced, open and ended.
    deliveries
        Whoever is told.
    monitors
        Asked how models do now.
    now_ms
        The wall clock.
    owed
        Notices of the last commit that have yet to be delivered.
    """

    def __init__(
        self,
        book: AlarmBook,
        deliveries: Deliveries,
        monitors: Monitors,
        now_ms: Callable[[], int],
        owed: Mapping[str, bytes],
    ) -> None:
        self._book = book
        self._deliveries = deliveries
        self._monitors = monitors
        self._now_ms = now_ms
        self._owed = owed

    def begin(self) -> None:
        """From here on deliver what the last commit says is owed."""
        self._deliveries.restore(self._owed, self._book.standing())
        self._owed = {}

    def due(self, *, behind: bool) -> bool:
        """Whether there is something to commit although nothing was read."""
        return self._deliveries.changed or self._book.due(self._now_ms(), behind=behind)

    def decide(
        self, alarms: Sequence[Alarm], retired: Sequence[str], *, in_backlog: bool, behind: bool
    ) -> Outgoing:
        """What the next commit holds.

        Parameters
        ----------
        alarms, retired
            Since the last one.
        in_backlog
            Whether some of the alarms may have been found in a backlog.
        behind
            Whether it is still being read.
        """
        book, monitors, now_ms = self._book, self._monitors, self._now_ms()
        notices = book.announce(alarms, now_ms, monitors.first_ms, behind=in_backlog)
        for model in retired:
            notices += book.retire(model, now_ms)
        notices += book.review(monitors.levels, now_ms, behind=behind)
        records = {notice.id: self._deliveries.record(notice) for notice in notices}
        outbox = {
            **self._deliveries.changes(),
            **{name: record for name, record in records.items() if record is not None},
        }
        return Outgoing({ALARMS: book.state()}, outbox, notices, book.standing(), book.families())

    def tell(self, outgoing: Outgoing) -> None:
        """The commit is durable."""
        self._deliveries.add(outgoing.notices, outgoing.standing)
