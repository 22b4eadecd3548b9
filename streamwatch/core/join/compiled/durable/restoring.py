"""What commits wrote of a compiled join, read back: every value looked at once, nonsense refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.durable.dedup_log import DedupValue, dedup_value
from streamwatch.core.join.compiled.durable.keys import (
    CLASS,
    DEDUP,
    LEFT,
    MODEL,
    OUTSIDE,
    SCORES,
    SEGMENTS,
    TOPIC,
    parts_of,
)
from streamwatch.core.join.compiled.durable.packed import (
    DedupRows,
    LeftRows,
    PackedError,
    WaitingRows,
    unpack_dedup,
    unpack_left,
    unpack_waiting,
)
from streamwatch.core.join.compiled.durable.waiting_log import LeftNote, Run
from streamwatch.core.join.compiled.layout import PLACE_BITS, Records
from streamwatch.core.join.compiled.outside.counts import OutsideCounts
from streamwatch.core.join.compiled.waiting import NUMBERS
from streamwatch.core.join.entry import PENDING, RETAINED, UNMATCHED
from streamwatch.core.segments import segments_of

_OUTSIDE: Final = msgspec.msgpack.Decoder(OutsideCounts)
_SCORES: Final = msgspec.msgpack.Decoder(dict[int, dict[str, float]])


@dataclass(slots=True)
class ColumnValues:
    """Values of a store by kind, in the order of their keys."""

    models: dict[int, str] = field(default_factory=dict[int, str])
    classes: dict[int, str] = field(default_factory=dict[int, str])
    segments: dict[int, str] = field(default_factory=dict[int, str])
    topics: dict[int, str] = field(default_factory=dict[int, str])
    dedup: dict[int, list[tuple[DedupValue, DedupRows]]] = field(
        default_factory=dict[int, list[tuple[DedupValue, DedupRows]]]
    )
    """By generation."""
    left: list[tuple[int, LeftRows]] = field(default_factory=list[tuple[int, LeftRows]])
    """By commit."""
    scores: dict[int, dict[str, float]] = field(default_factory=dict[int, dict[str, float]])
    """By place."""
    scored: set[int] = field(default_factory=set[int])
    """Places of the first entries of runs that have scores."""
    outside: OutsideCounts = OutsideCounts()  # noqa: RUF009 - it is frozen
    waiting: list[tuple[int, WaitingRows]] = field(default_factory=list[tuple[int, WaitingRows]])
    """By the place of the first."""

    def add(self, key: bytes, value: bytes) -> None:
        """Take in one value; raises PackedError and ValueError."""
        kind, first, second = parts_of(key)
        if kind == MODEL:
            self.models[first] = value.decode()
        elif kind == CLASS:
            self.classes[first] = value.decode()
        elif kind == SEGMENTS:
            self.segments[first] = value.decode()
            segments_of(self.segments[first])
        elif kind == TOPIC:
            self.topics[first] = value.decode()
        elif kind == DEDUP:
            rows = unpack_dedup(value)
            self.dedup.setdefault(first, []).append((dedup_value(second, value, rows), rows))
        elif kind == OUTSIDE:
            self.outside = _OUTSIDE.decode(value)
        elif kind == LEFT:
            self.left.append((first, unpack_left(value)))
        elif kind == SCORES:
            self.scored.add(first)
            held = _SCORES.decode(value)
            self.scores.update((first + position, scores) for position, scores in held.items())
        else:
            self.waiting.append((first, unpack_waiting(value)))


def values_of(items: Iterable[tuple[bytes, bytes]]) -> ColumnValues:
    """Read all values of a store.

    Raises
    ------
    PackedError
        If one of them is nothing that a commit writes; it names the key.
    """
    values = ColumnValues()
    for key, value in items:
        try:
            values.add(key, value)
        except ValueError as error:
            raise PackedError(f"the value under {key.hex()} cannot be read: {error}") from error
    return values


class WaitingEntries:
    """Entries that wait, in the order in which they came.

    Parameters
    ----------
    values
        What was read.

    Raises
    ------
    PackedError
        If runs do not follow each other, or what left lies behind all of them.
    """

    def __init__(self, values: ColumnValues) -> None:
        self.runs = [Run(first, len(rows.low), first in values.scored) for first, rows in values.waiting]
        for one, other in zip(self.runs, self.runs[1:], strict=False):
            if one.first + one.count != other.first:
                raise PackedError(
                    f"expected a run of entries from {one.first + one.count}, got {other.first}"
                )
        self.first = self.runs[0].first if self.runs else 0
        self._count = sum(run.count for run in self.runs)
        columns = zip(*(rows for _, rows in values.waiting), strict=True)
        parts = [np.concatenate(column) for column in columns]
        self._rows = WaitingRows(*parts) if parts else None  # pyright: ignore[reportArgumentType]
        self.notes: list[LeftNote] = []
        dead = np.zeros(self._count, np.bool_)
        for commit, left in values.left:
            newest = max(int(places[-1]) for places in left if len(places))
            if newest >= self.first + self._count:
                raise PackedError(f"commit {commit} notes entry {newest} that was not written")
            self.notes.append(LeftNote(commit, newest, len(left.dead) + len(left.met)))
            dead[left.dead[left.dead >= self.first] - self.first] = True
            if self._rows is not None:
                met = left.met[left.met >= self.first] - self.first
                state = self._rows.state
                state[met] = np.where(state[met] == UNMATCHED, RETAINED, state[met])
        self._positions = self._in_order(np.flatnonzero(~dead))
        self._scores = values.scores

    def __len__(self) -> int:
        return len(self._positions)

    def pending(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of the models of predictions that wait, and their record times in ms."""
        if self._rows is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        at = self._positions[self._rows.state[self._positions] == PENDING]
        return self._rows.model[at], self._rows.record_ms[at]

    def _in_order(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._rows is None:
            return positions
        chosen = (positions, -self._rows.rewritten[positions], self._rows.record_ms[positions])
        return positions[np.lexsort(chosen)]

    def fill(self, entries: Records, places: NDArray[np.int64]) -> NDArray[np.int32]:
        """Write the first entries; the holders of all places from the first run on."""
        holders = np.full(self._count, -1, np.int32)
        rows, at = self._rows, self._positions
        if rows is None:
            return holders
        count = len(at)
        some = entries[:count]
        pending = rows.state[at] == PENDING
        some["low"], some["high"] = rows.low[at], rows.high[at]
        some["record_ms"], some["timestamp_ms"] = rows.record_ms[at], rows.timestamp_ms[at]
        some["model"], some["state"] = rows.model[at], rows.state[at]
        some["predicted_class"] = np.where(pending, rows.named[at], -1)
        some["true_or_scores"] = np.where(pending, -1, rows.named[at])
        some["label_at_prediction"] = rows.label_at_prediction[at]
        some["topic"] = rows.topic[at]
        places[:count] = (at + self.first + 1) | rows.rewritten[at] << PLACE_BITS
        holders[at] = np.arange(count, dtype=np.int32)
        return holders

    def segments(self) -> NDArray[np.int64]:
        """Number of the segments of each of the first entries, -1 without any."""
        return np.empty(0, np.int64) if self._rows is None else self._rows.segments[self._positions]

    def scores(self, holders: NDArray[np.int32]) -> Iterable[tuple[int, dict[str, float]]]:
        """Entries that have scores, and these; raises PackedError where one has no place."""
        for place, scores in self._scores.items():
            if not 0 <= place - self.first < self._count:
                raise PackedError(f"expected scores of places from {self.first} on, got {place}")
            x = int(holders[place - self.first])
            if x >= 0:
                yield x, scores


def fill_dedup(
    entries: Records, start: int, values: Mapping[int, Sequence[tuple[DedupValue, DedupRows]]]
) -> dict[int, tuple[int, int]]:
    """Write dedup entries from `start` on; the first of each generation and the one behind its last."""
    ends: dict[int, tuple[int, int]] = {}
    for generation, several in sorted(values.items()):
        first = start
        for _, rows in several:
            some = entries[start : start + len(rows.low)]
            some["low"], some["high"], some["model"] = rows.low, rows.high, rows.model
            some["predicted_class"], some["true_or_scores"] = rows.predicted_class, rows.true_class
            some["state"], some["label_at_prediction"] = rows.state, -1
            some["earlier_or_generation"] = generation & NUMBERS
            start += len(some)
        entries["later"][first:start] = np.arange(first + 1, start + 1)
        if start > first:
            entries["later"][start - 1] = -1
        ends[generation] = first, start
    return ends
