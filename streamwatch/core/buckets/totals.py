"""Totals: counters and gauges as one value; those of several buckets can be added in any order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final, TypeVar

import msgspec

from streamwatch.core.join.counters import JoinCounters, LabelCounters, PredictionCounters
from streamwatch.core.join.holdings import Holdings
from streamwatch.core.join.mismatch import AgreementState
from streamwatch.core.join.models import ModelActivity

_Counters = TypeVar("_Counters", JoinCounters, LabelCounters, PredictionCounters)


@dataclass(slots=True)
class RecordCounts:
    """Counts of evaluated records by topic, as in `MergeProgress`."""

    evaluated: dict[str, int] = field(default_factory=dict[str, int])
    events: dict[str, int] = field(default_factory=dict[str, int])
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    tied: dict[str, int] = field(default_factory=dict[str, int])
    out_of_order: dict[str, int] = field(default_factory=dict[str, int])
    lateness_ms: dict[str, int] = field(default_factory=dict[str, int])
    corrected: dict[str, int] = field(default_factory=dict[str, int])
    """By reason."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Counters since the start and current gauges of one bucket, or of several together.

    `plus` is associative and commutative, and `Totals()` is its neutral element.
    """

    clock_ms: int = -1
    """Time reached, the largest of several buckets'; -1 before the first record."""
    counters: JoinCounters = field(default_factory=JoinCounters)
    records: RecordCounts = field(default_factory=RecordCounts)
    over_limit: dict[str, int] = field(default_factory=dict[str, int])
    """Records not evaluated, or evaluated with a changed class, by limit of the estimators."""
    pending: int = 0
    early: int = 0
    unmatched: int = 0
    retained: int = 0
    dedup_entries: int = 0
    held: int = 0
    """Number of outcomes held for the order of predictions."""
    held_assumed: int = 0
    held_records: int = 0
    """Number of events held, as they are beyond the time of the batch."""
    oldest_ms: int | None = None
    """Record time of the oldest pending prediction."""
    models: dict[str, ModelActivity] = field(default_factory=dict[str, ModelActivity])
    """Activity by model; each model is in one bucket only."""
    agreement: AgreementState = field(default_factory=AgreementState)

    def plus(self, other: Totals) -> Totals:
        """Add totals of other buckets."""
        oldest = [ms for ms in (self.oldest_ms, other.oldest_ms) if ms is not None]
        return Totals(
            max(self.clock_ms, other.clock_ms),
            _join_counters(self.counters, other.counters),
            RecordCounts(
                *(
                    _add_counts(getattr(self.records, each.name), getattr(other.records, each.name))
                    for each in fields(RecordCounts)
                )
            ),
            _add_counts(self.over_limit, other.over_limit),
            self.pending + other.pending,
            self.early + other.early,
            self.unmatched + other.unmatched,
            self.retained + other.retained,
            self.dedup_entries + other.dedup_entries,
            self.held + other.held,
            self.held_assumed + other.held_assumed,
            self.held_records + other.held_records,
            min(oldest, default=None),
            dict(sorted({**self.models, **other.models}.items())),
            AgreementState(
                dict(sorted({**self.agreement.open, **other.agreement.open}.items())),
                sorted({*self.agreement.settled, *other.agreement.settled}),
            ),
        )

    def holdings(self) -> Holdings:
        """Convert to `Holdings`, from which the join's gauges are built (`core.join.series.Joining`)."""
        return Holdings(
            self.models,
            self.pending,
            self.early,
            self.unmatched,
            self.retained,
            self.dedup_entries,
            self.held,
            self.held_assumed,
            self.oldest_ms,
        )


def _add_counts(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}


def _add_counters(one: _Counters, other: _Counters, total: _Counters) -> _Counters:
    for each in fields(total):
        mine = getattr(one, each.name)
        if isinstance(mine, int):
            setattr(total, each.name, mine + getattr(other, each.name))
    return total


def _join_counters(one: JoinCounters, other: JoinCounters) -> JoinCounters:
    total = _add_counters(one, other, JoinCounters())
    total.with_model = _add_counters(one.with_model, other.with_model, LabelCounters())
    total.without_model = _add_counters(one.without_model, other.without_model, LabelCounters())
    total.null_records = _add_counts(one.null_records, other.null_records)
    total.model_records_invalid = _add_counts(one.model_records_invalid, other.model_records_invalid)
    for topic in sorted({*one.topic_labels, *other.topic_labels}):
        total.topic_labels[topic] = _add_counters(
            one.topic_labels.get(topic, LabelCounters()),
            other.topic_labels.get(topic, LabelCounters()),
            LabelCounters(),
        )
    for topic in sorted({*one.topic_predictions, *other.topic_predictions}):
        total.topic_predictions[topic] = _add_counters(
            one.topic_predictions.get(topic, PredictionCounters()),
            other.topic_predictions.get(topic, PredictionCounters()),
            PredictionCounters(),
        )
    topics = sorted({*one.records_invalid, *other.records_invalid})
    total.records_invalid = {
        topic: _add_counts(one.records_invalid.get(topic, {}), other.records_invalid.get(topic, {}))
        for topic in topics
    }
    return total


_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")
_DECODER: Final = msgspec.msgpack.Decoder(Totals)


def encode_totals(totals: Totals) -> bytes:
    """Encode totals as the body of a result; equal totals give equal bytes."""
    return _ENCODER.encode(totals)


def decode_totals(body: bytes) -> Totals:
    """Decode the result of `encode_totals`; raises msgspec.DecodeError if it is not of this version."""
    return _DECODER.decode(body)
