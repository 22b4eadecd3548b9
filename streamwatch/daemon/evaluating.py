"""Released records through the core: row by row beside a store, or in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from streamwatch.core.column_pipeline import ColumnPipeline, Step
from streamwatch.core.commit.checkpoint import Checkpoint
from streamwatch.core.events import Alarm, Invalid
from streamwatch.core.ports import Store
from streamwatch.core.records import RecordBatch
from streamwatch.daemon.turns import RECORDS_PER_TURN, rows_up_to_objects, up_to_scores


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What came of the next of the released records."""

    taken: int
    """Records; none where time passed and so much fell due that others have a turn first."""
    changed: int
    """Ids that expired or were evicted without a record of their own, which a commit writes too."""
    invalid: Sequence[Invalid]
    alarms: Sequence[Alarm]
    retired: Sequence[str]
    """Names of models."""


class Evaluating(Protocol):
    """Takes released records."""

    def take(self, records: RecordBatch, start: int) -> Evaluated:
        """Evaluate the records from `start` on, so many as fit a turn.

        The next call has to go on where this one stopped, until all of them are taken.
        """
        ...


class RowByRow:
    """Through events and the entries that the store lends.

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

    def take(self, records: RecordBatch, start: int) -> Evaluated:
        """See `Evaluating`."""
        pipeline, store = self._checkpoint.pipeline, self._store
        events = up_to_scores(records.part(start, start + self._step).events())
        result = pipeline.advance(events, store.fetch(pipeline.read_set(events)))
        store.apply(result)
        if store.durable:
            self._checkpoint.take(result)
        # Where more falls due than is lent at once, small batches reach further.
        whole = len(result.events) == len(events)
        self._step = min(2 * self._step, RECORDS_PER_TURN) if whole else max(1, len(events) // 2)
        return Evaluated(
            len(result.events),
            len(result.changed),
            [event for event in result.events if type(event) is Invalid],
            result.alarms,
            [name for _, name in result.retired],
        )


class InColumns:
    """Through the compiled join.

    Parameters
    ----------
    pipeline
        Keeps its entries itself.
    checkpoint
        What remembers what commits need; None where nothing is durable.
    """

    def __init__(self, pipeline: ColumnPipeline, checkpoint: Checkpoint | None = None) -> None:
        self._pipeline = pipeline
        self._checkpoint = checkpoint
        self._steps: Iterator[Step] = iter(())
        self._left = 0  # records that the next steps take
        self._taken = 0  # by the steps made

    def take(self, records: RecordBatch, start: int) -> Evaluated:
        """See `Evaluating`."""
        if not self._left:
            self._left = rows_up_to_objects(records.part(start, len(records)))
            self._taken = 0
            self._steps = self._pipeline.steps(records.part(start, start + self._left))
        step = next(self._steps)
        taken = step.taken - self._taken
        self._taken = step.taken
        self._left -= taken
        if self._checkpoint is not None:
            self._checkpoint.take(step)
        some = records.part(start, start + taken)
        invalid = [event for event in some.placed(some.object_places()) if type(event) is Invalid]
        return Evaluated(taken, 0, invalid, step.alarms, [name for _, name in step.retired])
