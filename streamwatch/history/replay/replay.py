"""`streamwatch replay`: runs the daemon's core over recorded events, without Kafka."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import DownloadColumn, TimeRemainingColumn

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.estimators.warming import warm_up
from streamwatch.core.join.caveats import (
    alarms_without_verdicts,
    details_with,
    details_with_caveats,
    families_without_verdicts,
)
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.warming import warm_up_join
from streamwatch.core.merge import Merge, MergeProgress, MergeSpec, Released
from streamwatch.core.merge.merge import progress_families, warm_up_merge
from streamwatch.core.merge.released import expanded
from streamwatch.core.metrics.series import Family, Histogram
from streamwatch.core.pipeline.pipeline import NoEvaluation, Pipeline
from streamwatch.core.predictions.registers import details_with_predictions, warm_up_predictions
from streamwatch.core.records.events import (
    VERDICT,
    Alarm,
    Decoded,
    Label,
    Outcome,
    Partition,
    Prediction,
    Side,
)
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.edge.decoders.formats import DecoderSpec, FormatOptions, json
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.keys import digest_bytes
from streamwatch.history.evaluator import OutcomeCounts
from streamwatch.history.outcome_rows.lines import warm_up_rows
from streamwatch.history.outcome_rows.rows import OutcomeRows, Part, outcome_rows
from streamwatch.history.progress import meter, waiting
from streamwatch.history.recordings.file import printable, require_distinct
from streamwatch.history.recordings.lines import BadLine, CsvColumns, RecordedTopic, UnusableLines
from streamwatch.history.recordings.partitions import (
    PartitionReader,
    RecordedEvent,
    RecordedOutcome,
    RecordedPartition,
)
from streamwatch.history.recordings.recording import Layout, Recording, total_bytes
from streamwatch.history.replay.trace_csv import TraceCsv, TracedEstimatorSet, require_own_files

# Pairs for comparisons of outcomes from lines with a prediction and its label, which bypass the join.


_MODELS: Final = 2**20


class RecordedPairs:
    """Pairs outcomes of compared models by id, in a join of its own; per model and id the first one counts.

    Parameters
    ----------
    spec
        Comparisons, and limits of the memory of ids.
    """

    def __init__(self, spec: JoinSpec) -> None:
        rules = JoinSpec(
            dedup_horizon_ms=spec.dedup_horizon_ms,
            max_dedup_entries=spec.max_dedup_entries,
            max_models=_MODELS,
            comparisons=spec.comparisons,
        )
        self._join = Pipeline(rules, NoEvaluation(), digest_bytes) if spec.comparisons else None

    @property
    def counters(self) -> JoinCounters:
        """Counters of the pairs."""
        return JoinCounters() if self._join is None else self._join.join.counters

    def paired(self, outcomes: Sequence[RecordedOutcome], clock_ms: Sequence[int]) -> Sequence[Outcome]:
        """Return the outcomes with the answers of their partners; `clock_ms` is the clock at each."""
        join = self._join
        if join is None:
            return outcomes
        events: list[Prediction | Label] = []
        for index, (outcome, at_ms) in enumerate(zip(outcomes, clock_ms, strict=True)):
            events.append(Prediction(outcome.id, outcome.model, outcome.predicted_class, at_ms))
            events.append(Label(outcome.id, outcome.true_class, at_ms, outcome.model, index))
        found: list[Outcome] = list(outcomes)
        for resolved in join.advance(events).outcomes:
            index = resolved.event_ms  # set above as the label's own time
            found[index] = msgspec.structs.replace(outcomes[index], pairs=resolved.pairs)
        return found


# Result of a replay.


@dataclass(slots=True)
class ReplayResult:
    """Counts of lines, outcomes and alarms of a replay, and the estimates at its end."""

    sources: tuple[str, ...]
    """Paths of the files, safe to print; `-` for standard input."""
    lines: int = 0
    outcomes: int = 0
    pending: int = 0
    """Predictions still waiting for a label when the recording ended."""
    back_in_time: int = 0
    """Lines whose time is before that of an earlier line of their file."""
    clock_ms: int = -1
    """Time of the last line that was evaluated."""
    bad: Counter[str] = field(default_factory=Counter[str])
    """Lines that could not be used, by reason."""
    first_bad: list[BadLine] = field(default_factory=list[BadLine])
    alarms: list[Alarm] = field(default_factory=list[Alarm])
    families: Sequence[Family] = ()
    details: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    """Details by model, as in the API."""
    trace_rows: int = 0
    seconds: float = 0.0
    """Duration of reading and evaluating."""
    compile_seconds: float = 0.0
    """Duration of loading or compiling the estimators before."""

    @property
    def source(self) -> str:
        """The paths in one text."""
        return ", ".join(self.sources)


# Specification of a replay.


def default_topics(mapping: TopicMapping | None = None) -> dict[str, RecordedTopic]:
    """Build a topic of predictions and one of labels with one mapping; by default of the default names."""
    sides: dict[str, Side] = {"predictions": "prediction", "labels": "label"}
    found = mapping or TopicMapping()
    specs = [DecoderSpec(name, side, found) for name, side in sides.items()]
    return {spec.topic: RecordedTopic(spec, json.build(spec, FormatOptions())) for spec in specs}


@dataclass(frozen=True, slots=True)
class ReplaySpec:
    """Specification of a replay; the defaults are the daemon's.

    Attributes
    ----------
    sources
        Paths, or `-` for standard input; each is a partition of its own.
    layout
        Format of the files; None: detected.
    topics
        Topics with their decoders by name, in the order of the settings.
    topic
        Topic of every line; None: lines of kcat have theirs, and for others the mapping that fits decides.
    closed
        Whether lines of kcat must be of one of `topics`.
    columns
        Columns that the header of a CSV file is expected to have.
    trace, trace_comparisons
        CSV files to write, one of every outcome and one of every pair of outcomes; None: not written.
    seen
        Function that is called with the outcomes of every batch, in the order of evaluation; or None.
    look
        Function that is called after every batch with the number of outcomes so far, and a function that
        returns all estimates; or None.
    """

    sources: Sequence[str | Path]
    layout: Layout | None = None
    topics: Mapping[str, RecordedTopic] = field(default_factory=default_topics)
    topic: str | None = None
    closed: bool = False
    columns: CsvColumns = field(default_factory=CsvColumns)
    join: JoinSpec = field(default_factory=JoinSpec)
    merge: MergeSpec = field(default_factory=MergeSpec)
    monitors: MonitorsSpec = field(default_factory=MonitorsSpec)
    trace: str | Path | None = None
    trace_comparisons: str | Path | None = None
    seen: Callable[[Sequence[Outcome]], None] | None = None
    look: Callable[[int, Callable[[], Sequence[Family]]], None] | None = None


# The daemon's merge, join and estimators over recorded events.


_BATCH = 1_000
_IN_COLUMNS = 1 << 16
_LOOKED_AT = 100
"""Most events in a batch if `look` is given; the size of batches does not affect results."""
_ENDED: Final = 2**62
"""Time of the fetch that found a recording at its end: later than all records."""


class Player:
    """Passes recordings through merge, join and estimators.

    Lines with a prediction and its label are outcomes already: they pass the merge, but not the join.

    Parameters
    ----------
    spec
        Specification of the replay.
    result
        Result to which outcomes and alarms are added.
    traces
        Trace of outcomes and trace of pairs, or None.
    host_ms
        Function that returns the host's clock in milliseconds.
    """

    def __init__(
        self,
        spec: ReplaySpec,
        result: ReplayResult,
        traces: Sequence[TraceCsv | None],
        host_ms: Callable[[], int],
    ) -> None:
        self._result = result
        self._host_ms = host_ms
        self._monitors = EstimatorSet(spec.monitors)
        evaluation = TracedEstimatorSet(self._monitors, *traces) if any(traces) else self._monitors
        self._pipeline = Pipeline(spec.join, evaluation, digest_bytes)
        self._pairs = RecordedPairs(spec.join)
        self._counts = OutcomeCounts()
        self._progress = MergeProgress()
        self._newest_ms: dict[Partition, int] = {}
        self._spec = spec
        self._seen, self._look = spec.seen, spec.look
        self._batch = _BATCH if spec.look is None else _LOOKED_AT
        self._most = _IN_COLUMNS if spec.look is None else _LOOKED_AT

    def take(self, part: Part, partition: Partition) -> None:
        """Evaluate rows of the only recording, which need no merge."""
        outcomes = events = start = 0
        self._note_times(partition, part.stamps_ms)
        changes = np.flatnonzero(np.diff(part.is_outcome)) + 1
        for stop in [*changes.tolist(), len(part.offsets)]:
            if start == stop:
                continue
            if part.is_outcome[start]:
                for first in range(outcomes, outcomes + stop - start, self._most):
                    last = min(first + self._most, outcomes + stop - start)
                    found = part.outcomes.only(np.arange(first, last))
                    found.records["made"] = self._counts.following(found.records["model"], found.models)
                    self._evaluated(found, self._pipeline.evaluate(found))
                outcomes += stop - start
            else:
                given = part.events[events : events + stop - start]
                for event, clock_ms in zip(given, part.times_ms[start:stop].tolist(), strict=True):
                    _meet(event, clock_ms, partition.topic)
                step = self._pipeline.advance(given)
                self._evaluated(step.outcomes, step.alarms)
                events += stop - start
            start = stop
        if len(part.offsets):
            self._progress.note(part.released(partition))

    def play(self, partitions: Sequence[RecordedPartition], show: Callable[[], None]) -> None:
        """Read partitions to their ends, merged by time, after all parts given to `take`.

        Reads a chunk of the partition that is furthest behind at a time, evaluates the events released, and
        calls `show`. Events and outcomes still held at the end are evaluated without expiry.
        """
        sides: dict[str, Side] = {name: topic.spec.side for name, topic in self._spec.topics.items()}
        sides |= {each.partition.topic: each.side for each in partitions}
        merge = Merge(self._spec.merge, sides, self._progress)
        unread = {each.partition: each.chunks for each in partitions}
        merge.set_partitions(list(unread))
        while unread:
            reached = merge.running_ms
            partition = min(unread, key=lambda name: reached[name])
            chunk = next(unread[partition], None)
            if chunk is None:
                del unread[partition]
                merge.found({partition: _ENDED})
            else:
                self._note_times(partition, chunk.stamps_ms[chunk.decodable])
                merge.add({partition: chunk}, 0)
            self._join(merge.release(0, self._host_ms()))
            show()
        self._join(merge.drain(self._host_ms()))
        self._finish()

    def _note_times(self, partition: Partition, stamps_ms: NDArray[np.int64]) -> None:
        """Count the lines, of the next ones of a partition, whose time is before that of an earlier line."""
        if not len(stamps_ms):
            return
        newest_ms = np.maximum.accumulate(stamps_ms)
        np.maximum(newest_ms, self._newest_ms.get(partition, -1), out=newest_ms)
        self._result.back_in_time += int((stamps_ms < newest_ms).sum())
        self._newest_ms[partition] = int(newest_ms[-1])

    def _finish(self) -> None:
        """Evaluate outcomes that the join holds, and set the estimates of the result."""
        step = self._pipeline.release_held()
        self._evaluated(step.outcomes, step.alarms)
        self._result.clock_ms = self._progress.clock_ms
        self._pipeline.join.add_pairs(self._pairs.counters)
        found = self._pipeline.mismatches()
        unrepresentative = self._pipeline.predictions.unrepresentative()
        families = self._pipeline.families() + progress_families(self._progress)
        self._result.families = families_without_verdicts(families, found, unrepresentative)
        details = details_with(self._monitors.details(), found, unrepresentative)
        details = details_with_caveats(details, self._pipeline.caveats(), self._result.families)
        self._result.details = details_with_predictions(details, self._pipeline.predictions.details())
        self._result.pending = sum(
            int(value)
            for family in self._result.families
            if family.name == "pending_predictions"
            for _, value in family.samples
            if not isinstance(value, Histogram)
        )

    def _join(self, released: Released) -> None:
        released = expanded(released)
        found = cast("Sequence[RecordedEvent]", released.records.given())
        topics = [partition.topic for partition in released.partitions]
        at = zip(found, released.clock_ms.tolist(), released.indices.tolist(), strict=True)
        for event, clock_ms, index in at:
            if not isinstance(event, Outcome):
                _meet(event, clock_ms, topics[index])
        start = 0
        for is_outcome, group in groupby(found, lambda event: isinstance(event, Outcome)):
            stop = start + sum(1 for _ in group)
            for first in range(start, stop, self._batch):
                last = min(first + self._batch, stop)
                events: Any = found[first:last]
                if is_outcome:
                    clocks = released.clock_ms[first:last].tolist()
                    recorded = list(map(self._resolved, cast("Sequence[RecordedOutcome]", events), clocks))
                    outcomes = self._pairs.paired(recorded, clocks)
                    self._evaluated(outcomes, self._pipeline.evaluate(outcomes))
                else:
                    step = self._pipeline.advance(events)
                    self._evaluated(step.outcomes, step.alarms)
                self._progress.note(released.part(first, last))
            start = stop

    def _resolved(self, outcome: RecordedOutcome, clock_ms: int) -> RecordedOutcome:
        """Set the count, clock and waiting time of an outcome.

        It has waited from the time of its prediction, `event_ms` − `delay_ms`, to the clock, or for 0 ms if
        the clock is behind that time.
        """
        waited_ms = max(0, clock_ms - outcome.event_ms + outcome.delay_ms)
        made = self._counts.next(outcome.model)
        return replace(outcome, made=made, resolved_ms=clock_ms, waited_ms=waited_ms)

    def _evaluated(self, outcomes: Sequence[Outcome], alarms: Sequence[Alarm]) -> None:
        self._result.outcomes += len(outcomes)
        if self._seen is not None:
            self._seen(outcomes)
        if any(alarm.detector == VERDICT for alarm in alarms):
            unrepresentative = self._pipeline.predictions.unrepresentative()
            alarms = alarms_without_verdicts(alarms, self._pipeline.mismatches(), unrepresentative)
        self._result.alarms += alarms
        if self._look is not None:
            self._look(self._result.outcomes, self._monitors.families)


def _meet(event: Decoded, clock_ms: int, topic: str) -> None:
    """Set the time of the clock and the topic in an event, as the merge does in rows."""
    event.record_ms = clock_ms
    if isinstance(event, Prediction | Label):
        event.topic = topic


@lru_cache(maxsize=16)
def _warm_up(monitors: MonitorsSpec, join: JoinSpec, *, tracing: bool) -> None:
    """Compile or load the functions of a replay; cached, as experiments run hundreds of equal replays."""
    warm_up(monitors, tracing=tracing)
    warm_up_join()
    warm_up_predictions(join.prediction_registers)
    warm_up_merge()
    warm_up_rows()


def replay(spec: ReplaySpec, console: Console | None = None) -> ReplayResult:
    """Evaluate recordings from start to end, merged by time as the daemon merges partitions.

    Parameters
    ----------
    spec
        Specification of the replay.
    console
        Console for the progress: compilation of estimators, and on a terminal a bar by bytes. None: silent.

    Raises
    ------
    RecordingError
        A file cannot be read, is not a recording or is given twice, or the trace cannot be written. Unusable
        lines are counted.
    """
    result = ReplayResult(tuple(printable(str(source)) for source in spec.sources))
    require_distinct(spec.sources)
    with ExitStack() as stack:
        recordings = [
            stack.enter_context(Recording(source, spec.layout, spec.columns)) for source in spec.sources
        ]
        paths = (spec.trace, spec.trace_comparisons)
        require_own_files(paths, spec.sources)
        traces = [None if path is None else stack.enter_context(TraceCsv(path)) for path in paths]
        began = time.monotonic()
        what = "loading the estimators (a first time compiles them: about a minute on one core, once)"
        with waiting(what, console):
            _warm_up(spec.monitors, spec.join, tracing=spec.trace is not None)
        result.compile_seconds = time.monotonic() - began
        began = time.monotonic()
        left = (DownloadColumn(), TimeRemainingColumn())
        bar = meter(result.source, total_bytes(recordings), console, *left, transient=True)
        redraw = stack.enter_context(bar)
        bad = UnusableLines(result.bad, result.first_bad)
        reader = PartitionReader(spec.topics, bad, spec.topic, closed=spec.closed)

        def show() -> None:
            redraw(completed=sum(recording.file.read_bytes for recording in recordings))

        player = Player(spec, result, traces, _host_ms)
        rows = _in_columns(spec, recordings, reader, bad)
        partitions: Sequence[RecordedPartition] = ()
        if rows is not None:
            for part in rows.parts(_host_ms):
                player.take(part, rows.partition)
                show()
            if rows.rest() and not rows.untouched:
                partitions = [reader.rest(recordings[0], rows.partition, "both", rows.times.last_ms)]
        if rows is None or rows.untouched:
            partitions = reader.partitions(recordings, show)
        player.play(partitions, show)
        show()
        result.lines = sum(recording.lines for recording in recordings)
        result.trace_rows = sum(trace.rows for trace in traces if trace)
        result.seconds = time.monotonic() - began
    return result


def _in_columns(
    spec: ReplaySpec, recordings: Sequence[Recording], reader: PartitionReader, bad: UnusableLines
) -> OutcomeRows | None:
    """Prepare to read a single recording in columns; None if rows are needed one by one."""
    alone = len(recordings) == 1 and spec.topic is None and not spec.join.comparisons
    if not alone or spec.trace is not None or spec.trace_comparisons is not None:
        return None
    return outcome_rows(recordings[0], spec.topics, reader, bad, spec.merge.max_future_ms)


def _host_ms() -> int:
    return time.time_ns() // 1_000_000
