"""What the core asks of a store for one batch, what it is lent, and what it hands back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from streamwatch.core.events import Alarm, Event, Label, NullRecord, Outcome, Prediction, Progress
from streamwatch.core.expiry import Deadlines
from streamwatch.core.known import Known
from streamwatch.core.watermark import Timeline

EVICTIONS = 2
"""Evicted at most for each that comes: of more than a limit that was lowered allows, two leave for one."""
ENDLESS = 2**62
"""A second later than any deadline."""


@dataclass(frozen=True)
class Needs:
    """What a batch may touch; ask before `advance`. What a store does not ask for costs nothing."""

    events: Sequence[Event]
    timeline: Timeline
    oldest_predictions: int
    """How many of the oldest pending predictions may be evicted, and one more to tell how old the oldest
    then is: the index must hold so many that still wait and that no event of the batch speaks of."""
    oldest_labels: int
    """How many of the oldest waiting labels of either form may be evicted; counted likewise."""

    @property
    def prediction_deadline_s(self) -> int:
        """Pending predictions due at or before this second (of the label watermark) may expire."""
        return self._watermarks[1] // 1000

    @property
    def label_deadline_s(self) -> int:
        """Waiting labels due at or before this second (of the prediction watermark) may be given up."""
        return self._watermarks[0] // 1000

    @cached_property
    def _watermarks(self) -> tuple[int, int]:
        timeline, progress = self.timeline, self._progress
        return timeline.preview(progress) if progress else (timeline.prediction_ms, timeline.label_ms)

    @cached_property
    def _progress(self) -> list[Progress]:
        return [event for event in self.events if type(event) is Progress]

    @property
    def time_last(self) -> bool:
        """Nothing comes after time has moved: then a store may let it pass bit by bit."""
        moves = len(self._progress)
        return all(type(event) is Progress for event in self.events[len(self.events) - moves :])

    @property
    def ids(self) -> list[str]:
        """Ids the batch speaks of."""
        return ids_of(self.events)


@dataclass(frozen=True, slots=True)
class Found:
    """What a store lends for one batch: the core changes it in place.

    `known` has the whole chain of every id needed and of every record in the indices; a record in both is
    one object. Each index has all that is due, and the oldest that still wait, as many as needed; or, where
    time moves last and much falls due at once, what is due up to the second in `reached_s`.
    """

    known: dict[str, Known]
    pending: Deadlines
    early: Deadlines
    retained: Deadlines
    reached_s: tuple[int, int, int] = (ENDLESS, ENDLESS, ENDLESS)
    """Of the indices, in that order."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a batch changed, to be made durable at once with the positions read up to."""

    events: Sequence[Event]
    found: Found
    changed: Sequence[str]
    """Ids that expired or were evicted without an event of their own."""
    buried: Sequence[tuple[int, Sequence[Known]]]
    """New tombstones by generation."""
    dropped: Sequence[int]
    """Generations whose tombstones are dead."""
    outcomes: Sequence[Outcome] = field(default=())
    alarms: Sequence[Alarm] = field(default=())
    retired: Sequence[tuple[int, str]] = field(default=())
    """Models that retired, each with the number of this step's outcomes that came before."""

    @property
    def touched(self) -> list[str]:
        """Ids whose chain may have changed; one that is no longer in `found.known` was removed."""
        return list(dict.fromkeys(chain(ids_of(self.events), self.changed)))


def ids_of(events: Sequence[Event]) -> list[str]:
    """Ids of the events that have one."""
    return [
        event.id
        for event in events
        if isinstance(event, Prediction | Label | NullRecord) and event.id is not None
    ]
