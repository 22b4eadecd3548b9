"""Writer of internal events: one log line and one counter each; frequent ones are sampled in the log."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar, Literal, TextIO, TypeAlias

import msgspec
import structlog

from streamwatch.core.metrics import family
from streamwatch.core.metrics.series import Family

Level: TypeAlias = Literal["debug", "info", "warning", "error"]

SAMPLE_BURST = 5


class InternalEvent(msgspec.Struct, frozen=True):
    """Base class of internal events; a field is left out of the line while it is None."""

    level: ClassVar[Level] = "info"
    """Severity of the log line."""
    sampled_by: ClassVar[str | None] = None
    """Name of a field, each value of which gets at most `burst` lines a minute; the next line has the number
    of those left out. None: no limit."""
    burst: ClassVar[int] = SAMPLE_BURST
    """Most lines a minute for each value of `sampled_by`."""


def event_name(kind: type[InternalEvent]) -> str:
    """Return the name of a kind of event in log and metrics: `RecordRejected` → `record_rejected`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


Format: TypeAlias = Literal["auto", "json", "pretty"]

_LEVELS: dict[Level, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
SAMPLE_PERIOD_SECONDS = 60.0


class Telemetry:
    """Writes and counts internal events.

    Parameters
    ----------
    level
        Least severe level that is written; all events are counted.
    form
        `json`, `pretty`, or `auto`: JSON unless `stream` is a terminal.
    stream
        Stream to write to; None: stderr.
    clock
        Monotonic seconds, for the rate limit of sampled internal events.
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
        self.is_json = not pretty
        """Whether lines are JSON objects."""
        self._log: Any = structlog.wrap_logger(
            structlog.WriteLogger(out),
            processors=_processors(pretty=pretty, colors=out.isatty()),
            wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        )
        self._least = _LEVELS[level]
        self._unwritten = 0
        """Lines that could not be written since the last one that was."""
        self._clock = clock
        self._counts: Counter[str] = Counter()
        self._windows: dict[tuple[str, Hashable], _Window] = {}
        self._lock = Lock()

    def emit(self, event: InternalEvent) -> None:
        """Count an internal event, and write its line unless `burst` is reached; thread-safe.

        A line that cannot be written, because the disk is full or nobody reads the pipe, is left out; the
        next one has the number of those as `unwritten`.
        """
        with self._lock:
            self._emit(event)

    def _emit(self, event: InternalEvent) -> None:
        kind = type(event)
        name = event_name(kind)
        self._counts[name] += 1
        values = {key: value for key, value in msgspec.structs.asdict(event).items() if value is not None}
        if kind.sampled_by is not None:
            suppressed = self._admit(name, str(values[kind.sampled_by]), kind.burst)
            if suppressed is None:
                return
            if suppressed:
                values["suppressed"] = suppressed
        if _LEVELS[kind.level] < self._least:
            return
        if self._unwritten:
            values["unwritten"] = self._unwritten
        try:
            getattr(self._log, kind.level)(name, **values)
        except OSError:
            self._unwritten += 1
        else:
            self._unwritten = 0

    def count(self, kind: type[InternalEvent]) -> int:
        """Return the number of events of this kind since the start."""
        return self._counts[event_name(kind)]

    def families(self) -> Sequence[Family]:
        """Return the counters, a series for each kind of event that was emitted."""
        samples = [((name,), float(n)) for name, n in sorted(self._counts.items())]
        return [family("internal_events_total", samples)]

    def _admit(self, name: str, key: str, burst: int) -> int | None:
        """Return the number of lines left out since the last one written; None to leave out this one."""
        now = self._clock()
        window = self._windows.get((name, key))
        if window is None:
            if len(self._windows) >= 1_000:  # keys may come from records, so their number is bounded
                self._windows.clear()
            window = self._windows[name, key] = _Window(now)
        if now - window.start >= SAMPLE_PERIOD_SECONDS:
            window.start, window.written = now, 0
        if window.written >= burst:
            window.suppressed += 1
            return None
        window.written += 1
        suppressed, window.suppressed = window.suppressed, 0
        return suppressed


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
