"""Internal events of the daemon, by what they are about: reading, state, alarms, the process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamwatch.telemetry.writer import InternalEvent, Level

# Internal events of alarms: that they were raised, and how telling people of them went.


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
    """Report that a model is better or worse than no change, or no longer shown to be either.

    By cohorts of prediction time (`basis`), it may be the majority that it is worse than, better is than
    both, and the status is early, confirmed or retracted.
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
    """A receiver has taken a notification of an alarm."""

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
    """A notification was given up: the receiver refused it, or could not be reached for too long."""

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
class ReceiverGone(InternalEvent):
    """A receiver answered that it exists no more: nothing is sent to it until the next start."""

    level: ClassVar[Level] = "error"
    receiver: str
    host: str
    reason: str


# Internal events of the process: its start, its stop, what it serves.


@dataclass(frozen=True)
class Started(InternalEvent):
    """The process is up and its settings are good."""

    version: str


@dataclass(frozen=True)
class KernelCompiling(InternalEvent):
    """The estimators are loaded, or compiled at a first start: minutes, once; a cache serves later starts.

    Logged at the start, and every ten seconds while the compiler is at work.
    """

    seconds: float = 0.0
    """Since the start of it."""


@dataclass(frozen=True)
class KernelReady(InternalEvent):
    """The estimators are compiled."""

    seconds: float


@dataclass(frozen=True)
class StartedServing(InternalEvent):
    """The HTTP server answers."""

    address: str


@dataclass(frozen=True)
class HttpExposed(InternalEvent):
    """The HTTP server can be read by more clients than was perhaps meant; `weakness` says what to change."""

    level: ClassVar[Level] = "warning"
    address: str
    weakness: str


@dataclass(frozen=True)
class HttpClientRefused(InternalEvent):
    """An HTTP client was refused or cut off: too many, too slow, too large, or no HTTP."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "reason"
    burst: ClassVar[int] = 1
    reason: str


@dataclass(frozen=True)
class SeriesDropped(InternalEvent):
    """Other series are left out of `/metrics` than before: `dropped` in all, by part, of `models` models."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "max_series"
    burst: ClassVar[int] = 1
    dropped: int
    by_part: str
    models: int
    max_series: int


@dataclass(frozen=True)
class Stopping(InternalEvent):
    """A signal asked to stop: the batch at hand is finished first."""

    signal: str


@dataclass(frozen=True)
class Stopped(InternalEvent):
    """The daemon has stopped: everything read was evaluated and the last report is out."""

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
    """The Spark job wrote the results of a batch, in one transaction that took so long."""

    batch: int
    end_ms: int
    results: int
    bytes: int
    waiting_records: int
    seconds: float


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
    detail: str | None = None
    """Location that was looked at, and names of the fields that are there; None where that was not asked."""


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
class PublishingBegun(InternalEvent):
    """Outcomes and events are numbered anew: the state is another one than that which wrote them last."""

    level: ClassVar[Level] = "warning"
    life: str
    life_before: str
    outcomes_before: int


@dataclass(frozen=True)
class PublishingDelayed(InternalEvent):
    """Brokers do not take outcomes or events; they wait in the state and are written later."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "error"
    topics: str
    records: int
    error: str
    retry_in_seconds: float


@dataclass(frozen=True)
class PublishingResumed(InternalEvent):
    """Brokers take outcomes and events again."""

    topics: str


@dataclass(frozen=True)
class StateOlderThanTopics(InternalEvent):
    """The state is an older copy: outcomes that are in their topic are evaluated again, and not written."""

    level: ClassVar[Level] = "warning"
    commit: int
    published_commit: int


@dataclass(frozen=True)
class StandbyTookOver(InternalEvent):
    """A replica publishes and notifies from now on, after another one."""

    published_outcome: int
    waiting_records: int
    seconds: float


@dataclass(frozen=True)
class StandbySteppedDown(InternalEvent):
    """A replica publishes and notifies no more: another one does, or will."""

    waiting_records: int


@dataclass(frozen=True)
class StandbyDiverged(InternalEvent):
    """A replica has other numbers than the one that publishes: it will not take over."""

    level: ClassVar[Level] = "error"
    difference: str


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


# Internal events of state: the estimators it holds, the disk it is on, copies of it.


@dataclass(frozen=True)
class BackupMade(InternalEvent):
    """The state was copied while it was open, and the command after it, if any, has ended well."""

    directory: str
    seconds: float


@dataclass(frozen=True)
class BackupFailed(InternalEvent):
    """The state could not be copied, or the command after it failed."""

    level: ClassVar[Level] = "error"
    error: str


@dataclass(frozen=True)
class BackupSkipped(InternalEvent):
    """A backup was asked for, and none can be made."""

    level: ClassVar[Level] = "warning"
    reason: str


@dataclass(frozen=True)
class StateOpened(InternalEvent):
    """State was found and restored; what lay in the journal was evaluated once more."""

    commits: int
    models: int
    refolded_outcomes: int
    seconds: float


@dataclass(frozen=True)
class StateLost(InternalEvent):
    """State could not be written or read: memory is dropped and state opened again where it was durable."""

    level: ClassVar[Level] = "error"
    error: str
    retry_in_seconds: float


@dataclass(frozen=True)
class EstimatorsChanged(InternalEvent):
    """Settings (or the version) differ from those state was made under: some estimators begin at n = 0."""

    level: ClassVar[Level] = "warning"
    continued: tuple[str, ...]
    restarted: tuple[str, ...]
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class SettingChanged(InternalEvent):
    """A setting differs from that which state was made under: with what follows, in the words of `check`."""

    level: ClassVar[Level] = "warning"
    setting: str
    effect: str
    change: str


@dataclass(frozen=True)
class SettingsUnknown(InternalEvent):
    """The settings that state was made under cannot be read: what has changed is not known."""

    level: ClassVar[Level] = "warning"
    error: str


@dataclass(frozen=True)
class EstimatesBegun(InternalEvent):
    """Estimates of models begin anew, as what makes their outcomes has changed."""

    level: ClassVar[Level] = "warning"
    models: tuple[str, ...]


@dataclass(frozen=True)
class ModelStateDiscarded(InternalEvent):
    """A model's state does not fit the new settings: it begins anew."""

    level: ClassVar[Level] = "warning"
    model: str
    reason: str


@dataclass(frozen=True)
class ModelRetired(InternalEvent):
    """A model was idle for long; its series end and its row is free."""

    model: str


@dataclass(frozen=True)
class DiskLow(InternalEvent):
    """The disk of the state is nearly full: nothing is read until there is room."""

    level: ClassVar[Level] = "error"


@dataclass(frozen=True)
class DiskFreed(InternalEvent):
    """The disk has room again: reading goes on."""
