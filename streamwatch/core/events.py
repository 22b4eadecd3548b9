"""What enters the core and what leaves the join: plain values, decoded and validated at the edge.

Times are integers, milliseconds since the epoch. `at_ms` is the Kafka record's timestamp after clamping
(deadlines and watermarks use it); `timestamp_ms` is the event's own time, where it carries one (label
delay and prediction-time order use it).
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

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
    """How a partition's log is recognised as the one that was read."""

    topic_id: str | None = None
    """None where brokers do not give it."""
    marks: tuple[Mark, ...] = ()
    """The last record delivered, then a few before it at growing distances."""


class Prediction(msgspec.Struct, frozen=True, gc=False):
    """A deployed model predicted a class for an id."""

    id: str
    model: str
    prediction: str
    at_ms: int
    timestamp_ms: int | None = None
    scores: dict[str, float] | None = None
    fold: int | None = None


class Label(msgspec.Struct, frozen=True, gc=False):
    """The true class of an id became known; without `model` it is for every model that predicted the id."""

    id: str
    label: str
    at_ms: int
    model: str | None = None
    timestamp_ms: int | None = None


class NullRecord(msgspec.Struct, frozen=True, gc=False):
    """A record with a null value: withdraws pending predictions of `id`, or is ignored on a label topic.

    `id` is None where the mapping does not find the id in the key; such a record is only counted.
    """

    topic: str
    id: str | None
    model: str | None
    at_ms: int
    withdraws: bool


class Invalid(msgspec.Struct, frozen=True, gc=False):
    """A record that could not be decoded or broke a rule of SEMANTICS §1; `reason` is one of a closed set."""

    topic: str
    partition: int
    offset: int
    reason: str


class Progress(msgspec.Struct, frozen=True, gc=False):
    """How far reading of one partition has come; sent after the records it covers, so time moves last."""

    topic: str
    partition: int
    timestamp_ms: int
    """Highest clamped record timestamp delivered so far from this partition; -1 before the first."""
    caught_up: bool
    """The position had reached the high watermark of a recent fetch."""


Event: TypeAlias = Prediction | Label | NullRecord | Invalid | Progress


class Outcome(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A prediction whose label is known: what every estimator is fed, in order."""

    model: str
    truth: str
    predicted: str
    at_ms: int
    """Event time of the outcome: the label's own timestamp, else its record's."""
    delay_ms: int
    """Label time minus prediction time, clamped at 0."""
    assumed: bool = False
    """The class was assumed at expiry (`join.on_expiry`), not observed."""
    scores: dict[str, float] | None = None
    known: str | None = None
    """The label this model had been resolved with last when the prediction was accepted; None without one."""


class Alarm(msgspec.Struct, frozen=True, gc=False):
    """A detector of one model declared a drift."""

    model: str
    detector: str
    ordinal: int
    """1 for the first alarm of this (model, detector)."""
    outcome: int
    """1-based index of the model's outcome that raised it."""
    at_ms: int
    statistic: float
    threshold: float
    before: float
    """Mean loss before the change, as this detector splits it (see the detector)."""
    after: float
    n_eff: float
