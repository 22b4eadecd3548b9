"""The daemon's own happenings: one named event = one log line + one counter.

A happening is a frozen dataclass named NounVerbed. `Telemetry.emit` writes it to stderr (JSON when stderr is
not a terminal) and counts it. Fields are coordinates, names and numbers, never what a record contains.

Longer than 250 lines because it lists every happening there is, in one place.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TextIO, TypeAlias

import structlog

from streamwatch.core.series import Family

Level: TypeAlias = Literal["debug", "info", "warning", "error"]
Format: TypeAlias = Literal["auto", "json", "pretty"]

_LEVELS: dict[Level, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
SAMPLE_BURST = 5
SAMPLE_PERIOD_SECONDS = 60.0


@dataclass(frozen=True)
class Happening:
    """What every happening states about itself: its severity, and which field limits its log lines."""

    level: ClassVar[Level] = "info"
    sampled_by: ClassVar[str | None] = None
    """Each value of this field gets `SAMPLE_BURST` lines per minute; the rest is counted and summed up."""


@dataclass(frozen=True)
class Started(Happening):
    """The process is up and its settings are good."""

    version: str


@dataclass(frozen=True)
class KernelCompiling(Happening):
    """The estimators are being compiled: seconds at the first start, a cache serves the later ones."""


@dataclass(frozen=True)
class KernelReady(Happening):
    """The estimators are compiled."""

    seconds: float


@dataclass(frozen=True)
class StartedServing(Happening):
    """The HTTP server answers."""

    address: str


@dataclass(frozen=True)
class AccessLeftOpen(Happening):
    """The HTTP server can be read by more than was perhaps meant; `weakness` says what to change."""

    level: ClassVar[Level] = "warning"
    address: str
    weakness: str


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


@dataclass(frozen=True)
class AlarmRaised(Happening):
    """A detector of a model declared a drift."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "model"
    model: str
    detector: str
    ordinal: int
    outcome: int
    at_ms: int
    before: float
    after: float


@dataclass(frozen=True)
class StateOpened(Happening):
    """State was found and restored; what lay in the journal was evaluated once more."""

    commits: int
    models: int
    refolded_outcomes: int
    seconds: float


@dataclass(frozen=True)
class StateLost(Happening):
    """State could not be written or read: memory is dropped and state opened again where it was durable."""

    level: ClassVar[Level] = "error"
    error: str
    retry_in_seconds: float


@dataclass(frozen=True)
class EstimatorsChanged(Happening):
    """Settings (or the version) differ from those state was made under: some estimators begin at n = 0."""

    level: ClassVar[Level] = "warning"
    continued: tuple[str, ...]
    restarted: tuple[str, ...]
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class ModelNotTakenOver(Happening):
    """A model's state does not fit the new settings: it begins anew."""

    level: ClassVar[Level] = "warning"
    model: str
    reason: str


@dataclass(frozen=True)
class DiskLow(Happening):
    """The disk of the state is nearly full: nothing is read until there is room."""

    level: ClassVar[Level] = "error"


@dataclass(frozen=True)
class DiskFreed(Happening):
    """There is room on the disk again: reading goes on."""


@dataclass(frozen=True)
class AlertDelivered(Happening):
    """An outlet has taken a notice of an alarm."""

    sampled_by: ClassVar[str | None] = "outlet"
    outlet: str
    notice: str
    kind: str
    attempts: int


@dataclass(frozen=True)
class AlertFailed(Happening):
    """An outlet did not take a notice; it is tried again."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "outlet"
    outlet: str
    host: str
    notice: str
    reason: str
    attempts: int
    retry_in_seconds: float


@dataclass(frozen=True)
class AlertDead(Happening):
    """An outlet will never be told of this: it refused, or could not be reached for too long."""

    level: ClassVar[Level] = "error"
    sampled_by: ClassVar[str | None] = "outlet"
    outlet: str
    notice: str
    kind: str
    model: str
    detector: str
    reason: str
    attempts: int


@dataclass(frozen=True)
class OutletGone(Happening):
    """An outlet answered that it exists no more: nothing is sent to it until the next start."""

    level: ClassVar[Level] = "error"
    outlet: str
    host: str
    reason: str


@dataclass(frozen=True)
class ModelRetired(Happening):
    """A model was idle for long; its series end and its place is free."""

    model: str


@dataclass(frozen=True)
class Stopping(Happening):
    """A signal asked to stop: the batch at hand is finished first."""

    signal: str


@dataclass(frozen=True)
class Stopped(Happening):
    """Everything read was evaluated and the last report is out."""

    records: int
    seconds: float


class Telemetry:
    """Writes and counts happenings.

    Parameters
    ----------
    level
        The least severe level that is written. Everything is counted.
    form
        `auto` writes JSON unless `stream` is a terminal.
    stream
        Where lines go; stderr by default.
    clock
        Monotonic seconds, for the rate limit of sampled happenings.
    """

    def __init__(
        self,
        level: Level = "info",
        form: Format = "auto",
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        out = sys.stderr if stream is None else stream
        pretty = out.isatty() if form == "auto" else form == "pretty"
        self._log: Any = structlog.wrap_logger(
            structlog.WriteLogger(out),
            processors=_processors(pretty=pretty, colors=out.isatty()),
            wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        )
        self._clock = clock
        self._counts: Counter[str] = Counter()
        self._windows: dict[tuple[str, Hashable], _Window] = {}

    def emit(self, happening: Happening) -> None:
        """Count a happening and write its line, unless its kind had its share of lines in this minute."""
        kind = type(happening)
        name = happening_name(kind)
        self._counts[name] += 1
        values: dict[str, object] = {f.name: getattr(happening, f.name) for f in fields(happening)}
        if kind.sampled_by is not None:
            suppressed = self._admit(name, str(values[kind.sampled_by]))
            if suppressed is None:
                return
            if suppressed:
                values["suppressed"] = suppressed
        getattr(self._log, kind.level)(name, **values)

    def count(self, kind: type[Happening]) -> int:
        """How often this kind happened since the start."""
        return self._counts[happening_name(kind)]

    def families(self) -> Sequence[Family]:
        """The counters, one series for each kind that happened."""
        samples = [((name,), float(n)) for name, n in sorted(self._counts.items())]
        help_text = "Happenings of the daemon itself; each is also a line in its log (noisy ones sampled)."
        return [Family("happenings_total", "counter", help_text, ("happening",), samples)]

    def _admit(self, name: str, key: str) -> int | None:
        """Lines held back since the last one written, or None if this one is held back too."""
        now = self._clock()
        window = self._windows.get((name, key))
        if window is None:
            if len(self._windows) >= 1_000:  # keys are names from outside: the table of limits is bounded
                self._windows.clear()
            window = self._windows[name, key] = _Window(now)
        if now - window.start >= SAMPLE_PERIOD_SECONDS:
            window.start, window.written = now, 0
        if window.written >= SAMPLE_BURST:
            window.suppressed += 1
            return None
        window.written += 1
        suppressed, window.suppressed = window.suppressed, 0
        return suppressed


def happening_name(kind: type[Happening]) -> str:
    """`RecordRejected` is written and counted as `record_rejected`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


@dataclass(slots=True)
class _Window:
    start: float
    written: int = 0
    suppressed: int = 0


def _processors(*, pretty: bool, colors: bool) -> list[Any]:
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    if pretty:
        stamp = structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False)
        return [structlog.processors.add_log_level, stamp, structlog.dev.ConsoleRenderer(colors=colors)]
    return [structlog.processors.add_log_level, stamp, structlog.processors.JSONRenderer()]
