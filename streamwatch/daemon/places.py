"""Where reading stands in every partition, and what became of the logs, as a commit keeps it."""

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


class LogCounts(msgspec.Struct, frozen=True):
    """What was found of the logs over the life of the state, up to the positions it is committed with."""

    losses: Mapping[str, int] = {}
    """Times a log was found changed, by cause."""
    records_lost: Mapping[str, int] = {}
    """Records known to be lost thereby, by cause."""
    fingerprint_unverifiable: int = 0
    """Times a log could not be recognised."""


class Section(msgspec.Struct, frozen=True):
    """All that a commit keeps of this; one that knew of no counts kept the list of places alone."""

    places: list[Place]
    counts: LogCounts = LogCounts()


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(list[Place] | Section)


@dataclass(frozen=True, slots=True)
class Places:
    """Where reading stands in every partition."""

    positions: Mapping[Partition, int] = field(default_factory=dict[Partition, int])
    fingerprints: Mapping[Partition, Fingerprint] = field(default_factory=dict[Partition, Fingerprint])
    counts: LogCounts = field(default_factory=LogCounts)

    def only(self, topics: Container[str]) -> Places:
        """Without the partitions of other topics; what was found of them stays counted."""
        return Places(
            {p: position for p, position in self.positions.items() if p.topic in topics},
            {p: fingerprint for p, fingerprint in self.fingerprints.items() if p.topic in topics},
            self.counts,
        )

    def encode(self) -> bytes:
        """For a commit."""
        standing = [
            Place(*partition, position, self.fingerprints.get(partition))
            for partition, position in sorted(self.positions.items())
        ]
        return _ENCODER.encode(Section(standing, self.counts))


def places(written: bytes) -> Places:
    """What a commit holds; raises msgspec.DecodeError if it is none."""
    found = _DECODER.decode(written)
    section = found if isinstance(found, Section) else Section(found)
    known = {Partition(place.topic, place.partition): place for place in section.places}
    return Places(
        {partition: place.position for partition, place in known.items()},
        {partition: place.fingerprint for partition, place in known.items() if place.fingerprint},
        section.counts,
    )
