"""Internal events of the daemon about alarms, the process, reading, publishing, models and state."""

from __future__ import annotations

from typing import ClassVar

from streamwatch.telemetry.writer import InternalEvent, Level

# Internal events of alarms and notifications.


class AlarmRaised(InternalEvent, frozen=True):
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


class VerdictChanged(InternalEvent, frozen=True):
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


class NotificationSent(InternalEvent, frozen=True):
    """A receiver accepted a notification of an alarm."""

    sampled_by: ClassVar[str | None] = "receiver"
    receiver: str
    notification: str
    kind: str
    attempts: int


class NotificationFailed(InternalEvent, frozen=True):
    """A receiver did not take a notification, or a reminder of open incidents; it is tried again."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "receiver"
    receiver: str
    host: str
    notification: str
    reason: str
    attempts: int
    retry_in_seconds: float


class NotificationDropped(InternalEvent, frozen=True):
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


class NotificationsDropped(InternalEvent, frozen=True):
    """Notifications that a digest would only have counted were dropped, as their receiver is gone."""

    level: ClassVar[Level] = "error"
    receiver: str
    notifications: int
    reason: str


class ReceiverGone(InternalEvent, frozen=True):
    """A receiver answered that it no longer exists: nothing is sent to it until the next start."""

    level: ClassVar[Level] = "error"
    receiver: str
    host: str
    reason: str


# Internal events of the process and its HTTP server.


class Started(InternalEvent, frozen=True):
    """The process has started, with valid settings."""

    version: str


class KernelCompiling(InternalEvent, frozen=True):
    """The estimators are being loaded from the cache, or compiled at a first start.

    Compiling takes about half a minute on two cores; longer with more detectors, or on one core. Logged at
    the start, and every ten seconds until `KernelReady`.
    """

    seconds: float = 0.0
    """Time since the beginning of it."""


class KernelReady(InternalEvent, frozen=True):
    """The estimators are compiled or loaded."""

    seconds: float


class StartedServing(InternalEvent, frozen=True):
    """The HTTP server answers."""

    address: str


class HttpExposed(InternalEvent, frozen=True):
    """More clients than intended may read from the HTTP server; `weakness` says what to change."""

    level: ClassVar[Level] = "warning"
    address: str
    weakness: str


class HttpClientRefused(InternalEvent, frozen=True):
    """An HTTP client was refused or disconnected: too many, too slow, too large, or not HTTP."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "reason"
    burst: ClassVar[int] = 1
    reason: str


class SeriesDropped(InternalEvent, frozen=True):
    """The series left out of `/metrics` have changed: now `dropped` series of `models` models."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "max_series"
    burst: ClassVar[int] = 1
    dropped: int
    by_part: str
    models: int
    max_series: int


class Stopping(InternalEvent, frozen=True):
    """A stop was requested, by a signal or the program; what has been evaluated is committed first."""

    signal: str


class Stopped(InternalEvent, frozen=True):
    """The daemon has stopped; what it evaluated is committed."""

    records: int
    seconds: float


# Internal events of reading: brokers, partitions, offsets, records.


class TopicsAssigned(InternalEvent, frozen=True):
    """Every partition of the configured topics is being read."""

    topics: tuple[str, ...]
    partitions: int


class BatchWritten(InternalEvent, frozen=True):
    """The Spark job wrote the results of a batch in one transaction."""

    batch: int
    end_ms: int
    results: int
    bytes: int
    waiting_records: int
    seconds: float


class KafkaLost(InternalEvent, frozen=True):
    """The brokers cannot be reached or refuse requests; reading resumes by itself."""

    level: ClassVar[Level] = "warning"
    error: str
    retry_in_seconds: float = 0.0


class KafkaRecovered(InternalEvent, frozen=True):
    """The brokers answer again; reading resumed at the same positions."""

    after_seconds: float


class OffsetsNotCommitted(InternalEvent, frozen=True):
    """The advisory offsets (for lag tools only) could not be committed in time."""

    level: ClassVar[Level] = "debug"
    error: str


class PositionLost(InternalEvent, frozen=True):
    """A log was cut or replaced, or its partition is gone: reading continues elsewhere, or without it.

    `resumed` is -1 for a partition that is gone.
    """

    level: ClassVar[Level] = "error"
    topic: str
    partition: int
    wanted: int
    resumed: int
    cause: str


class BatchSkipped(InternalEvent, frozen=True):
    """A batch of records is damaged, or larger than is read: reading continues after it."""

    level: ClassVar[Level] = "error"
    topic: str
    partition: int
    offset: int
    records: int
    cause: str
    reason: str


class FetchFailed(InternalEvent, frozen=True):
    """Fetching a partition fails repeatedly; it is retried, and the other partitions are read meanwhile."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "error"
    topic: str
    partition: int
    offset: int
    error: str
    retry_in_seconds: float = 0.0


class PositionUnverified(InternalEvent, frozen=True):
    """The last evaluated record is gone (retention, compaction), so the log's identity is unverified."""

    topic: str
    partition: int
    offset: int


class PartitionLeftBehind(InternalEvent, frozen=True):
    """Other partitions no longer wait for one that was at its end; its later records are out of order."""

    level: ClassVar[Level] = "warning"
    topic: str
    partition: int


class NameTableFull(InternalEvent, frozen=True):
    """The table of names of a kind (models, classes, segments) is full; unused names are removed from it.

    Decoding a new name takes several times as long as decoding a known one.
    """

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "kind"
    kind: str


class HostClockBehind(InternalEvent, frozen=True):
    """Most records have times in the future: the host's clock is behind, and is not used."""

    level: ClassVar[Level] = "warning"


class HostClockRight(InternalEvent, frozen=True):
    """Records no longer have times in the future: the host's clock is used again."""


class StateMismatchDetected(InternalEvent, frozen=True):
    """The consumer group was last used by another state: the open one is new, older or another daemon's.

    Or another daemon, or a consumer that subscribes, uses the group at the same time (`group_shared`).
    """

    level: ClassVar[Level] = "error"
    cause: str
    what: str


class OffsetsNotRead(InternalEvent, frozen=True):
    """The group's offsets could not be read, so it is unknown whether this state used the group last."""

    level: ClassVar[Level] = "warning"
    error: str


class PartitionsAdded(InternalEvent, frozen=True):
    """A topic grew; its new partitions are read from their beginning."""

    topic: str
    partitions: int


class RecordRejected(InternalEvent, frozen=True):
    """A record could not be used; it is counted as invalid and left out."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "reason"
    topic: str
    partition: int
    offset: int
    reason: str
    detail: str | None = None
    """Location that was read, and names of existing fields; given for the first such record of a batch."""


class DeadLettersDelayed(InternalEvent, frozen=True):
    """Brokers do not accept dead letters; they are sent again, and the next commit waits for them."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "error"
    topic: str
    dead_letters: int
    error: str
    given_up_in_seconds: float


class DeadLettersDropped(InternalEvent, frozen=True):
    """Invalid records could not be written to the dead-letter topic, and were dropped."""

    level: ClassVar[Level] = "error"
    sampled_by: ClassVar[str | None] = "reason"
    topic: str
    dead_letters: int
    reason: str
    error: str


class PublishingBegun(InternalEvent, frozen=True):
    """Outcomes and events are numbered from 1 again, as those in the topics are of another state."""

    level: ClassVar[Level] = "warning"
    life: str
    life_before: str
    outcomes_before: int


class PublishingDelayed(InternalEvent, frozen=True):
    """Brokers do not accept outcomes or events; they wait in the state and are written later."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "error"
    topics: str
    records: int
    error: str
    retry_in_seconds: float


class PublishingResumed(InternalEvent, frozen=True):
    """Brokers accept outcomes and events again."""

    topics: str


class StateOlderThanTopics(InternalEvent, frozen=True):
    """The state is an older copy: outcomes that are in the topic are evaluated again but not written."""

    level: ClassVar[Level] = "warning"
    commit: int
    published_commit: int


class StandbyTookOver(InternalEvent, frozen=True):
    """A replica took over from another: it publishes and notifies from now on."""

    published_outcome: int
    waiting_records: int
    seconds: float


class StandbyGaveWay(InternalEvent, frozen=True):
    """A replica that cannot evaluate left the election for a moment, so that another one takes over."""

    level: ClassVar[Level] = "warning"
    reason: str


class StandbySteppedDown(InternalEvent, frozen=True):
    """A replica no longer publishes and notifies, as it lost the election."""

    waiting_records: int


class StandbyDiverged(InternalEvent, frozen=True):
    """A replica has other results than the one that publishes: it will not take over."""

    level: ClassVar[Level] = "error"
    difference: str


class ClassesDisjoint(InternalEvent, frozen=True):
    """A model's predicted and true classes are disjoint: one side writes them differently."""

    level: ClassVar[Level] = "warning"
    model: str
    predicted_class: tuple[str, ...]
    true: tuple[str, ...]


class ScoresAsClasses(InternalEvent, frozen=True):
    """A model's predicted classes are scores: each number counts as a class, and none is right."""

    level: ClassVar[Level] = "warning"
    model: str
    predicted_class: tuple[str, ...]
    write: str = "prediction: {score: value.field, threshold: 0.5, above: fraud, below: legit}"
    """Example of a mapping that makes classes of scores."""


class NothingJoins(InternalEvent, frozen=True):
    """No prediction of a model has matched a label: ids differ, or labels are missing or late."""

    level: ClassVar[Level] = "warning"
    model: str
    predictions: int


class CatchUpCompleted(InternalEvent, frozen=True):
    """Every partition was read up to its end for the first time."""

    records: int
    seconds: float


class SchemaRegistryLost(InternalEvent, frozen=True):
    """The schema registry cannot be reached: records that need a schema wait."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "registry"
    error: str
    registry: str
    retry_in_seconds: float = 0.0


class SchemaAwaited(InternalEvent, frozen=True):
    """Records wait for a schema whose fetching or compiling takes long."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "registry"
    schema: str
    registry: str


class SchemaRegistryRecovered(InternalEvent, frozen=True):
    """The schema registry answers again; reading continues."""

    after_seconds: float


class SchemaRejected(InternalEvent, frozen=True):
    """A schema could not be understood or compiled: records that name it are invalid."""

    level: ClassVar[Level] = "error"
    sampled_by: ClassVar[str | None] = "registry"
    schema: str
    error: str
    registry: str


class SchemaWithheld(InternalEvent, frozen=True):
    """The registry has an error for one schema and returns others: records that name this one wait."""

    level: ClassVar[Level] = "error"
    sampled_by: ClassVar[str | None] = "registry"
    schema: str
    error: str
    registry: str


# Internal events of the state, its disk and its backups.


class BackupMade(InternalEvent, frozen=True):
    """A backup was made, and the command after it, if any, succeeded."""

    directory: str
    seconds: float


class BackupFailed(InternalEvent, frozen=True):
    """The state could not be copied, or the command after it failed."""

    level: ClassVar[Level] = "error"
    error: str


class BackupSkipped(InternalEvent, frozen=True):
    """A backup was requested, but none can be made."""

    level: ClassVar[Level] = "warning"
    reason: str


class StateOpened(InternalEvent, frozen=True):
    """A state was found and restored; outcomes of its journal were evaluated again."""

    commits: int
    models: int
    refolded_outcomes: int
    seconds: float


class StateLost(InternalEvent, frozen=True):
    """The state could not be written or read: it is opened again as of its last durable commit."""

    level: ClassVar[Level] = "error"
    error: str
    retry_in_seconds: float


class EstimatorsChanged(InternalEvent, frozen=True):
    """Settings, or the version, differ from those of the state: some estimators begin with no outcomes."""

    level: ClassVar[Level] = "warning"
    continued: tuple[str, ...]
    restarted: tuple[str, ...]
    dropped: tuple[str, ...]


class SettingChanged(InternalEvent, frozen=True):
    """A setting differs from that of the state; `effect` and `change` are as in `streamwatch check`."""

    level: ClassVar[Level] = "warning"
    setting: str
    effect: str
    change: str


class SettingsUnknown(InternalEvent, frozen=True):
    """The settings of the state cannot be read: changes of settings are not known."""

    level: ClassVar[Level] = "warning"
    error: str


class EstimatesBegun(InternalEvent, frozen=True):
    """Estimates of models begin anew, as the settings that make their outcomes have changed."""

    level: ClassVar[Level] = "warning"
    models: tuple[str, ...]


class ModelStateDiscarded(InternalEvent, frozen=True):
    """A model's state does not fit the new settings: it begins anew."""

    level: ClassVar[Level] = "warning"
    model: str
    reason: str


class DiskLow(InternalEvent, frozen=True):
    """The disk of the state is nearly full: reading pauses until space is free."""

    level: ClassVar[Level] = "error"


class DiskFreed(InternalEvent, frozen=True):
    """The disk has free space again: reading continues."""
