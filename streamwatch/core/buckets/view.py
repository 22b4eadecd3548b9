"""View of the results of all buckets, as a single process would report them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final, TypeVar

import msgspec

from streamwatch.core.buckets.contract import ALARM, MODEL, PAIRS, TOTALS, BucketsSpec
from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.caveats import (
    AgreementState,
    Caveats,
    ClassAgreement,
    Mismatch,
    caveats,
    mismatches,
)
from streamwatch.core.join.counters import JoinCounters, LabelCounters, PredictionCounters
from streamwatch.core.join.models import ModelActivity, joined_folds
from streamwatch.core.join.series import (
    Holdings,
    counter_families,
    gauge_families,
    identities,
    model_families,
)
from streamwatch.core.metrics.series import Family
from streamwatch.core.records.events import Alarm, Name

# Totals: counters and gauges as one value; those of several buckets can be added in any order.


_Counters = TypeVar("_Counters", JoinCounters, LabelCounters, PredictionCounters)


@dataclass(slots=True)
class RecordCounts:
    """Counts of evaluated records by topic, as in `MergeProgress`."""

    evaluated: dict[Name, int] = field(default_factory=dict[str, int])
    events: dict[Name, int] = field(default_factory=dict[str, int])
    skipped: dict[Name, int] = field(default_factory=dict[str, int])
    tied: dict[Name, int] = field(default_factory=dict[str, int])
    out_of_order: dict[Name, int] = field(default_factory=dict[str, int])
    lateness_ms: dict[Name, int] = field(default_factory=dict[str, int])
    corrected: dict[Name, int] = field(default_factory=dict[str, int])
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
    over_limit: dict[Name, int] = field(default_factory=dict[str, int])
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
    """Number of events held because they are later than the end of the batch."""
    oldest_ms: int | None = None
    """Record time of the oldest pending prediction."""
    models: dict[Name, ModelActivity] = field(default_factory=dict[str, ModelActivity])
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


_ALARMS: Final = msgspec.msgpack.Decoder(Alarm)


class ResultsView:
    """Collects results. Those of one name must come in order; each may be repeated.

    Parameters
    ----------
    spec
        Partitioning of the stream.
    """

    def __init__(self, spec: BucketsSpec) -> None:
        self._spec = spec
        self._totals: dict[str, Totals] = {}
        self.monitors = EstimatorSet(spec.monitors)
        """Estimators of all models; recent alarms and counts of limits are kept separately."""
        self.alarms: dict[str, Alarm] = {}
        """Alarms by name of their result."""

    def take(self, kind: str, name: str, body: bytes) -> None:
        """Add one result.

        Raises
        ------
        ValueError
            If its kind is unknown, or its body is not of this version.
        """
        if kind == TOTALS:
            self._totals[name] = decode_totals(body)
        elif kind == MODEL:
            if body:
                self.monitors.restore(body)  # replaces the previous one
            elif name in self.monitors.models():
                self.monitors.retire(name)
        elif kind == PAIRS:
            comparisons = ComparisonSet(self._spec.monitors)  # a new set, so that ended comparisons disappear
            comparisons.restore(body)
            self.monitors.comparisons = comparisons
        elif kind == ALARM:
            self.alarms.pop(name, None)
            if body:
                self.alarms[name] = _ALARMS.decode(body)
        else:
            raise ValueError(f"expected a result of {TOTALS}, {MODEL}, {PAIRS}, {ALARM}, got {kind!r}")

    @property
    def totals(self) -> Totals:
        """Counters and gauges of all buckets together."""
        total = Totals()
        for each in self._totals.values():
            total = total.plus(each)
        return total

    def mismatches(self) -> list[Mismatch]:
        """Models whose predictions and labels seem not to belong together, by name."""
        return _mismatches(self._spec, self.totals)

    def caveats(self) -> dict[str, Caveats]:
        """Caveats to show beside verdicts, by model."""
        totals = self.totals
        return caveats(joined_folds(totals.models), self._spec.join, totals.clock_ms)

    def identities(self) -> list[str]:
        """Describe the sums over all buckets that do not hold; empty after every complete batch."""
        return identities(self.totals)

    def join_families(self) -> list[Family]:
        """Series of the join."""
        totals = self.totals
        return [
            *counter_families(totals, totals.over_limit),
            *gauge_families(totals),
            *model_families(totals, _mismatches(self._spec, totals)),
        ]

    def families(self) -> Sequence[Family]:
        """All series, those of the estimators last."""
        return self.join_families() + self.monitors.families()


def _mismatches(spec: BucketsSpec, totals: Totals) -> list[Mismatch]:
    agreement = ClassAgreement(spec.join.max_models)
    agreement.restore(totals.agreement)
    return mismatches(agreement, totals.models, totals.clock_ms - spec.join.early_horizon_ms)
