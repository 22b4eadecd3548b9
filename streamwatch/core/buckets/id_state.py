"""State of an id bucket as parts of a base: counts first, then its entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from streamwatch.core.buckets.id_join import IdJoin, chain_of
from streamwatch.core.buckets.inbox import InboxState
from streamwatch.core.buckets.reported_activity import ReportedTotals
from streamwatch.core.buckets.totals import RecordCounts
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.dedup import DedupState
from streamwatch.core.join.entry import EARLY, PENDING, RETAINED, UNMATCHED, JoinEntry, append
from streamwatch.core.join.expiry import Deadlines, deadline
from streamwatch.core.join.models import JoinModelsState
from streamwatch.core.join.pairing import PairingState
from streamwatch.core.specs import JoinSpec

if TYPE_CHECKING:
    from streamwatch.core.buckets.id_bucket import IdBucket

_ENTRIES: Final = 20_000
"""Number of entries in one part of a base, which then has some megabytes."""


class IdState(msgspec.Struct, frozen=True, rename={"reported_activity": "told_models"}):
    """State of an id bucket without its entries."""

    batch: int
    inbox: InboxState
    records: RecordCounts
    counters: JoinCounters
    join_models: JoinModelsState
    dedup: DedupState
    early: int
    unmatched: int
    retained: int
    passed_ms: int
    oldest_pending_ms: int | None
    reported_activity: list[ReportedTotals]
    pairing: PairingState = msgspec.field(default_factory=PairingState)


class _EntryState(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """State of a `JoinEntry` without its chain."""

    id: str
    model: str | None
    state: int
    predicted_class: str
    true_class: str
    record_ms: int
    timestamp_ms: int | None
    scores: dict[str, float] | None
    generation: int
    place: str | None
    segments: dict[str, str] | None
    topic: str = ""


_ENCODER: Final = msgspec.msgpack.Encoder()
_STATE: Final = msgspec.msgpack.Decoder(IdState)
_KEPT: Final = msgspec.msgpack.Decoder(list[_EntryState])


def state_of(bucket: IdBucket) -> list[bytes]:
    """Encode the state as the bodies of a base's parts."""
    join = bucket.join
    predictions, labels = join.predictions, join.labels
    state = IdState(
        bucket.batch,
        bucket.inbox.state(),
        bucket.records,
        join.counters,
        predictions.join_models.state(),
        predictions.dedup.state(),
        labels.early,
        labels.unmatched,
        labels.retained,
        join.passed_ms,
        predictions.oldest_ms,
        join.reported_activity.state(),
        PairingState() if predictions.pairing is None else predictions.pairing.state(),
    )
    # Entries of an id arrived in the order of their times; so did those that expire in the same second.
    entries = sorted(
        (entry for first in join.by_id.values() for entry in chain_of(first)), key=lambda e: e.record_ms
    )
    kept = [
        _EntryState(
            e.id,
            e.model,
            e.state,
            e.predicted_class,
            e.true_class,
            e.record_ms,
            e.timestamp_ms,
            e.scores,
            e.generation,
            e.label_at_prediction,
            e.segments,
            e.topic,
        )
        for e in entries
    ]
    parts = [kept[start : start + _ENTRIES] for start in range(0, len(kept), _ENTRIES)]
    return [_ENCODER.encode(state), *map(_ENCODER.encode, parts)]


def restore_part(bucket: IdBucket, body: bytes, *, is_first: bool) -> None:
    """Restore the next body of a base into a new bucket.

    Raises
    ------
    msgspec.DecodeError
        If it is not of this version.
    """
    if is_first:
        _restore(bucket, _STATE.decode(body))
    else:
        _restore_entries(bucket.join, bucket.join.spec, _KEPT.decode(body))


def _restore(bucket: IdBucket, state: IdState) -> None:
    join = bucket.join
    predictions, labels = join.predictions, join.labels
    bucket.batch, bucket.records = state.batch, state.records
    bucket.inbox.restore(state.inbox)
    join.counters, join.passed_ms = state.counters, state.passed_ms
    predictions.join_models.restore(state.join_models)
    predictions.dedup.restore(state.dedup)
    predictions.dedup.evicted = state.counters.dedup_entries_evicted
    predictions.pending = sum(activity.pending for activity in state.join_models.models)
    predictions.oldest_ms = state.oldest_pending_ms
    labels.early, labels.unmatched, labels.retained = state.early, state.unmatched, state.retained
    if predictions.pairing is not None:
        predictions.pairing.restore(state.pairing)
    join.reported_activity.restore(state.reported_activity)


def _restore_entries(join: IdJoin, spec: JoinSpec, kept: Sequence[_EntryState]) -> None:
    for each in kept:
        entry = JoinEntry(
            each.id,
            each.model,
            each.state,
            each.predicted_class,
            each.true_class,
            each.record_ms,
            each.timestamp_ms,
            each.scores,
            each.generation,
            None,
            each.place,
            each.segments,
            each.topic,
        )
        append(join.by_id, entry)
        if entry.state == PENDING:
            _wait(join.pending, entry, spec.horizon_ms)
        elif entry.state == EARLY:
            _wait(join.early, entry, spec.early_horizon_ms)
        elif entry.state in (UNMATCHED, RETAINED):
            _wait(join.retained, entry, spec.horizon_ms)
        else:
            join.settled.setdefault(entry.generation, []).append(entry)


def _wait(index: Deadlines, entry: JoinEntry, horizon_ms: int) -> None:
    index.add(deadline(entry.record_ms, horizon_ms), entry)
    index.entries += 1
    index.live += 1
