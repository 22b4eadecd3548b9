"""Model bucket: merges the parts sent by id buckets into one sequence of outcomes, and evaluates it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, TypeAlias

import msgspec

from streamwatch.core.buckets.contract import (
    ALARM,
    MODEL,
    PAIRS,
    TICK,
    TOTALS,
    BucketsSpec,
    FeedResult,
    SequencePosition,
)
from streamwatch.core.buckets.log import BaseReader, BatchInput, decode_entry, encode_base, encode_entry
from streamwatch.core.buckets.made import counts_of
from streamwatch.core.buckets.model_sequence import ColumnSequence
from streamwatch.core.buckets.parts import PARTS, ColumnPart
from streamwatch.core.buckets.view import encode_totals
from streamwatch.core.join.caveats import AgreementState
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.durable.totals import JoinModelsState, Stream, state_of_models
from streamwatch.core.records.events import Alarm, Name

# State of a model bucket as parts of a base: everything else first, then snapshots of its models.


@dataclass(frozen=True, slots=True)
class ModelsState:
    """State of a model bucket without the snapshots of models."""

    batch: int
    reached_ms: int
    alarms: int
    counters: JoinCounters
    models: JoinModelsState
    agreement: AgreementState
    histories: bytes
    """State of the label histories."""
    made: dict[Name, int]
    """Numbers of predictions that the models made, modulo 2³²."""
    streams: dict[Name, Stream]
    order: bytes
    held_assumed: int
    totals: bytes
    """Totals of the estimators."""
    comparisons: bytes | None


_BUCKET_STATE: Final = msgspec.msgpack.Decoder(ModelsState)
_SNAPSHOTS: Final = msgspec.msgpack.Decoder(list[bytes])


def state_of(bucket: ColumnModelBucket) -> tuple[ModelsState, Iterator[tuple[object, int]]]:
    """Return the state without snapshots of models, and these with their sizes."""
    sequence = bucket.sequence
    monitors = sequence.monitors
    state = ModelsState(
        bucket.batch,
        bucket.reached_ms,
        bucket.alarms,
        sequence.counters,
        state_of_models(sequence.models),
        sequence.agreement.state(),
        sequence.labels.state(bucket.reached_ms - sequence.kept_ms),
        dict(sorted(sequence.made.by_model.items())),
        sequence.streams.state(),
        sequence.order.state(),
        sequence.held_assumed,
        monitors.totals(),
        None if monitors.comparisons is None else monitors.comparisons.snapshot(),
    )
    return state, ((snapshot, len(snapshot)) for snapshot in monitors.snapshots(monitors.models()))


def restore_part(bucket: ColumnModelBucket, body: bytes, *, is_first: bool) -> None:
    """Restore the next body of a base into a new bucket.

    Raises
    ------
    msgspec.DecodeError
        If it is not of this version.
    """
    sequence = bucket.sequence
    if not is_first:
        for snapshot in _SNAPSHOTS.decode(body):
            sequence.monitors.restore(snapshot)
        return
    state = _BUCKET_STATE.decode(body)
    bucket.batch, bucket.reached_ms, bucket.alarms = state.batch, state.reached_ms, state.alarms
    sequence.counters, sequence.held_assumed = state.counters, state.held_assumed
    sequence.models.restore(state.models.models(), state.models.looked)
    sequence.agreement.restore(state.agreement)
    sequence.labels.restore(state.histories)
    sequence.made = counts_of(state.made)
    sequence.streams.restore(state.streams)
    sequence.order.restore(state.order)
    sequence.monitors.restore_totals(state.totals)
    if sequence.monitors.comparisons is not None and state.comparisons is not None:
        sequence.monitors.comparisons.restore(state.comparisons)


_Step: TypeAlias = tuple[SequencePosition, Callable[[Any], None], object]
_KEPT_ALARMS: Final = 10_000
_ENCODER: Final = msgspec.msgpack.Encoder()


class ColumnModelBucket:
    """Model bucket (`contract.Bucket`): the estimators of some models.

    Parameters
    ----------
    number
        Number of the model bucket, from 0.
    spec
        Partitioning of the stream.
    """

    def __init__(self, number: int, spec: BucketsSpec) -> None:
        self._number = number
        self._name = f"models/{number}"
        self._spec = spec
        self._reader = BaseReader(self._name)
        self.sequence = ColumnSequence(number, spec)
        self.batch = -1
        """Number of the last batch."""
        self.reached_ms = -1
        """Time the bucket has reached."""
        self.alarms = 0
        """Number of alarms since the start."""

    def feed(self, batch: int, pieces: Sequence[bytes], end_ms: int | None) -> FeedResult:
        """Process one batch; see `contract.Bucket`."""
        self._reader.end()
        if batch <= self.batch:
            raise ValueError(f"expected a batch after {self.batch} in bucket {self._name}, got {batch}")
        parts = sorted((PARTS.decode(piece) for piece in pieces), key=lambda part: part.sender)
        self._check(parts)
        self.batch = batch
        self.reached_ms = max(self.reached_ms, *(part.reached_ms for part in parts))
        sequence = self.sequence
        sequence.begin(parts)
        for part in parts:
            for activity in part.activities:
                if activity.was_active:
                    sequence.continue_activity(activity)
        for _, step, argument in sorted(_steps(sequence, parts), key=itemgetter(0)):
            step(argument)
        sequence.end(self.reached_ms, ended=any(part.ended for part in parts))
        return FeedResult((), self._results(), encode_entry(BatchInput(self._name, batch, end_ms, pieces)))

    def take_in(self, delta: bytes) -> None:
        """Repeat a feed or restore a part of a base; see `contract.Bucket`."""
        entry = decode_entry(delta, self._name)
        if isinstance(entry, BatchInput):
            self.feed(entry.batch, entry.pieces, entry.end_ms)
            return
        self._reader.take(entry)
        restore_part(self, entry.body, is_first=entry.number == 0)

    def base(self) -> list[bytes]:
        """Encode the whole state; see `contract.Bucket`."""
        return encode_base(self._name, *state_of(self))

    def _check(self, parts: Sequence[ColumnPart]) -> None:
        for part in parts:
            if part.bucket != self._number:
                raise ValueError(f"expected parts for bucket {self._name}, got one for models/{part.bucket}")
        senders = [part.sender for part in parts]
        if senders != list(range(self._spec.id_buckets)):
            raise ValueError(
                f"expected one part of each of {self._spec.id_buckets} id buckets in bucket {self._name}, "
                f"got parts of {senders}"
            )

    def _results(self) -> list[tuple[str, str, bytes]]:
        sequence, name = self.sequence, self._name
        monitors = sequence.monitors
        alive = set(monitors.models())
        touched = sorted(sequence.touched)
        living = [model for model in touched if model in alive]
        snapshots = dict(zip(living, monitors.snapshots(living), strict=True))
        results = [(MODEL, model, snapshots.get(model, b"")) for model in touched]
        if sequence.paired and monitors.comparisons is not None:
            results.append((PAIRS, name, monitors.comparisons.snapshot()))
        for alarm in sequence.alarms:
            results += self._alarm(alarm)
        results.append((TOTALS, name, encode_totals(sequence.totals(self.reached_ms))))
        return results

    def _alarm(self, alarm: Alarm) -> list[tuple[str, str, bytes]]:
        self.alarms += 1
        results = [(ALARM, f"{self._name}/{self.alarms:012d}", _ENCODER.encode(alarm))]
        if self.alarms > _KEPT_ALARMS:
            results.append((ALARM, f"{self._name}/{self.alarms - _KEPT_ALARMS:012d}", b""))
        return results


def _steps(sequence: ColumnSequence, parts: Sequence[ColumnPart]) -> list[_Step]:
    """Steps of a batch besides its outcomes, each with its position."""
    steps: list[_Step] = []
    for part in parts:
        steps += [((ms, TICK), sequence.tick, ms) for ms in part.ticks]
        steps += [(each.position, sequence.count_invalid, each) for each in part.invalid]
        started = [activity for activity in part.activities if not activity.was_active]
        steps += [(each.first, sequence.start_activity, each) for each in started]
    return steps
