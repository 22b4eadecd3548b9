"""Writer of internal events: one log line and one counter each; frequent ones are sampled in the log."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from threading import Lock
from typing import Any, ClassVar, Literal, TextIO, TypeAlias

import structlog

from streamwatch.core.metrics import family
from streamwatch.core.metrics.series import Family

# Base of the daemon's internal events.


Level: TypeAlias = Literal["debug", "info", "warning", "error"]

SAMPLE_BURST = 5


@dataclass(frozen=True)
class InternalEvent:
    """Internal event: its severity, and the field that limits its log lines."""

    level: ClassVar[Level] = "info"
    sampled_by: ClassVar[str | None] = None
    """Each value of this field gets `burst` lines per minute; the rest is counted and summed up."""
    burst: ClassVar[int] = SAMPLE_BURST


def event_name(kind: type[InternalEvent]) -> str:
    """`RecordRejected` is written and counted as `record_rejected`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


Format: TypeAlias = Literal["auto", "json", "pretty"]

_LEVELS: dict[Level, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
SAMPLE_PERIOD_SECONDS = 60.0


class Telemetry:
    """Writes and counts internal events.

    Parameters
    ----------
    level
        The least severe level that is written. Everything is counted.
    form
        `auto` writes JSON unless `stream` is a terminal.
    stream
        Where lines go; stderr by default.
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
        """Whether every line is an object of JSON."""
        self._log: Any = structlog.wrap_logger(
            structlog.WriteLogger(out),
            processors=_processors(pretty=pretty, colors=out.isatty()),
            wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        )
        self._clock = clock
        self._counts: Counter[str] = Counter()
        self._windows: dict[tuple[str, Hashable], _Window] = {}
        self._lock = Lock()

    def emit(self, event: InternalEvent) -> None:
        """Count an internal event and write its line, unless its kind wrote enough lines in this minute.

        Any thread may call it.
        """
        with self._lock:
            self._emit(event)

    def _emit(self, event: InternalEvent) -> None:
        kind = type(event)
        name = event_name(kind)
        self._counts[name] += 1
        values: dict[str, object] = {f.name: getattr(event, f.name) for f in fields(event)}
        for f in fields(event):
            if f.default is None and values[f.name] is None:
                del values[f.name]  # it is not known
        if kind.sampled_by is not None:
            suppressed = self._admit(name, str(values[kind.sampled_by]), kind.burst)
            if suppressed is None:
                return
            if suppressed:
                values["suppressed"] = suppressed
        getattr(self._log, kind.level)(name, **values)

    def count(self, kind: type[InternalEvent]) -> int:
        """Number of events of this kind since the start."""
        return self._counts[event_name(kind)]

    def families(self) -> Sequence[Family]:
        """The counters, one series for each kind that happened."""
        samples = [((name,), float(n)) for name, n in sorted(self._counts.items())]
        return [family("internal_events_total", samples)]

    def _admit(self, name: str, key: str, burst: int) -> int | None:
        """Lines held back since the last one written, or None if this one is held back too."""
        now = self._clock()
        window = self._windows.get((name, key))
        if window is None:
            if len(self._windows) >= 1_000:  # keys are names from outside: the table of limits is bounded
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
