"""Internal events of reading: brokers, partitions, offsets, records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamwatch.telemetry.internal_event import InternalEvent, Level


@dataclass(frozen=True)
class TopicsAssigned(InternalEvent):
    """Every partition of the configured topics is being read."""

    topics: tuple[str, ...]
    partitions: int


@dataclass(frozen=True)
class KafkaLost(InternalEvent):
    """The brokers cannot be reached or refuse to serve; reading resumes by itself."""

    level: ClassVar[Level] = "warning"
    error: str
    retry_in_seconds: float = 0.0


@dataclass(frozen=True)
class KafkaRecovered(InternalEvent):
    """The brokers answer again; reading resumed where it stood."""

    after_seconds: float


@dataclass(frozen=True)
class OffsetsNotCommitted(InternalEvent):
    """The advisory offsets (for lag tools only) could not be committed in time."""

    level: ClassVar[Level] = "debug"
    error: str


@dataclass(frozen=True)
class PositionLost(InternalEvent):
    """The log no longer holds the next offset (retention, truncation): reading went on at another one."""

    level: ClassVar[Level] = "error"
    topic: str
    partition: int
    wanted: int
    resumed: int
    cause: str = "offset_out_of_range"


@dataclass(frozen=True)
class BatchSkipped(InternalEvent):
    """A batch of records cannot be read, whoever tries: reading goes on after it."""

    level: ClassVar[Level] = "error"
    topic: str
    partition: int
    offset: int
    records: int
    cause: str
    reason: str


@dataclass(frozen=True)
class FetchFailed(InternalEvent):
    """Fetching one partition fails repeatedly; the others are read on, and it is tried again."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "error"
    topic: str
    partition: int
    offset: int
    error: str
    retry_in_seconds: float = 0.0


@dataclass(frozen=True)
class PositionUnverified(InternalEvent):
    """The last record delivered is gone from the log (retention, compaction), so it vouches for nothing."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class PartitionLeftBehind(InternalEvent):
    """Others wait no longer for a partition that was at its end; what it delivers later is out of order."""

    level: ClassVar[Level] = "warning"
    topic: str
    partition: int


@dataclass(frozen=True)
class NameTableFull(InternalEvent):
    """So many names of a kind (models, classes, segments) came that the numbers of unneeded ones are reused.

    Decoding ever new names takes several times as long as decoding known ones.
    """

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "kind"
    kind: str


@dataclass(frozen=True)
class HostClockBehind(InternalEvent):
    """Most records look as if they came from the future: this host's clock is behind, and is not asked."""

    level: ClassVar[Level] = "warning"


@dataclass(frozen=True)
class HostClockRight(InternalEvent):
    """Records no longer look as if they came from the future."""


@dataclass(frozen=True)
class StateMismatchDetected(InternalEvent):
    """The consumer group was last used by another state: this one is new, older, or of another daemon."""

    level: ClassVar[Level] = "error"
    cause: str
    what: str


@dataclass(frozen=True)
class OffsetsNotRead(InternalEvent):
    """The group's offsets could not be read, so nobody knows whether they are of this state."""

    level: ClassVar[Level] = "warning"
    error: str


@dataclass(frozen=True)
class PartitionsAdded(InternalEvent):
    """A topic grew; its new partitions are read from their beginning."""

    topic: str
    partitions: int


@dataclass(frozen=True)
class RecordRejected(InternalEvent):
    """A record could not be used; it is counted as invalid and left out."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "reason"
    topic: str
    partition: int
    offset: int
    reason: str


@dataclass(frozen=True)
class DeadLettersDelayed(InternalEvent):
    """Brokers do not take dead letters; the commit that is past them waits, and they are sent again."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "error"
    topic: str
    dead_letters: int
    error: str
    given_up_in_seconds: float


@dataclass(frozen=True)
class DeadLettersDropped(InternalEvent):
    """Invalid records could not be written to the dead-letter topic, and are not tried again."""

    level: ClassVar[Level] = "error"
    sampled_by: ClassVar[str | None] = "reason"
    topic: str
    dead_letters: int
    reason: str
    error: str


@dataclass(frozen=True)
class ClassesDisjoint(InternalEvent):
    """A model's predicted and true classes have nothing in common: one side writes them otherwise."""

    level: ClassVar[Level] = "warning"
    model: str
    predicted_class: tuple[str, ...]
    true: tuple[str, ...]


@dataclass(frozen=True)
class ScoresAsClasses(InternalEvent):
    """A model's predicted classes are numbers of a scale: each is a class of its own, and none is right."""

    level: ClassVar[Level] = "warning"
    model: str
    predicted_class: tuple[str, ...]
    write: str = "prediction: {score: value.field, threshold: 0.5, above: fraud, below: legit}"
    """What the mapping may say instead."""


@dataclass(frozen=True)
class NothingJoins(InternalEvent):
    """No prediction of a model has met a label: ids differ, labels do not come, or they come much later."""

    level: ClassVar[Level] = "warning"
    model: str
    predictions: int


@dataclass(frozen=True)
class CatchUpCompleted(InternalEvent):
    """Every partition was read up to its end for the first time."""

    records: int
    seconds: float


@dataclass(frozen=True)
class SchemaRegistryLost(InternalEvent):
    """The schema registry cannot be asked: records that need a schema wait, and none is lost."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "registry"
    error: str
    registry: str
    retry_in_seconds: float = 0.0


@dataclass(frozen=True)
class SchemaAwaited(InternalEvent):
    """A schema takes long to be fetched or compiled: records wait for it."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "registry"
    schema: str
    registry: str


@dataclass(frozen=True)
class SchemaRegistryRecovered(InternalEvent):
    """The schema registry answers again; reading goes on where it stood."""

    after_seconds: float


@dataclass(frozen=True)
class SchemaRejected(InternalEvent):
    """A schema cannot be had or compiled: records that name it are invalid."""

    level: ClassVar[Level] = "error"
    sampled_by: ClassVar[str | None] = "registry"
    schema: str
    error: str
    registry: str
