"""Where reading stands in every partition, as a commit keeps it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

import msgspec

from streamwatch.core.events import Fingerprint, Partition

POSITIONS = "positions"


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where reading of one partition goes on, and how its log is recognised."""

    topic: str
    partition: int
    position: int
    fingerprint: Fingerprint | None = None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Place])


@dataclass(frozen=True, slots=True)
class Places:
    """Where reading stands in every partition."""

    positions: Mapping[Partition, int] = field(default_factory=dict[Partition, int])
    fingerprints: Mapping[Partition, Fingerprint] = field(default_factory=dict[Partition, Fingerprint])

    def only(self, topics: Container[str]) -> Places:
        """Without the partitions of other topics."""
        return Places(
            {p: position for p, position in self.positions.items() if p.topic in topics},
            {p: fingerprint for p, fingerprint in self.fingerprints.items() if p.topic in topics},
        )

    def encode(self) -> bytes:
        """For a commit."""
        return _ENCODER.encode(
            [
                Place(*partition, position, self.fingerprints.get(partition))
                for partition, position in sorted(self.positions.items())
            ]
        )


def places(written: bytes) -> Places:
    """What a commit holds; raises msgspec.DecodeError if it is none."""
    known = {Partition(place.topic, place.partition): place for place in _DECODER.decode(written)}
    return Places(
        {partition: place.position for partition, place in known.items()},
        {partition: place.fingerprint for partition, place in known.items() if place.fingerprint},
    )
