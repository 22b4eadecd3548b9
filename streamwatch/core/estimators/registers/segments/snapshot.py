"""Snapshot of a model's segments, ordered by name, each with its values."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from streamwatch.core.estimators.registers.segments.values import CANDIDATES


class KeptValue(msgspec.Struct, frozen=True, array_like=True):
    """State of a value with estimates of its own; see `state.VALUE`."""

    name: str
    outcomes: int
    in_epoch: int
    weight: float
    at: int
    sections: dict[str, bytes]
    """Sections of its estimates, as `ModelTable.snapshot` encodes them."""


class KeptSegment(msgspec.Struct, frozen=True, array_like=True):
    """State of a segment; see `state.SEGMENT`. Candidates and values are ordered by name."""

    name: str
    counted: int
    candidates: list[tuple[str, int]]
    values: list[KeptValue]
    left_out: int = 0


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(list[KeptSegment])


def encode(segments: Sequence[KeptSegment]) -> bytes:
    """Encode the segments of a model."""
    return _ENCODER.encode(segments)


def decode(state: bytes) -> list[KeptSegment]:
    """Decode the result of `encode`.

    Raises
    ------
    ValueError
        If the bytes cannot be such a result.
    """
    found = _DECODER.decode(state)
    for segment in found:
        if len(segment.candidates) > CANDIDATES:
            raise ValueError(
                f"expected at most {CANDIDATES} values of segment {segment.name!r} without estimates of "
                f"their own, got {len(segment.candidates)} in the snapshot of a model"
            )
    return found
