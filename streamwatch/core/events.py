"""Events for the core and outcomes of the join: plain values, decoded and validated at the edge.

Times are integers, milliseconds since the epoch. `record_ms` is the clock at the event's place in the merged
sequence (deadlines count from it; the merge sets it when the event is released); `timestamp_ms` is the
event's own time, where it carries one (label delay and prediction-time order use it).
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

VERDICT = "verdict"
"""What stands for a detector in the alarms of a verdict."""
Side: TypeAlias = Literal["prediction", "label", "both"]


class Partition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class Mark(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A record that was delivered, by its offset and a hash of its timestamp, key and value."""

    offset: int
    hash: int


class Fingerprint(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Fingerprint by which a partition's log is recognised as the one that was read."""

    topic_id: str | None = None
    """None where brokers do not give it."""
    marks: tuple[Mark, ...] = ()
    """The last record delivered, then a few before it at growing distances."""


class Prediction(msgspec.Struct, gc=False):
    """A deployed model predicted a class for an id."""

    id: str
    model: str
    predicted_class: str
    record_ms: int
    timestamp_ms: int | None = None
    scores: dict[str, float] | None = None
    segments: dict[str, str] | None = None
    """Value of each segment that the record has one of, by the segment's name; None without any."""
    topic: str = ""
    """Topic of its record; empty where nobody says."""


class Label(msgspec.Struct, gc=False):
    """The true class of an id became known; without `model` it is for every model that predicted the id."""

    id: str
    true_class: str
    record_ms: int
    model: str | None = None
    timestamp_ms: int | None = None
    topic: str = ""
    """As of a prediction."""


class NullRecord(msgspec.Struct, gc=False):
    """A record with a null value: withdraws pending predictions of `id`, or is ignored on a label topic.

    `id` is None where the mapping does not find the id in the key; such a record is only counted.
    """

    topic: str
    id: str | None
    model: str | None
    record_ms: int
    withdraws: bool


class WrongFold(msgspec.Struct, gc=False):
    """A prediction by a fold that does not test its id: counted, and nothing else."""

    record_ms: int


class Skipped(msgspec.Struct, gc=False):
    """A record from which no mapping of its topic makes an event: it moves the clock, and nothing else."""

    record_ms: int


class Invalid(msgspec.Struct, gc=False):
    """A record that could not be decoded or broke a rule of SEMANTICS §1; `reason` is one of a closed set."""

    topic: str
    partition: int
    offset: int
    reason: str
    record_ms: int = -1
    model: str | None = None
    """Where it can be read, and is a valid name."""


Event: TypeAlias = Prediction | Label | NullRecord | WrongFold | Skipped | Invalid


class EventGroup(msgspec.Struct, gc=False):
    """Events of one record that holds several, or none: it has one time and one place in the sequence.

    Its events follow one another there, and no commit comes between them.
    """

    events: tuple[Event, ...]
    """None of them in a record that was skipped."""
    record_ms: int = -1
    tied: int = 0
    """Predictions among them whose class was one of several with the largest score."""


Decoded: TypeAlias = Event | EventGroup


def is_decodable(found: Decoded) -> bool:
    """Tell whether a record could be read: whether it holds anything but invalid events."""
    events = found.events if isinstance(found, EventGroup) else (found,)
    return not events or any(type(event) is not Invalid for event in events)


class PairedAnswer(NamedTuple):
    """Answer of another model on the same id, of which it was told the same label."""

    model: str
    predicted_class: str


class Outcome(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A prediction whose label is known: what every estimator is fed, in order."""

    model: str
    true_class: str
    predicted_class: str
    event_ms: int
    """Event time of the outcome: the label's own timestamp, else its record's."""
    delay_ms: int
    """Label time minus prediction time, clamped at 0."""
    assumed: bool = False
    """The class was assumed at expiry (`join.on_expiry`), not observed."""
    scores: dict[str, float] | None = None
    label_at_prediction: str | None = None
    """The label this model had been resolved with last when the prediction was accepted; None without one."""
    pairs: tuple[PairedAnswer, ...] | None = None
    """Answers of the models compared with this one whose predictions of the id were resolved before; None
    without any."""
    segments: dict[str, str] | None = None
    """As of the prediction."""
    last_class: str | None = None
    """Class that was predicted last before the label, where the first one counts and both are looked at
    (`join.conflicts: both`); None if the prediction was never revised."""


class Judgement(msgspec.Struct, frozen=True, gc=False):
    """A verdict on a model that holds since an outcome."""

    opponent: str
    verdict: Literal[-1, 0, 1]
    """1 better, −1 worse, 0 open."""
    since: int
    """1-based index of the model's outcome from which it holds."""
    since_ms: int
    """Its event time."""
    quick_labels_only: bool = False
    """Whether the model's first outcome was less than one horizon old: slower labels were missing."""


class ErrorChange(msgspec.Struct, frozen=True, gc=False):
    """Change of the error by the time of the prediction, whenever labels came.

    Attributes
    ----------
    since_ms
        Time of the predictions since which the error differs, to the nearest stretch of prediction time.
    earliest_ms, latest_ms
        Interval of 95 % for it.
    before, after
        Error of the predictions before it and since.
    """

    since_ms: int
    earliest_ms: int
    latest_ms: int
    before: float
    after: float


class Alarm(msgspec.Struct, frozen=True, gc=False):
    """A detector of one model declared a drift, or the verdict on the model changed.

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
    """Of a verdict; None of a detector."""
    predictions: ErrorChange | None = None
    """Change among the predictions that a detector's alarm is about, as far as labels had come; None of a
    verdict, and where none is found."""
    predicted_ms: int | None = None
    """Of a detector in prediction time: when the prediction was made at whose outcome it alarmed, while
    `outcome` and `event_ms` say when that was noticed. None of any other."""
