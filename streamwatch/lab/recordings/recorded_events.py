"""What a line decodes to, as an event of its partition with a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from streamwatch.core.events import (
    Decoded,
    Event,
    EventGroup,
    Invalid,
    Label,
    NullRecord,
    Outcome,
    Partition,
    Prediction,
    Side,
)
from streamwatch.lab.recordings.fitting import Both, Fitted
from streamwatch.lab.recordings.lines import LineRecord

RecordedEvent: TypeAlias = "Decoded | RecordedOutcome"


class RecordedOutcome(Outcome, frozen=True, gc=False, array_like=True):
    """A line that holds a prediction and its label, and the id they are of."""

    id: str = ""


def each_of(found: Fitted) -> Sequence[Event | Both]:
    """The events of one line."""
    return found.events if isinstance(found, EventGroup) else (found,)


def side_of(events: Iterable[Fitted]) -> Side:
    """Guess from its first lines what a file holds; `both` where they do not tell."""
    kinds = {type(event) for found in events for event in each_of(found)} & {Prediction, Label, Both}
    if kinds == {Prediction}:
        return "prediction"
    return "label" if kinds == {Label} else "both"


def own_time_ms(event: Fitted) -> int | None:
    """The event's own time, of several the latest; None where there is none."""
    events = event if isinstance(event, Both) else each_of(event)
    stamps = [each.timestamp_ms for each in events if isinstance(each, Prediction | Label)]
    return max((stamp for stamp in stamps if stamp is not None), default=None)


def placed(event: Fitted, record: LineRecord, partition: Partition, at_ms: int) -> RecordedEvent:
    """The event as a record of its partition; a prediction with its label is an outcome."""
    if isinstance(event, Both):
        prediction, label = event
        made_ms, known_ms = prediction.timestamp_ms, label.timestamp_ms
        delay_ms = 0 if made_ms is None or known_ms is None else max(0, known_ms - made_ms)
        own_ms = known_ms if known_ms is not None else made_ms
        return RecordedOutcome(
            prediction.model,
            label.true_class,
            prediction.predicted_class,
            at_ms if own_ms is None else own_ms,
            delay_ms,
            scores=prediction.scores,
            segments=prediction.segments,
            id=prediction.id,
        )
    for each in each_of(event):
        if isinstance(each, Invalid):
            each.partition, each.offset = partition.partition, record.offset
        if isinstance(each, Invalid | NullRecord):
            each.topic = partition.topic
    return event
