"""`streamwatch replay`: runs the daemon's core over recorded events, without Kafka."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from streamwatch.core.events import Alarm, Event, Outcome, Partition, Progress
from streamwatch.core.monitors import Monitors
from streamwatch.core.pipeline import Pipeline
from streamwatch.core.series import Family, Histogram
from streamwatch.core.specs import JoinSpec, MonitorsSpec, TimeSpec
from streamwatch.edge.decoders.mapping import TimestampUnit
from streamwatch.edge.stores.memory import MemoryStore
from streamwatch.lab.lines import BadLine, Recorded
from streamwatch.lab.progress import ByteMeter
from streamwatch.lab.recorded import Layout, Recording
from streamwatch.lab.trace_csv import TraceCsv, TracedMonitors

_BATCH = 1_000
_KEPT_BAD_LINES = 5


@dataclass(frozen=True, slots=True)
class ReplaySpec:
    """What to replay and how; the defaults are the daemon's.

    `source` is a path or `-`. `layout` None finds out. `trace` names a CSV file to write, or None.
    """

    source: str | Path
    layout: Layout | None = None
    timestamp_unit: TimestampUnit = "ms"
    join: JoinSpec = field(default_factory=JoinSpec)
    time: TimeSpec = field(default_factory=TimeSpec)
    monitors: MonitorsSpec = field(default_factory=MonitorsSpec)
    trace: str | Path | None = None


@dataclass(slots=True)
class ReplayResult:
    """What was read, and what the estimators say at its end."""

    source: str
    lines: int = 0
    outcomes: int = 0
    pending: int = 0
    """Predictions still waiting for a label when the recording ended."""
    bad: Counter[str] = field(default_factory=Counter[str])
    """Lines that could not be used, by reason."""
    first_bad: list[BadLine] = field(default_factory=list[BadLine])
    alarms: list[Alarm] = field(default_factory=list[Alarm])
    families: Sequence[Family] = ()
    trace_rows: int = 0
    seconds: float = 0.0


def replay(spec: ReplaySpec, console: Console | None = None) -> ReplayResult:
    """Evaluate a recording from start to end.

    Parameters
    ----------
    spec
        What to read, and what estimators to keep.
    console
        Where a progress bar by bytes is drawn when it is a terminal; None for silence.

    Raises
    ------
    RecordingError
        The file cannot be read or is not a recording, or the trace cannot be written. Bad lines are counted,
        never raised.
    """
    result = ReplayResult(str(spec.source))
    began = time.monotonic()
    with ExitStack() as stack:
        recording = stack.enter_context(Recording(spec.source, spec.layout, spec.timestamp_unit))
        trace = None if spec.trace is None else stack.enter_context(TraceCsv(spec.trace))
        meter = stack.enter_context(ByteMeter(recording.name, recording.total_bytes, console))
        player = _Player(spec, result, trace)
        for item in recording.items(player.clamp):
            if player.take(item):
                meter.show(recording.read_bytes)
        player.finish()
        meter.show(recording.read_bytes)
        result.lines = recording.lines
        result.trace_rows = 0 if trace is None else trace.rows
    result.seconds = time.monotonic() - began
    return result


class _Player:
    """Feeds what a recording holds through the core, in order.

    A recording is one partition that carries both sides, never caught up until it ends: time is what its
    lines say. Time moves (and what is due expires) whenever record time enters another second, as
    deadlines are whole seconds.
    """

    def __init__(self, spec: ReplaySpec, result: ReplayResult, trace: TraceCsv | None) -> None:
        self._result = result
        self._partition = Partition("recording", 0)
        monitors = Monitors(spec.monitors)
        self._monitors = monitors if trace is None else TracedMonitors(monitors, trace)
        self._pipeline = Pipeline(spec.join, spec.time, self._monitors, {self._partition: "both"})
        self._store = MemoryStore()
        self._events: list[Event] = []
        self._outcomes: list[Outcome] = []
        self._newest_ms = -1
        self._reorder_ms = spec.join.reorder_window_ms if spec.join.order == "prediction_time" else 0

    def clamp(self, at_ms: int) -> int:
        """Bound disorder as the daemon does; nothing is in a recording's future."""
        return self._pipeline.timeline.stamp(self._partition, at_ms, at_ms)

    def take(self, item: Recorded) -> bool:
        """Evaluate one line, sooner or later; whether a batch was evaluated."""
        if isinstance(item, BadLine):
            self._result.bad[item.reason] += 1
            if len(self._result.first_bad) < _KEPT_BAD_LINES:
                self._result.first_bad.append(item)
            return False
        if isinstance(item, Outcome):
            if self._events:
                self._join()
            self._outcomes.append(item)
            if len(self._outcomes) < _BATCH:
                return False
            self._fold()
            return True
        if self._outcomes:
            self._fold()
        if item.at_ms > self._newest_ms:
            if item.at_ms // 1_000 > self._newest_ms // 1_000 and self._newest_ms >= 0:
                self._events.append(self._progress(self._newest_ms, caught_up=False))
            self._newest_ms = item.at_ms
        self._events.append(item)
        if len(self._events) < _BATCH:
            return False
        self._join()
        return True

    def finish(self) -> None:
        """Let time reach the last line, release what is held for order, and take stock."""
        if self._outcomes:
            self._fold()
        if self._newest_ms >= 0:
            self._events.append(self._progress(self._newest_ms, caught_up=True))
        self._join()
        if self._reorder_ms and self._newest_ms >= 0:
            self._events.append(self._progress(self._newest_ms + self._reorder_ms + 1_000, caught_up=True))
            self._join()
        self._result.families = self._pipeline.families()
        self._result.pending = sum(
            int(value)
            for family in self._result.families
            if family.name == "pending_predictions"
            for _, value in family.samples
            if not isinstance(value, Histogram)
        )

    def _progress(self, at_ms: int, *, caught_up: bool) -> Progress:
        return Progress(self._partition.topic, self._partition.partition, at_ms, caught_up)

    def _join(self) -> None:
        events, self._events = self._events, []
        found = self._store.fetch(self._pipeline.needs(events))
        step = self._pipeline.advance(events, found)
        self._store.keep(step)
        self._evaluated(step.outcomes, step.alarms)

    def _fold(self) -> None:
        """Lines with prediction and label are outcomes already: they need no join."""
        outcomes, self._outcomes = self._outcomes, []
        self._evaluated(outcomes, self._monitors.fold(outcomes))

    def _evaluated(self, outcomes: Sequence[Outcome], alarms: Sequence[Alarm]) -> None:
        self._result.outcomes += len(outcomes)
        self._result.alarms += alarms
