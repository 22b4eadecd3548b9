"""Released records through the core: row by row beside a store, or in columns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from streamwatch.core.commit.checkpoint import Checkpoint
from streamwatch.core.events import Alarm, Invalid
from streamwatch.core.join.compiled.outside.work import Work
from streamwatch.core.pipelines.column_pipeline import ColumnPipeline
from streamwatch.core.pipelines.partial_result import PartialResult
from streamwatch.core.ports import Store
from streamwatch.core.records import RecordBatch
from streamwatch.daemon.processing.turns import (
    RECORDS_PER_TURN,
    SCORES_PER_TURN,
    rows_up_to_objects,
    scores_of,
    up_to_scores,
)

EndOfRecord: TypeAlias = Callable[[int], int]
"""From a place among rows to the first one, from there on, before which a record ends."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Result of the next of the released records."""

    taken: int
    """Records; none where time passed and so much fell due that others have a turn first."""
    changed: int
    """Ids that expired or were evicted without a record of their own, which a commit writes too."""
    invalid: Sequence[Invalid]
    alarms: Sequence[Alarm]
    retired: Sequence[str]
    """Names of models."""
    scores: int = 0
    """Scores that a commit writes: of the events, and of the outcomes."""
    work: Work | None = None
    """Blocking work, to be done in any thread before anything else is evaluated or committed."""


class Evaluating(Protocol):
    """Evaluates released records, a bounded number per call."""

    def take(self, records: RecordBatch, start: int, end_of_record: EndOfRecord) -> Evaluated:
        """Evaluate the rows from `start` on, so many as fit a turn, and the rest of the last one's record.

        The next call has to go on where this one stopped, until all of them are taken.
        """
        ...

    async def make_room(self) -> None:
        """Make the room that the next `take` needs, if that takes long; others have turns meanwhile."""
        ...


class RowByRow:
    """Evaluates records as event objects, with the join entries that the store lends.

    Parameters
    ----------
    checkpoint
        The core, and what remembers what commits need.
    store
        Where state lives.
    """

    def __init__(self, checkpoint: Checkpoint, store: Store) -> None:
        self._checkpoint = checkpoint
        self._store = store
        self._step = RECORDS_PER_TURN

    async def make_room(self) -> None:
        """See `Evaluating`: entries are the store's."""

    def take(self, records: RecordBatch, start: int, end_of_record: EndOfRecord) -> Evaluated:
        """See `Evaluating`."""
        pipeline, store = self._checkpoint.pipeline, self._store
        events = records.part(start, end_of_record(start + self._step)).events()
        events = events[: end_of_record(start + len(up_to_scores(events))) - start]
        result = pipeline.advance(events, store.fetch(pipeline.read_set(events)))
        store.apply(result)
        scores = 0
        if store.durable:
            self._checkpoint.take(result)
            scores = scores_of(result.events, result.outcomes)
        # Where more falls due than is lent at once, small batches reach further.
        taken = len(result.events)
        whole = taken == len(events)
        self._step = min(2 * self._step, RECORDS_PER_TURN) if whole else max(1, len(events) // 2)
        if scores > SCORES_PER_TURN:  # labels are small, the scores of the predictions they meet are not
            self._step = max(1, taken * SCORES_PER_TURN // scores)
        return Evaluated(
            taken,
            len(result.changed),
            [event for event in result.events if type(event) is Invalid],
            result.alarms,
            [name for _, name in result.retired],
            scores,
        )


class InColumns:
    """Evaluates records in columns, with the compiled join.

    Parameters
    ----------
    pipeline
        Pipeline in columns, which holds the join entries itself.
    checkpoint
        What remembers what commits need; None where nothing is durable.
    """

    def __init__(self, pipeline: ColumnPipeline, checkpoint: Checkpoint | None = None) -> None:
        self._pipeline = pipeline
        self._checkpoint = checkpoint
        self._steps: Iterator[PartialResult] = iter(())
        self._left = 0  # records that the next steps take
        self._taken = 0  # by the steps made

    async def make_room(self) -> None:
        """See `Evaluating`."""
        pipeline = self._pipeline
        while pipeline.is_nearly_full:
            pipeline.use(await asyncio.to_thread(pipeline.with_more_room))

    def take(self, records: RecordBatch, start: int, end_of_record: EndOfRecord) -> Evaluated:
        """See `Evaluating`."""
        if not self._left:
            most = rows_up_to_objects(records.part(start, len(records)))
            self._left = end_of_record(start + most) - start
            self._taken = 0
            self._steps = self._pipeline.steps(records.part(start, start + self._left))
        step = next(self._steps)
        taken = step.taken - self._taken
        self._taken = step.taken
        self._left -= taken
        some = records.part(start, start + taken)
        events = some.placed(some.object_places())
        invalid = [event for event in events if type(event) is Invalid]
        scores = 0
        if self._checkpoint is not None:
            self._checkpoint.take(step)
            scores = scores_of(events, step.outcomes)
        retired = [name for _, name in step.retired]
        return Evaluated(taken, 0, invalid, step.alarms, retired, scores, step.work)
