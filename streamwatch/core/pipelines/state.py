"""State of a pipeline as commits contain it, the same for both forms of pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from streamwatch.core.join.compiled.prediction_order import OrderTotals
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.dedup import DedupState
from streamwatch.core.join.fold_streams import Stream
from streamwatch.core.join.mismatch import AgreementState
from streamwatch.core.join.models import JoinModelsState
from streamwatch.core.join.pairing import PairingState
from streamwatch.core.join.reorder import OrderState


@dataclass(frozen=True, slots=True)
class PipelineState:
    """State of a pipeline, without the join's entries (the store's) and the estimators (saved by model)."""

    clock_ms: int
    passed_ms: int
    counters: JoinCounters
    join_models: JoinModelsState
    dedup: DedupState
    order: OrderState
    early: int
    unmatched: int
    retained: int
    start_ms: int | None
    oldest_pending_ms: int | None
    agreement: AgreementState = field(default_factory=AgreementState)
    fold_streams: dict[str, Stream] = field(default_factory=dict[str, Stream])
    pairing: PairingState = field(default_factory=PairingState)
    predictions: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """State of prediction registers, by section."""
    prediction_order: OrderTotals = OrderTotals()  # noqa: RUF009 - it is frozen


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")  # dicts of counts have no order of their own
_DECODER = msgspec.msgpack.Decoder(PipelineState)


def encoded(state: PipelineState) -> bytes:
    """Encode a state for a commit; equal states give equal bytes."""
    return _ENCODER.encode(state)


def decoded(snapshot: bytes) -> PipelineState:
    """Decode what `encoded` gave; raises msgspec.DecodeError if it is not of this version."""
    return _DECODER.decode(snapshot)
