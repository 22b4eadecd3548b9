"""The daemon's own happenings: one named event = one log line + one counter.

A happening is a frozen dataclass named NounVerbed. `Telemetry.emit` writes it to stderr (JSON when stderr is
not a terminal) and counts it. Fields are coordinates, names and numbers, never what a record contains.
"""

from __future__ import annotations

from streamwatch.telemetry.alerts import AlarmRaised, AlertDead, AlertDelivered, AlertFailed, OutletGone
from streamwatch.telemetry.happening import Happening, Level, happening_name
from streamwatch.telemetry.process import (
    AccessLeftOpen,
    KernelCompiling,
    KernelReady,
    Started,
    StartedServing,
    Stopped,
    Stopping,
)
from streamwatch.telemetry.reading import (
    CatchUpFinished,
    FingerprintUnverifiable,
    KafkaLost,
    KafkaRecovered,
    OffsetsNotCommitted,
    OffsetsNotRead,
    PartitionsAdded,
    PositionLost,
    RecordRejected,
    StateForeign,
    TopicsAssigned,
)
from streamwatch.telemetry.state import (
    DiskFreed,
    DiskLow,
    EstimatorsChanged,
    ModelNotTakenOver,
    ModelRetired,
    StateLost,
    StateOpened,
)
from streamwatch.telemetry.writer import SAMPLE_BURST, SAMPLE_PERIOD_SECONDS, Format, Telemetry

__all__ = [
    "SAMPLE_BURST",
    "SAMPLE_PERIOD_SECONDS",
    "AccessLeftOpen",
    "AlarmRaised",
    "AlertDead",
    "AlertDelivered",
    "AlertFailed",
    "CatchUpFinished",
    "DiskFreed",
    "DiskLow",
    "EstimatorsChanged",
    "FingerprintUnverifiable",
    "Format",
    "Happening",
    "KafkaLost",
    "KafkaRecovered",
    "KernelCompiling",
    "KernelReady",
    "Level",
    "ModelNotTakenOver",
    "ModelRetired",
    "OffsetsNotCommitted",
    "OffsetsNotRead",
    "OutletGone",
    "PartitionsAdded",
    "PositionLost",
    "RecordRejected",
    "Started",
    "StartedServing",
    "StateForeign",
    "StateLost",
    "StateOpened",
    "Stopped",
    "Stopping",
    "Telemetry",
    "TopicsAssigned",
    "happening_name",
]
