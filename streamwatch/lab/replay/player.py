"""The daemon's merge, join and estimators over recorded events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final, cast

import numpy as np

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.events import Alarm, Decoded, Event, Label, Outcome, Partition, Prediction, Side
from streamwatch.core.join.caveats import details_with_caveats
from streamwatch.core.join.mismatch import details_with
from streamwatch.core.merge import Arrivals, Merge, MergeProgress, Released
from streamwatch.core.merge.elements import expanded
from streamwatch.core.merge.series import progress_families
from streamwatch.core.pipelines.column_pipeline import ColumnPipeline
from streamwatch.core.pipelines.pipeline import Pipeline
from streamwatch.core.predictions.registers import details_with_predictions
from streamwatch.core.records import batch_of
from streamwatch.core.series import Histogram
from streamwatch.core.specs import columns_suffice
from streamwatch.edge.keys import digest_bytes
from streamwatch.edge.stores.memory import MemoryStore
from streamwatch.lab.outcome_rows.part import Part
from streamwatch.lab.recordings.partitions import Chunk, RecordedPartition
from streamwatch.lab.recordings.recorded_events import RecordedEvent, RecordedOutcome
from streamwatch.lab.replay.recorded_pairs import RecordedPairs
from streamwatch.lab.replay.result import ReplayResult
from streamwatch.lab.replay.spec import ReplaySpec
from streamwatch.lab.replay.trace_csv import TraceCsv, TracedEstimatorSet

_BATCH = 1_000
_IN_COLUMNS = 1 << 16
_LOOKED_AT = 100
"""Events in a batch where estimates are looked at in between; how batches are cut changes no number."""
_ENDED: Final = 2**62
"""When the fetch was sent that found a recording at its end: after everything that was read."""


class Player:
    """Feeds recordings through the core, in one order.

    Lines with prediction and label are outcomes already: they take their turn, and need no join.

    Parameters
    ----------
    spec
        What estimators to keep, and how partitions are merged and ids joined.
    result
        Where outcomes and alarms are counted.
    traces
        Files to write of outcomes and of pairs, or None.
    host_ms
        The host's clock.
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
        self._pipeline = (
            ColumnPipeline(spec.join, evaluation, digest_bytes)
            if columns_suffice(spec.join)
            else Pipeline(spec.join, evaluation)
        )
        self._pairs = RecordedPairs(spec.join)
        self._progress = MergeProgress()
        self._spec = spec
        self._partitions: dict[Partition, RecordedPartition] = {}
        self._merge = Merge(spec.merge, {}, self._progress)
        self._store = MemoryStore()
        self._seen, self._look = spec.seen, spec.look
        self._batch = _BATCH if spec.look is None else _LOOKED_AT
        self._most = _IN_COLUMNS if spec.look is None else _LOOKED_AT

    def begin(self, partitions: Sequence[RecordedPartition]) -> None:
        """Have these to read, after all that was taken before."""
        self._partitions = {each.partition: each for each in partitions}
        sides: dict[str, Side] = {name: topic.side for name, topic in self._spec.topics.items()}
        sides |= {each.partition.topic: each.side for each in partitions}
        self._merge = Merge(self._spec.merge, sides, self._progress)
        self._merge.set_partitions(list(self._partitions))

    def take(self, part: Part, partition: Partition) -> None:
        """Evaluate rows of the only recording: they are in order as they come."""
        outcomes = events = start = 0
        changes = np.flatnonzero(np.diff(part.is_outcome)) + 1
        for stop in [*changes.tolist(), len(part.offsets)]:
            if start == stop:
                continue
            if part.is_outcome[start]:
                for first in range(outcomes, outcomes + stop - start, self._most):
                    last = min(first + self._most, outcomes + stop - start)
                    found = part.outcomes.only(np.arange(first, last))
                    self._evaluated(found, self._pipeline.evaluate(found))
                outcomes += stop - start
            else:
                given = part.events[events : events + stop - start]
                for event, clock_ms in zip(given, part.times_ms[start:stop].tolist(), strict=True):
                    _meet(event, clock_ms, partition.topic)
                step = self._pipeline.advance(given, self._store.fetch(self._pipeline.read_set(given)))
                self._store.apply(step)
                self._evaluated(step.outcomes, step.alarms)
                events += stop - start
            start = stop
        if len(part.offsets):
            self._progress.note(part.released(partition))

    def step(self) -> bool:
        """Read on where others wait for it, and evaluate what may be; whether there is more to read."""
        if not self._partitions:
            return False
        reached = self._merge.running_ms
        partition = min(self._partitions, key=lambda name: reached[name])
        chunk = next(self._partitions[partition].chunks, None)
        if chunk is None:
            del self._partitions[partition]
            self._merge.found({partition: _ENDED})
        else:
            self._merge.add({partition: _arrivals(chunk)}, 0)
        self._join(self._merge.release(0, self._host_ms()))
        return True

    def finish(self) -> None:
        """Evaluate what waits, release what is held for its order, and take stock; nothing expires."""
        self._join(self._merge.drain(self._host_ms()))
        step = self._pipeline.release_held(self._store.fetch(self._pipeline.read_set(())))
        self._store.apply(step)
        self._evaluated(step.outcomes, step.alarms)
        self._pipeline.add_pairs(self._pairs.counters)
        self._result.families = self._pipeline.families() + progress_families(self._progress)
        details = details_with(self._monitors.details(), self._pipeline.mismatches())
        details = details_with_caveats(details, self._pipeline.caveats())
        self._result.details = details_with_predictions(details, self._pipeline.prediction_details())
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
        at = zip(found, released.clock_ms.tolist(), released.places.tolist(), strict=True)
        for event, clock_ms, place in at:
            if not isinstance(event, Outcome):
                _meet(event, clock_ms, topics[place])
        start = 0
        for is_outcome, group in groupby(found, lambda event: isinstance(event, Outcome)):
            stop = start + sum(1 for _ in group)
            for first in range(start, stop, self._batch):
                last = min(first + self._batch, stop)
                events: Any = found[first:last]
                if is_outcome:
                    recorded = cast("Sequence[RecordedOutcome]", events)
                    outcomes = self._pairs.paired(recorded, released.clock_ms[first:last].tolist())
                    self._evaluated(outcomes, self._pipeline.evaluate(outcomes))
                else:
                    step = self._pipeline.advance(events, self._store.fetch(self._pipeline.read_set(events)))
                    self._store.apply(step)
                    self._evaluated(step.outcomes, step.alarms)
                self._progress.note(released.part(first, last))
            start = stop

    def _evaluated(self, outcomes: Sequence[Outcome], alarms: Sequence[Alarm]) -> None:
        self._result.outcomes += len(outcomes)
        if self._seen is not None:
            self._seen(outcomes)
        self._result.alarms += alarms
        if self._look is not None:
            self._look(self._result.outcomes, self._monitors.families)


def _arrivals(chunk: Chunk) -> Arrivals:
    """A chunk as a poll would have delivered it; outcomes pass through the merge as any event does."""
    return Arrivals(
        chunk.offsets,
        chunk.stamps_ms,
        chunk.decodable,
        batch_of(cast("Sequence[Event]", chunk.found), chunk.offsets),
        appended=chunk.appended,
    )


def _meet(event: Decoded, clock_ms: int, topic: str) -> None:
    """Tell an event the clock at its place, and its topic, as the merge does of rows."""
    event.record_ms = clock_ms
    if isinstance(event, Prediction | Label):
        event.topic = topic
