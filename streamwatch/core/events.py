"""Events for the core and outcomes of the join: plain values, decoded and validated at the edge.

Times are integers, milliseconds since the epoch. `record_ms` is the clock at the event's place in the merged
sequence (deadlines count from it; the merge sets it when the event is released); `timestamp_ms` is the
event's own time, where it carries one (label delay and prediction-time order use it).
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

VERDICT = "verdict"
"""`Alarm.detector` of alarms that a verdict raised."""
Side: TypeAlias = Literal["prediction", "label", "both"]
"""Kinds of events that a topic carries."""


class Partition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class Mark(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Offset of a delivered record with a hash of its timestamp, key and value."""

    offset: int
    hash: int


class Fingerprint(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Fingerprint by which a partition's log is recognised as the one that was read."""

    topic_id: str | None = None
    """Topic id of the broker; None where brokers do not give one."""
    marks: tuple[Mark, ...] = ()
    """Marks of the last record evaluated, then of a few before it at growing distances."""


class Prediction(msgspec.Struct, gc=False):
    """Event: a deployed model predicted a class for an id."""

    id: str
    model: str
    predicted_class: str
    record_ms: int
    timestamp_ms: int | None = None
    scores: dict[str, float] | None = None
    segments: dict[str, str] | None = None
    """Segment values of the record by segment name (`region: eu`); None without any."""
    topic: str = ""
    """Topic of its record; empty if unknown."""


class Label(msgspec.Struct, gc=False):
    """Event: the true class of an id became known, for `model` or (None) for all that predicted the id."""

    id: str
    true_class: str
    record_ms: int
    model: str | None = None
    timestamp_ms: int | None = None
    topic: str = ""
    """Topic of its record; empty if unknown."""


class NullRecord(msgspec.Struct, gc=False):
    """Event: a record with a null value, which withdraws pending predictions of `id` if `withdraws`.

    On a label topic it is ignored.

    `id` is None where the mapping does not find the id in the key; such a record is only counted.
    """

    topic: str
    id: str | None
    model: str | None
    record_ms: int
    withdraws: bool


class WrongFold(msgspec.Struct, gc=False):
    """Event: a prediction by a fold that does not test its id; it is counted and otherwise ignored."""

    record_ms: int


class Skipped(msgspec.Struct, gc=False):
    """Event: a record that no mapping of its topic applies to.

    It moves the clock and is otherwise ignored.
    """

    record_ms: int


class Invalid(msgspec.Struct, gc=False):
    """A record that could not be decoded or broke a rule of SEMANTICS §1; `reason` is one of a closed set."""

    topic: str
    partition: int
    offset: int
    reason: str
    record_ms: int = -1
    model: str | None = None
    """Model named by the record; None where that cannot be read or is not a valid name."""


Event: TypeAlias = Prediction | Label | NullRecord | WrongFold | Skipped | Invalid


class EventGroup(msgspec.Struct, gc=False):
    """Events of a record that holds several, or none. They share its time and its place in the sequence.

    They are joined one after the other, and no commit comes between them.
    """

    events: tuple[Event, ...]
    """Events in the order of the record; empty for a skipped record."""
    record_ms: int = -1
    tied: int = 0
    """Number of predictions among them whose class shared the largest score with another."""


Decoded: TypeAlias = Event | EventGroup


def is_decodable(found: Decoded) -> bool:
    """Tell whether a record could be read: it holds no events at all, or one that is not `Invalid`."""
    events = found.events if isinstance(found, EventGroup) else (found,)
    return not events or any(type(event) is not Invalid for event in events)


class PairedAnswer(NamedTuple):
    """Predicted class of another model on the same id, resolved with the same label."""

    model: str
    predicted_class: str


class Outcome(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A resolved prediction: predicted class and true class. Estimators are fed outcomes, in order."""

    model: str
    true_class: str
    predicted_class: str
    event_ms: int
    """Event time of the outcome: the label's own timestamp, else its record's."""
    delay_ms: int
    """Label time minus prediction time, clamped at 0."""
    assumed: bool = False
    """Whether the true class was assumed at expiry (`join.on_expiry`) instead of observed."""
    scores: dict[str, float] | None = None
    label_at_prediction: str | None = None
    """True class of the model's latest outcome when this prediction was accepted; None before the first."""
    pairs: tuple[PairedAnswer, ...] | None = None
    """Predicted classes of models compared with this one whose predictions of the id were resolved before;
    None without any."""
    segments: dict[str, str] | None = None
    """Segment values of the prediction, by segment name; None without any."""
    last_class: str | None = None
    """Class predicted last before the label came, beside `predicted_class`, the first (`join.conflicts:
    both`); None if the prediction was never revised."""


class Judgement(msgspec.Struct, frozen=True, gc=False):
    """A verdict on a model against an opponent, and since when it holds."""

    opponent: str
    verdict: Literal[-1, 0, 1]
    """1 better, −1 worse, 0 open."""
    since: int
    """1-based index of the first outcome of the model for which it holds."""
    since_ms: int
    """Event time of that outcome."""
    quick_labels_only: bool = False
    """Whether the model was watched for less than one horizon, so that slower labels were still missing."""


class ErrorChange(msgspec.Struct, frozen=True, gc=False):
    """Change of a model's error, located by when predictions were made instead of when labels came.

    Attributes
    ----------
    since_ms
        Prediction time from which on the error differs, to the nearest bucket of prediction time.
    earliest_ms, latest_ms
        Limits of its 95 % interval.
    before, after
        Error of the predictions before it and since.
    """

    since_ms: int
    earliest_ms: int
    latest_ms: int
    before: float
    after: float


class Alarm(msgspec.Struct, frozen=True, gc=False):
    """Alarm of one model: a detector declared a drift, or the verdict on the model changed.

    For a verdict `statistic` is the mean M that claimed it (0 if it opened) beside `threshold` A, `before`
    and `after` are the verdicts (1, 0, −1), and `n_eff` is the number of outcomes judged.
    """

    model: str
    detector: str
    ordinal: int
    """1 for the first alarm of this (model, detector)."""
    outcome: int
    """1-based index of the model's outcome that raised it."""
    event_ms: int
    statistic: float
    threshold: float
    before: float
    """Mean loss before the change, as this detector splits it (see the detector)."""
    after: float
    n_eff: float
    judgement: Judgement | None = None
    """The new verdict; None for a detector's alarm."""
    predictions: ErrorChange | None = None
    """Change of the error by prediction time behind a detector's alarm, from the labels known by then; None
    for a verdict, and where no change is found."""
    predicted_ms: int | None = None
    """For a detector in prediction time: time of the prediction at whose outcome it alarmed, while `outcome`
    and `event_ms` tell when the alarm was noticed. None for all others."""
