"""Snapshot of one model as bytes; equal states give equal bytes, however they were reached."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from streamwatch.core.estimators.pasts import PastSnapshot

VERSION = 1


class ModelSnapshot(msgspec.Struct, frozen=True):
    """Snapshot of a model: names, registers and estimators; the sections are opaque here."""

    model: str
    classes: list[str]
    """Class names in order of appearance; the position is the local class index."""
    max_classes: int
    first_ms: int
    delays: tuple[list[int], int, int]
    """Number of labels per delay bucket, sum of delays, time of the latest label (both in milliseconds)."""
    last_alarms_ms: dict[str, int]
    """Event time of the latest alarm by detector."""
    sections: dict[str, bytes]
    """State of each estimator by section name."""
    version: int = VERSION
    past: PastSnapshot | None = None
    """None in snapshots from before histories existed, and if none is kept."""


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(ModelSnapshot)


def without(snapshot: bytes, sections: Collection[str]) -> bytes:
    """Leave these sections out of an encoded snapshot."""
    if not sections:
        return snapshot
    decoded = decode(snapshot)
    kept = {name: body for name, body in decoded.sections.items() if name not in sections}
    return encode(msgspec.structs.replace(decoded, sections=kept))


def encode(snapshot: ModelSnapshot) -> bytes:
    """Encode a snapshot."""
    return _ENCODER.encode(snapshot)


def decode(snapshot: bytes) -> ModelSnapshot:
    """Decode a snapshot; raises ValueError if the version differs or the bytes are not a snapshot."""
    state = _DECODER.decode(snapshot)
    if state.version != VERSION:
        raise ValueError(f"model snapshot must be of version {VERSION}, got {state.version}")
    return state
