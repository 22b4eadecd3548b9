"""`streamwatch replay`: runs the daemon's core over recorded events, without Kafka."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import lru_cache

from rich.console import Console

from streamwatch.core.estimators.warming import warm_up
from streamwatch.core.join.compiled.warming import warm_up_join
from streamwatch.core.merge.warming import warm_up_merge
from streamwatch.core.predictions.warming import warm_up_predictions
from streamwatch.core.specs import JoinSpec, MonitorsSpec, columns_suffice
from streamwatch.lab.outcome_rows.rows import OutcomeRows, outcome_rows
from streamwatch.lab.outcome_rows.warming import warm_up_rows
from streamwatch.lab.progress import ByteMeter, waiting
from streamwatch.lab.recordings.lines import UnusableLines
from streamwatch.lab.recordings.partitions import PartitionReader, RecordedPartition
from streamwatch.lab.recordings.recording import Recording, total_bytes
from streamwatch.lab.replay.player import Player
from streamwatch.lab.replay.result import ReplayResult
from streamwatch.lab.replay.spec import ReplaySpec
from streamwatch.lab.replay.trace_csv import TraceCsv


@lru_cache(maxsize=16)
def _warm_up(monitors: MonitorsSpec, join: JoinSpec, *, tracing: bool) -> None:
    """Compile or load what a replay will call: once for all of one make, as experiments replay hundreds."""
    warm_up(monitors, tracing=tracing)
    if columns_suffice(join):
        warm_up_join()
    warm_up_predictions(join.prediction_registers)
    warm_up_merge()
    warm_up_rows()


def replay(spec: ReplaySpec, console: Console | None = None) -> ReplayResult:
    """Evaluate recordings from start to end, merged by time as the daemon merges partitions.

    Parameters
    ----------
    spec
        What to read, and what estimators to keep.
    console
        Where progress is told: that estimators are being compiled, and on a terminal a bar by bytes; None for
        silence.

    Raises
    ------
    RecordingError
        A file cannot be read or is not a recording, or the trace cannot be written. Bad lines are counted,
        never raised.
    """
    result = ReplayResult(", ".join(map(str, spec.sources)))
    with ExitStack() as stack:
        recordings = [
            stack.enter_context(Recording(source, spec.layout, spec.columns)) for source in spec.sources
        ]
        paths = (spec.trace, spec.trace_comparisons)
        traces = [None if path is None else stack.enter_context(TraceCsv(path)) for path in paths]
        began = time.monotonic()
        with waiting("loading the estimators (a first time compiles them: about a minute, once)", console):
            _warm_up(spec.monitors, spec.join, tracing=spec.trace is not None)
        result.compile_seconds = time.monotonic() - began
        began = time.monotonic()
        meter = stack.enter_context(ByteMeter(result.source, total_bytes(recordings), console))
        bad = UnusableLines(result.bad, result.first_bad)
        reader = PartitionReader(spec.topics, bad, spec.topic, closed=spec.closed)

        def show() -> None:
            meter.show(sum(recording.read_bytes for recording in recordings))

        player = Player(spec, result, traces, _host_ms)
        rows = _in_columns(spec, recordings, reader, bad)
        partitions: Sequence[RecordedPartition] = ()
        if rows is not None:
            for part in rows.parts(_host_ms):
                player.take(part, rows.partition)
                show()
            if rows.rest() and not rows.untouched:
                partitions = [reader.rest(recordings[0], rows.partition, "both", rows.last_ms)]
        if rows is None or rows.untouched:
            partitions = reader.partitions(recordings, show)
        player.begin(partitions)
        while player.step():
            show()
        player.finish()
        show()
        result.lines = sum(recording.lines for recording in recordings)
        result.trace_rows = sum(trace.rows for trace in traces if trace)
        result.seconds = time.monotonic() - began
    return result


def _in_columns(
    spec: ReplaySpec, recordings: Sequence[Recording], reader: PartitionReader, bad: UnusableLines
) -> OutcomeRows | None:
    """The only recording in columns, if nothing asked for needs its rows one by one."""
    alone = len(recordings) == 1 and spec.topic is None and not spec.join.comparisons
    if not alone or spec.trace is not None or spec.trace_comparisons is not None:
        return None
    return outcome_rows(recordings[0], spec.topics, reader, bad, spec.merge.max_future_ms)


def _host_ms() -> int:
    return time.time_ns() // 1_000_000
