"""State of a model bucket as parts of a base: everything else first, then snapshots of its models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from streamwatch.core.buckets.prediction_order import OrderState
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.fold_streams import Stream
from streamwatch.core.join.mismatch import AgreementState
from streamwatch.core.join.models import JoinModelsState

if TYPE_CHECKING:
    from streamwatch.core.buckets.model_bucket import ModelBucket

_PART_BYTES: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class ModelsState:
    """State of a model bucket without the snapshots of models."""

    batch: int
    reached_ms: int
    alarms: int
    counters: JoinCounters
    models: JoinModelsState
    agreement: AgreementState
    histories: bytes
    """State of the label histories, in the form of the bucket."""
    streams: dict[str, Stream]
    order: OrderState
    held_assumed: int
    totals: bytes
    """Totals of the estimators."""
    comparisons: bytes | None


_ENCODER: Final = msgspec.msgpack.Encoder()
_STATE: Final = msgspec.msgpack.Decoder(ModelsState)
_SNAPSHOTS: Final = msgspec.msgpack.Decoder(list[bytes])


def state_of(bucket: ModelBucket) -> list[bytes]:
    """Encode the state as the bodies of a base's parts."""
    sequence = bucket.sequence
    monitors = sequence.monitors
    state = ModelsState(
        bucket.batch,
        bucket.reached_ms,
        bucket.alarms,
        sequence.counters,
        sequence.models.state(),
        sequence.agreement.state(),
        sequence.histories_state(bucket.reached_ms),
        sequence.streams.state(),
        sequence.order.state(),
        sequence.held_assumed,
        monitors.totals(),
        None if monitors.comparisons is None else monitors.comparisons.snapshot(),
    )
    bodies = [_ENCODER.encode(state)]
    part: list[bytes] = []
    for model in monitors.models():
        part.append(monitors.snapshot(model))
        if sum(map(len, part)) > _PART_BYTES:
            bodies.append(_ENCODER.encode(part))
            part = []
    if part:
        bodies.append(_ENCODER.encode(part))
    return bodies


def restore_part(bucket: ModelBucket, body: bytes, *, is_first: bool) -> None:
    """Restore the next body of a base into a new bucket.

    Raises
    ------
    msgspec.DecodeError
        If it is not of this version.
    """
    sequence = bucket.sequence
    if not is_first:
        for snapshot in _SNAPSHOTS.decode(body):
            sequence.monitors.restore(snapshot)
        return
    state = _STATE.decode(body)
    bucket.batch, bucket.reached_ms, bucket.alarms = state.batch, state.reached_ms, state.alarms
    sequence.counters, sequence.held_assumed = state.counters, state.held_assumed
    sequence.models.restore(state.models)
    sequence.agreement.restore(state.agreement)
    sequence.restore_histories(state.histories)
    sequence.streams.restore(state.streams)
    sequence.order.restore(state.order)
    sequence.monitors.restore_totals(state.totals)
    if sequence.monitors.comparisons is not None and state.comparisons is not None:
        sequence.monitors.comparisons.restore(state.comparisons)
