"""The daemon's own internal events: one named event = one log line + one counter.

An internal event is a frozen dataclass named NounVerbed. `Telemetry.emit` writes it to stderr (JSON when
stderr is not a terminal) and counts it. Fields are coordinates, names and numbers, never what a record
contains.
"""

from __future__ import annotations

from streamwatch.telemetry.internal_event import SAMPLE_BURST, InternalEvent, Level, event_name
from streamwatch.telemetry.notifications import (
    AlarmRaised,
    NotificationDropped,
    NotificationFailed,
    NotificationSent,
    ReceiverGone,
    VerdictChanged,
)
from streamwatch.telemetry.process import (
    HttpClientRefused,
    HttpExposed,
    KernelCompiling,
    KernelReady,
    Started,
    StartedServing,
    Stopped,
    Stopping,
)
from streamwatch.telemetry.source import (
    BatchSkipped,
    CatchUpCompleted,
    ClassesDisjoint,
    DeadLettersDropped,
    FetchFailed,
    HostClockBehind,
    HostClockRight,
    KafkaLost,
    KafkaRecovered,
    NothingJoins,
    OffsetsNotCommitted,
    OffsetsNotRead,
    PartitionLeftBehind,
    PartitionsAdded,
    PositionLost,
    PositionUnverified,
    RecordRejected,
    ScoresAsClasses,
    StateMismatchDetected,
    TopicsAssigned,
)
from streamwatch.telemetry.state import (
    DiskFreed,
    DiskLow,
    EstimatorsChanged,
    ModelRetired,
    ModelStateDiscarded,
    StateLost,
    StateOpened,
)
from streamwatch.telemetry.writer import SAMPLE_PERIOD_SECONDS, Format, Telemetry

__all__ = [
    "SAMPLE_BURST",
    "SAMPLE_PERIOD_SECONDS",
    "AlarmRaised",
    "BatchSkipped",
    "CatchUpCompleted",
    "ClassesDisjoint",
    "DeadLettersDropped",
    "DiskFreed",
    "DiskLow",
    "EstimatorsChanged",
    "FetchFailed",
    "Format",
    "HostClockBehind",
    "HostClockRight",
    "HttpClientRefused",
    "HttpExposed",
    "InternalEvent",
    "KafkaLost",
    "KafkaRecovered",
    "KernelCompiling",
    "KernelReady",
    "Level",
    "ModelRetired",
    "ModelStateDiscarded",
    "NothingJoins",
    "NotificationDropped",
    "NotificationFailed",
    "NotificationSent",
    "OffsetsNotCommitted",
    "OffsetsNotRead",
    "PartitionLeftBehind",
    "PartitionsAdded",
    "PositionLost",
    "PositionUnverified",
    "ReceiverGone",
    "RecordRejected",
    "ScoresAsClasses",
    "Started",
    "StartedServing",
    "StateLost",
    "StateMismatchDetected",
    "StateOpened",
    "Stopped",
    "Stopping",
    "Telemetry",
    "TopicsAssigned",
    "VerdictChanged",
    "event_name",
]
