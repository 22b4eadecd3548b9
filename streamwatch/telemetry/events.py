"""Internal events of the daemon about alarms, the process, reading, publishing, models and state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamwatch.telemetry.writer import InternalEvent, Level

# Internal events of alarms and notifications.


@dataclass(frozen=True)
class AlarmRaised(InternalEvent):
    """A detector of a model declared a drift."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "model"
    model: str
    detector: str
    ordinal: int
    outcome: int
    event_ms: int
    before: float
    after: float


@dataclass(frozen=True)
class VerdictChanged(InternalEvent):
    """A model is now better or worse than no change, or no longer shown to be either.

    With the `basis` cohorts, `better` means better than no change and the majority, `worse` is about
    `opponent`, one of both, and `status` is early, confirmed or retracted.
    """

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "model"
    model: str
    opponent: str
    verdict: str
    since_outcome: int
    since_ms: int
    outcome: int
    event_ms: int
    basis: str = "labels"
    status: str = ""


@dataclass(frozen=True)
class NotificationSent(InternalEvent):
    """A receiver accepted a notification of an alarm."""

    sampled_by: ClassVar[str | None] = "receiver"
    receiver: str
    notification: str
    kind: str
    attempts: int


@dataclass(frozen=True)
class NotificationFailed(InternalEvent):
    """A receiver did not take a notification, or a reminder of open incidents; it is tried again."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "receiver"
    receiver: str
    host: str
    notification: str
    reason: str
    attempts: int
    retry_in_seconds: float


@dataclass(frozen=True)
class NotificationDropped(InternalEvent):
    """A notification was dropped: the receiver refused it, could not be reached for too long or is gone.

    So are the oldest ones if too many wait for a receiver, and those of a receiver that settings lack now.
    """

    level: ClassVar[Level] = "error"
    sampled_by: ClassVar[str | None] = "receiver"
    receiver: str
    notification: str
    kind: str
    incident: str
    model: str
    detectors: str
    reason: str
    attempts: int


@dataclass(frozen=True)
class NotificationsDropped(InternalEvent):
    """Notifications that a digest would only have counted were dropped, as their receiver is gone."""

    level: ClassVar[Level] = "error"
    receiver: str
    notifications: int
    reason: str


@dataclass(frozen=True)
class ReceiverGone(InternalEvent):
    """A receiver answered that it no longer exists: nothing is sent to it until the next start."""

    level: ClassVar[Level] = "error"
    receiver: str
    host: str
    reason: str


# Internal events of the process and its HTTP server.


@dataclass(frozen=True)
class Started(InternalEvent):
    """The process has started, with valid settings."""

    version: str


@dataclass(frozen=True)
class KernelCompiling(InternalEvent):
    """The estimators are being loaded from the cache, or compiled at a first start.

    Compiling takes about half a minute on two cores; longer with more detectors, or on one core. Logged at
    the start, and every ten seconds until `KernelReady`.
    """

    seconds: float = 0.0
    """Time since the beginning of it."""


@dataclass(frozen=True)
class KernelReady(InternalEvent):
    """The estimators are compiled or loaded."""

    seconds: float


@dataclass(frozen=True)
class StartedServing(InternalEvent):
    """The HTTP server answers."""

    address: str


@dataclass(frozen=True)
class HttpExposed(InternalEvent):
    """More clients than intended may read from the HTTP server; `weakness` says what to change."""

    level: ClassVar[Level] = "warning"
    address: str
    weakness: str


@dataclass(frozen=True)
class HttpClientRefused(InternalEvent):
    """An HTTP client was refused or disconnected: too many, too slow, too large, or not HTTP."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "reason"
    burst: ClassVar[int] = 1
    reason: str


@dataclass(frozen=True)
class SeriesDropped(InternalEvent):
    """The series left out of `/metrics` have changed: now `dropped` series of `models` models."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "max_series"
    burst: ClassVar[int] = 1
    dropped: int
    by_part: str
    models: int
    max_series: int


@dataclass(frozen=True)
class Stopping(InternalEvent):
    """A stop was requested, by a signal or the program; what has been evaluated is committed first."""

    signal: str


@dataclass(frozen=True)
class Stopped(InternalEvent):
    """The daemon has stopped; what it evaluated is committed."""

    records: int
    seconds: float


# Internal events of reading: brokers, partitions, offsets, records.


@dataclass(frozen=True)
class TopicsAssigned(InternalEvent):
    """Every partition of the configured topics is being read."""

    topics: tuple[str, ...]
    partitions: int


@dataclass(frozen=True)
class BatchWritten(InternalEvent):
    """The Spark job wrote the results of a batch in one transaction."""

    batch: int
    end_ms: int
    results: int
    bytes: int
    waiting_records: int
    seconds: float


@dataclass(frozen=True)
class KafkaLost(InternalEvent):
    """The brokers cannot be reached or refuse requests; reading resumes by itself."""

    level: ClassVar[Level] = "warning"
    error: str
    retry_in_seconds: float = 0.0


@dataclass(frozen=True)
class KafkaRecovered(InternalEvent):
    """The brokers answer again; reading resumed at the same positions."""

    after_seconds: float


@dataclass(frozen=True)
class OffsetsNotCommitted(InternalEvent):
    """The advisory offsets (for lag tools only) could not be committed in time."""

    level: ClassVar[Level] = "debug"
    error: str


@dataclass(frozen=True)
class PositionLost(InternalEvent):
    """A log was cut or replaced, or its partition is gone: reading continues elsewhere, or without it.

    `resumed` is -1 for a partition that is gone.
    """

    level: ClassVar[Level] = "error"
    topic: str
    partition: int
    wanted: int
    resumed: int
    cause: str


@dataclass(frozen=True)
class BatchSkipped(InternalEvent):
    """A batch of records is damaged, or larger than is read: reading continues after it."""

    level: ClassVar[Level] = "error"
    topic: str
    partition: int
    offset: int
    records: int
    cause: str
    reason: str


@dataclass(frozen=True)
class FetchFailed(InternalEvent):
    """Fetching a partition fails repeatedly; it is retried, and the other partitions are read meanwhile."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "error"
    topic: str
    partition: int
    offset: int
    error: str
    retry_in_seconds: float = 0.0


@dataclass(frozen=True)
class PositionUnverified(InternalEvent):
    """The last evaluated record is gone (retention, compaction), so the log's identity is unverified."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class PartitionLeftBehind(InternalEvent):
    """Other partitions no longer wait for one that was at its end; its later records are out of order."""

    level: ClassVar[Level] = "warning"
    topic: str
    partition: int


@dataclass(frozen=True)
class NameTableFull(InternalEvent):
    """The table of names of a kind (models, classes, segments) is full; unused names are removed from it.

    Decoding a new name takes several times as long as decoding a known one.
    """

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "kind"
    kind: str


@dataclass(frozen=True)
class HostClockBehind(InternalEvent):
    """Most records have times in the future: the host's clock is behind, and is not used."""

    level: ClassVar[Level] = "warning"


@dataclass(frozen=True)
class HostClockRight(InternalEvent):
    """Records no longer have times in the future: the host's clock is used again."""


@dataclass(frozen=True)
class StateMismatchDetected(InternalEvent):
    """The consumer group was last used by another state: the open one is new, older or another daemon's.

    Or another daemon, or a consumer that subscribes, uses the group at the same time (`group_shared`).
    """

    level: ClassVar[Level] = "error"
    cause: str
    what: str


@dataclass(frozen=True)
class OffsetsNotRead(InternalEvent):
    """The group's offsets could not be read, so it is unknown whether this state used the group last."""

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
    detail: str | None = None
    """Location that was read, and names of existing fields; given for the first such record of a batch."""


@dataclass(frozen=True)
class DeadLettersDelayed(InternalEvent):
    """Brokers do not accept dead letters; they are sent again, and the next commit waits for them."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "error"
    topic: str
    dead_letters: int
    error: str
    given_up_in_seconds: float


@dataclass(frozen=True)
class DeadLettersDropped(InternalEvent):
    """Invalid records could not be written to the dead-letter topic, and were dropped."""

    level: ClassVar[Level] = "error"
    sampled_by: ClassVar[str | None] = "reason"
    topic: str
    dead_letters: int
    reason: str
    error: str


@dataclass(frozen=True)
class PublishingBegun(InternalEvent):
    """Outcomes and events are numbered from 1 again, as those in the topics are of another state."""

    level: ClassVar[Level] = "warning"
    life: str
    life_before: str
    outcomes_before: int


@dataclass(frozen=True)
class PublishingDelayed(InternalEvent):
    """Brokers do not accept outcomes or events; they wait in the state and are written later."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "error"
    topics: str
    records: int
    error: str
    retry_in_seconds: float


@dataclass(frozen=True)
class PublishingResumed(InternalEvent):
    """Brokers accept outcomes and events again."""

    topics: str


@dataclass(frozen=True)
class StateOlderThanTopics(InternalEvent):
    """The state is an older copy: outcomes that are in the topic are evaluated again but not written."""

    level: ClassVar[Level] = "warning"
    commit: int
    published_commit: int


@dataclass(frozen=True)
class StandbyTookOver(InternalEvent):
    """A replica took over from another: it publishes and notifies from now on."""

    published_outcome: int
    waiting_records: int
    seconds: float


@dataclass(frozen=True)
class StandbyGaveWay(InternalEvent):
    """A replica that cannot evaluate left the election for a moment, so that another one takes over."""

    level: ClassVar[Level] = "warning"
    reason: str


@dataclass(frozen=True)
class StandbySteppedDown(InternalEvent):
    """A replica no longer publishes and notifies, as it lost the election."""

    waiting_records: int


@dataclass(frozen=True)
class StandbyDiverged(InternalEvent):
    """A replica has other results than the one that publishes: it will not take over."""

    level: ClassVar[Level] = "error"
    difference: str


@dataclass(frozen=True)
class ClassesDisjoint(InternalEvent):
    """A model's predicted and true classes are disjoint: one side writes them differently."""

    level: ClassVar[Level] = "warning"
    model: str
    predicted_class: tuple[str, ...]
    true: tuple[str, ...]


@dataclass(frozen=True)
class ScoresAsClasses(InternalEvent):
    """A model's predicted classes are scores: each number counts as a class, and none is right."""

    level: ClassVar[Level] = "warning"
    model: str
    predicted_class: tuple[str, ...]
    write: str = "prediction: {score: value.field, threshold: 0.5, above: fraud, below: legit}"
    """Example of a mapping that makes classes of scores."""


@dataclass(frozen=True)
class NothingJoins(InternalEvent):
    """No prediction of a model has matched a label: ids differ, or labels are missing or late."""

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
    """The schema registry cannot be reached: records that need a schema wait."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "registry"
    error: str
    registry: str
    retry_in_seconds: float = 0.0


@dataclass(frozen=True)
class SchemaAwaited(InternalEvent):
    """Records wait for a schema whose fetching or compiling takes long."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "registry"
    schema: str
    registry: str


@dataclass(frozen=True)
class SchemaRegistryRecovered(InternalEvent):
    """The schema registry answers again; reading continues."""

    after_seconds: float


@dataclass(frozen=True)
class SchemaRejected(InternalEvent):
    """A schema could not be understood or compiled: records that name it are invalid."""

    level: ClassVar[Level] = "error"
    sampled_by: ClassVar[str | None] = "registry"
    schema: str
    error: str
    registry: str


@dataclass(frozen=True)
class SchemaWithheld(InternalEvent):
    """The registry has an error for one schema and returns others: records that name this one wait."""

    level: ClassVar[Level] = "error"
    sampled_by: ClassVar[str | None] = "registry"
    schema: str
    error: str
    registry: str


# Internal events of the state, its disk and its backups.


@dataclass(frozen=True)
class BackupMade(InternalEvent):
    """A backup was made, and the command after it, if any, succeeded."""

    directory: str
    seconds: float


@dataclass(frozen=True)
class BackupFailed(InternalEvent):
    """The state could not be copied, or the command after it failed."""

    level: ClassVar[Level] = "error"
    error: str


@dataclass(frozen=True)
class BackupSkipped(InternalEvent):
    """A backup was requested, but none can be made."""

    level: ClassVar[Level] = "warning"
    reason: str


@dataclass(frozen=True)
class StateOpened(InternalEvent):
    """A state was found and restored; outcomes of its journal were evaluated again."""

    commits: int
    models: int
    refolded_outcomes: int
    seconds: float


@dataclass(frozen=True)
class StateLost(InternalEvent):
    """The state could not be written or read: it is opened again as of its last durable commit."""

    level: ClassVar[Level] = "error"
    error: str
    retry_in_seconds: float


@dataclass(frozen=True)
class EstimatorsChanged(InternalEvent):
    """Settings, or the version, differ from those of the state: some estimators begin with no outcomes."""

    level: ClassVar[Level] = "warning"
    continued: tuple[str, ...]
    restarted: tuple[str, ...]
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class SettingChanged(InternalEvent):
    """A setting differs from that of the state; `effect` and `change` are as in `streamwatch check`."""

    level: ClassVar[Level] = "warning"
    setting: str
    effect: str
    change: str


@dataclass(frozen=True)
class SettingsUnknown(InternalEvent):
    """The settings of the state cannot be read: changes of settings are not known."""

    level: ClassVar[Level] = "warning"
    error: str


@dataclass(frozen=True)
class EstimatesBegun(InternalEvent):
    """Estimates of models begin anew, as the settings that make their outcomes have changed."""

    level: ClassVar[Level] = "warning"
    models: tuple[str, ...]


@dataclass(frozen=True)
class ModelStateDiscarded(InternalEvent):
    """A model's state does not fit the new settings: it begins anew."""

    level: ClassVar[Level] = "warning"
    model: str
    reason: str


@dataclass(frozen=True)
class DiskLow(InternalEvent):
    """The disk of the state is nearly full: reading pauses until space is free."""

    level: ClassVar[Level] = "error"


@dataclass(frozen=True)
class DiskFreed(InternalEvent):
    """The disk has free space again: reading continues."""
