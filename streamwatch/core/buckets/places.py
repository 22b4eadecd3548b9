"""Places in the sequence, as tuples that sort like it across all buckets.

A place begins with a time and a kind. At each time, expirations come first, then the clock reaches the time,
then its records follow.

    (deadline, DUE, place of the prediction …)      it expires
    (time, TICK)                                    time passes: a record of this time is the first one
    (time, RECORD, rank, offset, event, …)          an event; `rank` is that of topic and partition
    (time, BEHIND)                                  behind all records of this time
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Final, TypeAlias

from streamwatch.core.events import Partition, Side
from streamwatch.core.merge.merge import RANKS

Place: TypeAlias = tuple[int, ...]

DUE: Final = 0
TICK: Final = 1
RECORD: Final = 2
BEHIND: Final = 3

_PARTITION_BITS: Final = 32
_ENCODED: Final = Struct(">qqqqq")


def ranks_of(sides: Mapping[str, Side]) -> dict[str, int]:
    """Rank of each topic: predictions only, mixed, labels only, then as in the settings."""
    return {topic: rank for rank, topic in enumerate(sorted(sides, key=lambda topic: RANKS[sides[topic]]))}


def rank_of(ranks: Mapping[str, int], partition: Partition) -> int:
    """Rank of a partition among all.

    Raises
    ------
    ValueError
        If its topic has no rank.
    """
    if partition.topic not in ranks:
        raise ValueError(f"expected a topic of {', '.join(ranks)}, got {partition.topic!r}")
    return ranks[partition.topic] << _PARTITION_BITS | partition.partition


def encode_place(place: Place, own_ms: int) -> str:
    """Encode the place and own time of a prediction in 40 latin-1 characters, as its entry stores them."""
    time_ms, _, rank, offset, event = place
    return _ENCODED.pack(time_ms, rank, offset, event, own_ms).decode("latin-1")


def decode_place(text: str) -> tuple[Place, int]:
    """Decode the result of `encode_place`."""
    time_ms, rank, offset, event, own_ms = _ENCODED.unpack(text.encode("latin-1"))
    return (time_ms, RECORD, rank, offset, event), own_ms
