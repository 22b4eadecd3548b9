"""Compiled join of one id bucket, with positions of predictions and outcomes, and activity of models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.buckets.contract import RECORD, Activity, InvalidOfModel, SequencePosition
from streamwatch.core.buckets.made import POSITION_COLUMNS, AcceptedPredictions, PredictionPositions
from streamwatch.core.buckets.pieces import INVALID, Chunk
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.join import CHECK_IDLE, DONE, CompiledJoin
from streamwatch.core.join.layout import (
    ACCEPTED,
    NO_TIME,
    NOTHING,
    PREDICTIONS,
    RESOLVED_FROM,
    ROW,
)
from streamwatch.core.records.batch import OBJECT, Records, copied, taken
from streamwatch.core.records.events import Event, Name, Partition, segments_of
from streamwatch.core.records.outcomes import SEGMENTS_FROM, OutcomeBatch
from streamwatch.core.specs import JoinSpec


class ColumnReportedModel(msgspec.Struct, array_like=True):
    """Totals reported so far of a model that is not idle."""

    model: Name
    was_active: bool
    first: SequencePosition = ()
    accepted: int = 0
    joined: int = 0
    left: int = 0
    last: tuple[int, int] = (-1, -1)
    """Latest record time and event time, as in `Activity`; revisions of a prediction count, too."""


class ColumnReportedActivity:
    """Tracks the totals reported of each model, and returns the activity since.

    Parameters
    ----------
    join
        Join in which the models are active.
    """

    __slots__ = ("_by_name", "_join", "_new")

    def __init__(self, join: CompiledJoin) -> None:
        self._join = join
        self._by_name: dict[str, ColumnReportedModel] = {}
        self._new: list[Activity] = []

    def is_new(self, model: str) -> bool:
        """Return whether no prediction of the model was accepted since it was last idle."""
        return model not in self._by_name

    def begin(self, model: str, first: SequencePosition) -> None:
        """Record that a prediction of a new or idle model was accepted."""
        self._by_name[model] = ColumnReportedModel(model, was_active=False, first=first)

    def take_new(self) -> list[Activity]:
        """Activity since the last call; to be called between batches."""
        self._add_new(self._by_name, self._join.arrays.activity)
        new, self._new = self._new, []
        return new

    def retire(self, clock_ms: int) -> None:
        """Remove the join's models that are idle at `clock_ms`."""
        activity = copied(self._join.arrays.activity)
        idle = [name for name in self._join.retire(clock_ms) if name in self._by_name]
        self._add_new(idle, activity)
        for name in idle:
            del self._by_name[name]

    def _add_new(self, names: Iterable[str], activity: Records) -> None:
        """Compare the join's totals of these models with those reported, and record the differences."""
        for name in names:
            reported, row = self._by_name[name], activity[self._join.models[name]]
            joined, left = int(row["joined"]), int(row["left"])
            accepted = int(row["pending"]) + joined + left
            new = (accepted - reported.accepted, joined - reported.joined, left - reported.left)
            last = int(row["last_ms"]), int(row["last_event_ms"])
            if any(new) or last != reported.last:
                self._new.append(Activity(name, reported.first, reported.was_active, *new, *last))
                reported.first, reported.was_active = (), True
                reported.accepted, reported.joined, reported.left = accepted, joined, left
                reported.last = last

    def state(self) -> list[ColumnReportedModel]:
        """State from which `restore` continues; to be taken between batches."""
        return list(self._by_name.values())

    def restore(self, state: list[ColumnReportedModel]) -> None:
        """Continue from a state, with the join restored from the same time."""
        self._by_name = {reported.model: reported for reported in state}
        self._new = []


# Compiled join of one id bucket, which records positions of accepted predictions and of outcomes.


RESOLUTION: Final = (*POSITION_COLUMNS, "number")
"""Columns of a resolution's position: the record's position, and the number of its outcome.

For assumed outcomes only the time is used.
"""


@dataclass(frozen=True, slots=True)
class PositionedOutcomes:
    """Outcomes, with the positions of their resolutions and predictions."""

    outcomes: OutcomeBatch
    resolved: NDArray[np.int64]
    """Columns `RESOLUTION`, shape (n, 5)."""
    accepted: NDArray[np.int64]
    """Columns `POSITION_COLUMNS`, shape (n, 4)."""
    own_ms: NDArray[np.int64]
    """Times of the predictions, shape (n,); 0 unless outcomes are evaluated in the order of predictions."""


def share_of(spec: JoinSpec, id_buckets: int) -> JoinSpec:
    """Derive the specification of one id bucket: its share of the limits of entries, and no stream of folds.

    Only model buckets see all folds of a model.
    """

    def share(limit: int) -> int:
        return -(-limit // id_buckets)

    return replace(
        spec,
        max_pending=share(spec.max_pending),
        max_labels=share(spec.max_labels),
        max_dedup_entries=share(spec.max_dedup_entries),
        folds_share_stream=False,
    )


class ColumnJoin:
    """Joins events of one id bucket in order.

    Parameters
    ----------
    spec
        Result of `share_of`.
    start_ms
        Record time at which reading begins; None at the beginning of the topics.
    rank
        Function from a partition to its rank among all.
    """

    def __init__(self, spec: JoinSpec, start_ms: int | None, rank: Callable[[Partition], int]) -> None:
        self._rank = rank
        self._ordered = spec.order == "prediction_time"
        self.join = CompiledJoin(spec, _digests, numbered=True)
        self.join.start_ms = start_ms
        self.prediction_positions = PredictionPositions()
        self.reported_activity = ColumnReportedActivity(self.join)
        self.partition_numbers: dict[Partition, int] = {}
        """Numbers of partitions, in the order in which they first occurred."""
        self.outcomes: list[PositionedOutcomes] = []
        """Outcomes of this batch."""
        self.accepted = AcceptedPredictions()
        """Predictions accepted in this batch."""
        self.invalid: list[InvalidOfModel] = []
        """Invalid records with a model in this batch."""

    @property
    def counters(self) -> JoinCounters:
        """Counters, without those that model buckets count."""
        counters = replace(self.join.counters, models_retired=0)
        return replace(counters, predictions_resolved=0) if self._ordered else counters

    @property
    def ranks(self) -> list[int]:
        """Ranks of partitions by number."""
        return [self._rank(partition) for partition in self.partition_numbers]

    def feed(self, chunks: Sequence[tuple[Partition, Chunk]], before_ms: int, reached_ms: int) -> None:
        """Join events, and let time pass up to the end of the batch.

        Parameters
        ----------
        chunks
            Chunks of each partition, ordered by rank, each in the order of its log.
        before_ms
            Time up to which everything was joined before.
        reached_ms
            Time up to which everything is joined afterwards.
        """
        self.outcomes, self.invalid = [], []
        self.accepted = AcceptedPredictions()
        rows, positions = self._in_order(chunks, before_ms, reached_ms)
        self._take(rows, positions)
        oldest = int(self.join.arrays.totals["first"][0, PREDICTIONS])
        pending = None if oldest < 0 else int(self.join.arrays.entries["label_at_prediction"][oldest])
        self.prediction_positions.forget_before(pending)
        self.join.release_names()

    def _in_order(
        self, chunks: Sequence[tuple[Partition, Chunk]], before_ms: int, reached_ms: int
    ) -> tuple[Records, NDArray[np.int64]]:
        """Build the join's rows in order of the sequence, and their positions; a last row ends the batch."""
        count = sum(len(chunk.rows) for _, chunk in chunks)
        rows, positions = np.zeros(count + 1, ROW), np.zeros((count + 1, len(POSITION_COLUMNS)), np.int64)
        rows["side"][count], rows["record_ms"][count] = NOTHING, reached_ms
        positions[count, 0] = reached_ms
        start = 0
        events: list[Event] = []
        of_events: list[NDArray[np.intp]] = []
        for partition, chunk in chunks:
            end = start + len(chunk.rows)
            partition_number = self.partition_numbers.setdefault(partition, len(self.partition_numbers))
            self._fill(rows[start:end], positions[start:end], chunk, partition_number)
            rows["topic"][start:end] = self.join.names.topics[partition.topic]
            at = np.flatnonzero(chunk.rows["side"] == OBJECT)
            if len(at):
                of_events.append(start + at)
                events += self._events(chunk, at, partition, before_ms)
            start = end
        order = np.argsort(
            positions[:, 0], kind="stable"
        )  # they are ordered by rank, offset and event already
        rows, positions = taken(rows, order), positions.take(order, axis=0)
        np.maximum(positions[:, 0], before_ms, out=positions[:, 0])
        rows["record_ms"] = positions[:, 0]
        event_positions = np.empty(0, np.intp)
        if of_events:
            moved = np.empty(len(order), np.intp)
            moved[order] = np.arange(len(order))
            event_positions = moved[np.concatenate(of_events)]
            by_position = np.argsort(event_positions)
            events = [events[number] for number in by_position.tolist()]
            event_positions = event_positions[by_position]
        self.join.convert_objects(rows, event_positions, events)
        return rows, positions

    def _fill(self, rows: Records, positions: NDArray[np.int64], chunk: Chunk, partition_number: int) -> None:
        found, join = chunk.rows, self.join
        rows["low"], rows["high"] = found["low"], found["high"]
        own_ms = found["timestamp_ms"]
        rows["timestamp_ms"] = np.where(own_ms < 0, NO_TIME, own_ms)
        rows["model"] = _numbered(found["model"], [join.models[name] for name in chunk.models])
        rows["class"] = _numbered(found["class"], [join.classes[name] for name in chunk.classes])
        rows["side"] = np.where(found["side"] == OBJECT, NOTHING, found["side"])
        rows["scores"] = self._segments(found["segments"], chunk.segments)
        positions[:, 0], positions[:, 1] = found["time_ms"], partition_number
        positions[:, 2], positions[:, 3] = found["offset"], found["event"]

    def _segments(self, column: NDArray[np.int32], texts: Sequence[str]) -> NDArray[np.int32]:
        """Numbers of segment values in the join; every prediction beyond the limit is counted."""
        numbers = [-1] * len(texts)
        counts = np.bincount(column + 1, minlength=len(texts) + 1)[1:].tolist() if texts else []
        segments = self.join.names.segments
        for number, count in enumerate(counts):
            if count:
                before = segments.over_limit
                numbers[number] = SEGMENTS_FROM + segments.number(segments_of(texts[number]))
                segments.over_limit += (count - 1) * (segments.over_limit - before)
        return _numbered(column, numbers)

    def _events(
        self, chunk: Chunk, at: NDArray[np.intp], partition: Partition, before_ms: int
    ) -> list[Event]:
        """Build the events of a chunk's objects."""
        events: list[Event] = []
        rank = self._rank(partition)
        for number, time_ms in zip(
            chunk.rows["object"][at].tolist(), chunk.rows["time_ms"][at].tolist(), strict=True
        ):
            row, record_ms = chunk.objects[number], max(before_ms, time_ms)
            if row.kind == INVALID and row.model is not None:
                self.invalid.append(
                    InvalidOfModel((record_ms, RECORD, rank, row.offset, row.event), row.model)
                )
                row = msgspec.structs.replace(row, model=None)  # `self.invalid` counts it by model
            events.append(row.event_at(partition, record_ms))
        return events

    def _take(self, rows: Records, positions: NDArray[np.int64]) -> None:
        join, at, why = self.join, 0, CHECK_IDLE
        while why != DONE:
            start = at
            at, why = join.take(rows, at)
            accepted = start + np.flatnonzero(rows["side"][start:at] == ACCEPTED)
            if len(accepted):
                self._accept(rows["model"][accepted], positions[accepted])
            own_ms = join.timing()["prediction_ms"] if self._ordered else None
            for outcomes in join.take_outcomes(0):
                self._note(outcomes, positions, own_ms)
            if why == CHECK_IDLE:
                self.reported_activity.retire(int(rows[at]["record_ms"]))

    def _accept(self, models: NDArray[np.int32], positions: NDArray[np.int64]) -> None:
        """Record the positions of accepted predictions, and begin the activity of new or idle models."""
        self.prediction_positions.add(positions)
        names = self.join.models.names
        self.accepted.add(models, names, positions)
        numbers, firsts = np.unique(models, return_index=True)
        for number, first in sorted(zip(numbers.tolist(), firsts.tolist(), strict=True), key=lambda e: e[1]):
            if self.reported_activity.is_new(names[number]):
                time_ms, partition_number, offset, event = positions[first].tolist()
                position = (time_ms, RECORD, self.ranks[partition_number], offset, event)
                self.reported_activity.begin(names[number], position)

    def _note(
        self, outcomes: OutcomeBatch, positions: NDArray[np.int64], own_ms: NDArray[np.int64] | None
    ) -> None:
        if not len(outcomes):
            return
        records = outcomes.records
        accepted = self.prediction_positions.of(records["label_at_prediction"])
        resolver = records["assumed"] - RESOLVED_FROM
        is_assumed = resolver < 0
        records["assumed"], records["label_at_prediction"] = is_assumed, -1
        resolved = np.zeros((len(records), len(RESOLUTION)), np.int64)
        resolved[:, :-1] = positions.take(np.maximum(resolver, 0), axis=0)
        resolved[is_assumed] = 0
        resolved[:, 0] = np.where(is_assumed, records["event_ms"], resolved[:, 0])
        numbers = np.arange(len(records))
        begins = np.concatenate([[True], resolver[1:] != resolver[:-1]])
        resolved[:, -1] = np.where(
            is_assumed, 0, numbers - np.maximum.accumulate(np.where(begins, numbers, 0))
        )
        made_ms = np.zeros(len(records), np.int64) if own_ms is None else own_ms
        self.outcomes.append(PositionedOutcomes(outcomes, resolved, accepted, made_ms))


def _numbered(column: NDArray[np.int32], numbers: Sequence[int]) -> NDArray[np.int32]:
    """Convert a chunk's numbers to the join's; -1 stays -1."""
    return np.array([*numbers, -1], np.int32)[column]


def _digests(ids: Sequence[str]) -> bytes:
    """Join ids, which are digests as latin-1 text, to bytes."""
    return "".join(ids).encode("latin-1")
