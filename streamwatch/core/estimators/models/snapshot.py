"""What is kept of one model, as canonical bytes: equal states give equal bytes, whatever way led there."""

from __future__ import annotations

import msgspec

from streamwatch.core.estimators.pasts import PastSnapshot

VERSION = 1


class ModelSnapshot(msgspec.Struct, frozen=True):
    """A model's names, registers and estimators; the kernel's sections are opaque here."""

    model: str
    classes: list[str]
    """In order of appearance: position is the local class index."""
    max_classes: int
    first_ms: int
    delays: tuple[list[int], int, int]
    """Labels per delay bucket, sum of delays, latest label (milliseconds)."""
    last_alarms_ms: dict[str, int]
    """Event time of the latest alarm, by detector."""
    sections: dict[str, bytes]
    """One per estimator, by name."""
    version: int = VERSION
    past: PastSnapshot | None = None
    """None in states of before there was one, and where none is kept."""


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(ModelSnapshot)


def encode(snapshot: ModelSnapshot) -> bytes:
    """Bytes of a snapshot."""
    return _ENCODER.encode(snapshot)


def decode(snapshot: bytes) -> ModelSnapshot:
    """Snapshot of bytes; raises ValueError for another version, or bytes that are no snapshot."""
    state = _DECODER.decode(snapshot)
    if state.version != VERSION:
        raise ValueError(f"model snapshot must be of version {VERSION}, got {state.version}")
    return state
