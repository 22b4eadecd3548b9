"""Happenings of reading: brokers, partitions, offsets, records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamwatch.telemetry.happening import Happening, Level


@dataclass(frozen=True)
class TopicsAssigned(Happening):
    """Every partition of the configured topics is being read."""

    topics: tuple[str, ...]
    partitions: int


@dataclass(frozen=True)
class KafkaLost(Happening):
    """The brokers cannot be reached or refuse to serve; reading resumes by itself."""

    level: ClassVar[Level] = "warning"
    error: str
    retry_in_seconds: float = 0.0


@dataclass(frozen=True)
class KafkaRecovered(Happening):
    """The brokers answer again; reading resumed where it stood."""

    after_seconds: float


@dataclass(frozen=True)
class OffsetsNotCommitted(Happening):
    """The advisory offsets (for lag tools only) could not be committed in time."""

    level: ClassVar[Level] = "debug"
    error: str


@dataclass(frozen=True)
class PositionLost(Happening):
    """The log no longer holds the next offset (retention, truncation): reading went on at another one."""

    level: ClassVar[Level] = "error"
    topic: str
    partition: int
    wanted: int
    resumed: int
    cause: str = "offset_out_of_range"


@dataclass(frozen=True)
class FingerprintUnverifiable(Happening):
    """The last record delivered is gone from the log (retention, compaction), so it vouches for nothing."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class StateForeign(Happening):
    """The consumer group was last used by another state: this one is new, older, or of another daemon."""

    level: ClassVar[Level] = "error"
    cause: str
    what: str


@dataclass(frozen=True)
class OffsetsNotRead(Happening):
    """The group's offsets could not be read, so nobody knows whether they are of this state."""

    level: ClassVar[Level] = "warning"
    error: str


@dataclass(frozen=True)
class PartitionsAdded(Happening):
    """A topic grew; its new partitions are read from their beginning."""

    topic: str
    partitions: int


@dataclass(frozen=True)
class RecordRejected(Happening):
    """A record could not be used; it is counted as invalid and left out."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "reason"
    topic: str
    partition: int
    offset: int
    reason: str


@dataclass(frozen=True)
class CatchUpFinished(Happening):
    """Every partition was read up to its end for the first time."""

    records: int
    seconds: float
