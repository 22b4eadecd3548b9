"""Model bucket: brings the parts sent by id buckets into one sequence, and evaluates it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, ClassVar, Final, TypeAlias

import msgspec

from streamwatch.core.buckets.contract import ALARM, MODEL, PAIRS, TOTALS, FeedResult
from streamwatch.core.buckets.log import BaseReader, BatchInput, decode_entry, encode_base, encode_entry
from streamwatch.core.buckets.model_sequence import ModelSequence
from streamwatch.core.buckets.model_state import restore_part, state_of
from streamwatch.core.buckets.parts import PARTS, Part
from streamwatch.core.buckets.places import TICK, Place
from streamwatch.core.buckets.spec import BucketsSpec
from streamwatch.core.buckets.totals import encode_totals
from streamwatch.core.events import Alarm

_Step: TypeAlias = tuple[Place, Callable[[Any], None], object]
_KEPT_ALARMS: Final = 10_000
_ENCODER: Final = msgspec.msgpack.Encoder()


class ModelBucket:
    """Model bucket (`contract.Bucket`) that evaluates outcome by outcome; `columns` has one in columns.

    Parameters
    ----------
    number
        Number of the model bucket, from 0.
    spec
        Partitioning of the stream.
    """

    FORM: ClassVar[str] = ""
    """Suffix of the bucket's name in its log, so that logs of other forms are refused."""

    def __init__(self, number: int, spec: BucketsSpec) -> None:
        self._number = number
        self._name = f"models/{number}"
        self._log_name = self._name + self.FORM
        self._spec = spec
        self._reader = BaseReader(self._log_name)
        self.sequence = self._sequence_of(number, spec)
        self.batch = -1
        """Number of the last batch."""
        self.reached_ms = -1
        """Time the bucket has reached."""
        self.alarms = 0
        """Number of alarms since the start."""

    def feed(self, batch: int, pieces: Sequence[bytes], end_ms: int | None) -> FeedResult:
        """Process one batch; see `contract.Bucket`."""
        self._reader.check()
        if batch <= self.batch:
            raise ValueError(f"expected a batch after {self.batch} in bucket {self._name}, got {batch}")
        parts = sorted(self._read(pieces), key=lambda part: part.sender)
        self._check(parts)
        self.batch = batch
        self.reached_ms = max(self.reached_ms, *(part.reached_ms for part in parts))
        sequence = self.sequence
        sequence.begin()
        for part in parts:
            for activity in part.activities:
                if activity.was_active:
                    sequence.continue_activity(activity)
        for _, step, argument in sorted(_steps(sequence, parts), key=itemgetter(0)):
            step(argument)
        sequence.end(self.reached_ms, ended=any(part.ended for part in parts))
        return FeedResult(
            (), self._results(), encode_entry(BatchInput(self._log_name, batch, end_ms, pieces))
        )

    def take_in(self, delta: bytes) -> None:
        """Repeat a feed or restore a part of a base; see `contract.Bucket`."""
        entry = decode_entry(delta, self._log_name)
        if isinstance(entry, BatchInput):
            self.feed(entry.batch, entry.pieces, entry.end_ms)
            return
        self._reader.take(entry)
        restore_part(self, entry.body, is_first=entry.number == 0)

    def base(self) -> list[bytes]:
        """Encode the whole state; see `contract.Bucket`."""
        return encode_base(self._log_name, state_of(self))

    def _sequence_of(self, number: int, spec: BucketsSpec) -> ModelSequence:
        return ModelSequence(number, spec)

    def _read(self, pieces: Sequence[bytes]) -> Sequence[Part]:
        """Decode the parts sent by id buckets."""
        return [PARTS.decode(piece) for piece in pieces]

    def _check(self, parts: Sequence[Part]) -> None:
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
        results = [
            (MODEL, model, monitors.snapshot(model) if model in alive else b"")
            for model in sorted(sequence.touched)
        ]
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


def _steps(sequence: ModelSequence, parts: Sequence[Part]) -> list[_Step]:
    """Steps of a batch, each with its place; an activity precedes an outcome of the same event."""
    steps: list[_Step] = []
    for part in parts:
        steps += [((ms, TICK), sequence.tick, ms) for ms in part.ticks]
        steps += [(each.place, sequence.open_window, each) for each in part.windows]
        steps += [(each.place, sequence.resolve, each) for each in part.outcomes]
        steps += [(each.place, sequence.count_invalid, each) for each in part.invalid]
        started = [activity for activity in part.activities if not activity.was_active]
        steps += [(each.first, sequence.start_activity, each) for each in started]
    return steps
