"""Values exchanged between core and store for one batch: read set, working set, result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from streamwatch.core.events import Alarm, Event, Label, NullRecord, Outcome, Prediction
from streamwatch.core.join.entry import JoinEntry
from streamwatch.core.join.expiry import Deadlines

EVICTIONS = 2
"""Evicted at most for each that comes: of more than a limit that was lowered allows, two leave for one."""
ENDLESS = 2**62
"""A second later than any deadline."""


@dataclass(frozen=True)
class ReadSet:
    """Entries that a batch may touch; the ids are computed only if a store asks for them."""

    events: Sequence[Event]
    oldest_predictions: int
    """Number of the oldest pending predictions that may be evicted, and one more to tell how old the oldest
    then is: the index must hold so many that still wait and that no event of the batch speaks of."""
    oldest_labels: int
    """Number of the oldest waiting labels of either form that may be evicted; counted likewise."""

    @property
    def deadline_s(self) -> int:
        """Second of the clock at the last event: deadlines up to it may pass."""
        return self.events[-1].record_ms // 1000 if self.events else -1

    @property
    def ids(self) -> list[str]:
        """Ids of the events in the batch."""
        return ids_of(self.events)


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """Entries and indices that a store lends for one batch; the core changes them in place.

    `by_id` has the whole chain of every id needed and of every record in the indices; a record in both is
    one object. Each index has all that is due, and the oldest that still wait, as many as needed; or, where
    much falls due at once, what is due up to the second in `reached_s`.
    """

    by_id: dict[str, JoinEntry]
    pending: Deadlines
    early: Deadlines
    retained: Deadlines
    reached_s: tuple[int, int, int] = (ENDLESS, ENDLESS, ENDLESS)
    """Of the indices, in that order."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Changes made by a batch, to be committed together with the positions read up to."""

    events: Sequence[Event]
    """Events taken: fewer than were given where much falls due at once; give the others again."""
    found: WorkingSet
    changed: Sequence[str]
    """Ids that expired or were evicted without an event of their own."""
    dedup_added: Sequence[tuple[int, Sequence[JoinEntry]]]
    """New dedup entries by generation."""
    dropped: Sequence[int]
    """Generations whose dedup entries are dead."""
    outcomes: Sequence[Outcome] = field(default=())
    alarms: Sequence[Alarm] = field(default=())
    retired: Sequence[tuple[int, str]] = field(default=())
    """Models that retired, each with the number of this step's outcomes that came before."""

    @property
    def touched(self) -> list[str]:
        """Ids whose chain may have changed; one that is no longer in `found.by_id` was removed."""
        return list(dict.fromkeys(chain(ids_of(self.events), self.changed)))


def ids_of(events: Sequence[Event]) -> list[str]:
    """Ids of the events that have one."""
    return [
        event.id
        for event in events
        if isinstance(event, Prediction | Label | NullRecord) and event.id is not None
    ]
