"""Reading and validation of the values that commits wrote of a compiled join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.cold.overflow import OutsideCounts, Overflow
from streamwatch.core.join.counters import EARLY, PENDING, RETAINED, UNMATCHED
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.entry_logs import (
    ChangedRows,
    DedupValue,
    Note,
    Run,
    dedup_value,
    unpack_changed,
    unpack_side,
)
from streamwatch.core.join.durable.held_log import HeldValues
from streamwatch.core.join.durable.packed import (
    CHANGED,
    CLASS,
    DEDUP,
    HELD,
    HELD_PAIRS,
    HELD_SCORES,
    MODEL,
    MOST_POSITIONS,
    OBSOLETE,
    OUTSIDE,
    SCORES,
    SEGMENTS,
    SIDE,
    TOPIC,
    ObsoletePositions,
    has_names,
    parts_of,
    unpack_dedup,
    unpack_obsolete,
    unpack_waiting,
)
from streamwatch.core.join.durable.packed_scores import unpack_scores
from streamwatch.core.join.durable.totals import JoinTotals
from streamwatch.core.join.layout import GENERATIONS_KEPT, POSITION_BITS, Records
from streamwatch.core.join.names import JoinNames
from streamwatch.core.join.table import NUMBERS, DedupState
from streamwatch.core.records.events import fold_of, segments_of
from streamwatch.core.records.scores import NO_LISTS, ScoreLists, joined_lists

Number = TypeVar("Number", bound=np.generic)
_OUTSIDE: Final = msgspec.msgpack.Decoder(OutsideCounts)


class WaitingRun(NamedTuple):
    """Waiting entries of one value, still packed to save memory, and the columns that give their order."""

    first: int
    """Position of the first entry."""
    value: bytes
    record_ms: NDArray[np.int64]
    rewritten: NDArray[np.int32]
    """Number of times that each entry was written before."""
    model: NDArray[np.int32]
    state: NDArray[np.int8]
    has_segments: bool


@dataclass(slots=True)
class ColumnValues:
    """Values of a store by kind, in the order of their keys."""

    models: dict[int, str] = field(default_factory=dict[int, str])
    classes: dict[int, str] = field(default_factory=dict[int, str])
    segments: dict[int, str] = field(default_factory=dict[int, str])
    topics: dict[int, str] = field(default_factory=dict[int, str])
    dedup: dict[int, list[tuple[DedupValue, bytes]]] = field(
        default_factory=dict[int, list[tuple[DedupValue, bytes]]]
    )
    """Dedup entries by generation: each value's description, and the packed value."""
    obsolete: list[tuple[int, ObsoletePositions]] = field(default_factory=list[tuple[int, ObsoletePositions]])
    """Entries that stopped waiting, or were matched, by commit."""
    changed: list[tuple[int, ChangedRows]] = field(default_factory=list[tuple[int, ChangedRows]])
    """Predictions that changed, by commit."""
    side: dict[int, bytes] = field(default_factory=dict[int, bytes])
    """Side columns by position of the first entry of their run."""
    scores: dict[int, bytes] = field(default_factory=dict[int, bytes])
    """Scores by position of the first entry of their run."""
    held: HeldValues = field(default_factory=HeldValues)
    """Outcomes held for the order of predictions."""
    outside: OutsideCounts = OutsideCounts()  # noqa: RUF009 - it is frozen
    waiting: list[WaitingRun] = field(default_factory=list[WaitingRun])

    def add(self, key: bytes, value: bytes) -> None:
        """Add one value; raises PackedError or ValueError if it is not valid."""
        kind, first, second = parts_of(key)
        named = {MODEL: self.models, CLASS: self.classes, SEGMENTS: self.segments, TOPIC: self.topics}
        as_it_is = {
            HELD: self.held.runs,
            HELD_SCORES: self.held.scores,
            HELD_PAIRS: self.held.pairs,
            SIDE: self.side,
            SCORES: self.scores,
        }
        if kind in named:
            if not value:
                raise PackedError("expected a name, got an empty one")
            named[kind][first] = value.decode()
            if kind == SEGMENTS:
                segments_of(self.segments[first])
            elif kind == MODEL:
                fold_of(self.models[first])
        elif kind in as_it_is:
            as_it_is[kind][first] = value
        elif kind == DEDUP:
            rows = unpack_dedup(value)
            self.dedup.setdefault(first, []).append((dedup_value(second, value, rows), value))
        elif kind == OUTSIDE:
            self.outside = _OUTSIDE.decode(value)
        elif kind == OBSOLETE:
            self.obsolete.append((first, unpack_obsolete(value)))
        elif kind == CHANGED:
            self.changed.append((first, unpack_changed(value)))
        else:
            self.waiting.append(_waiting_run(first, value))


def _waiting_run(first: int, value: bytes) -> WaitingRun:
    rows = unpack_waiting(value)
    return WaitingRun(
        first,
        value,
        rows.record_ms,
        rows.rewritten.astype(np.int32),
        rows.model.astype(np.int32),
        rows.state.astype(np.int8),
        bool((rows.segments >= 0).any()),
    )


def read_values(items: Iterable[tuple[bytes, bytes]]) -> ColumnValues:
    """Read all values of a store.

    Raises
    ------
    PackedError
        If one of them is not what a commit writes; the message names its key.
    """
    values = ColumnValues()
    for key, value in items:
        try:
            values.add(key, value)
        except ValueError as error:
            raise PackedError(f"the value under {key.hex()} cannot be read: {error}") from error
    return values


class WaitingEntries:
    """Waiting entries, in order of arrival.

    Parameters
    ----------
    values
        Values of the store.

    Raises
    ------
    PackedError
        If runs are not contiguous, or if scores, side columns or changes belong to entries that were never
        written.
    """

    def __init__(self, values: ColumnValues) -> None:
        self.runs = [
            Run(run.first, len(run.record_ms), run.first in values.scores, run.first in values.side)
            for run in values.waiting
        ]
        firsts = {run.first for run in self.runs}
        if values.side.keys() - firsts:
            raise PackedError("expected side columns of runs of entries, got some of no run")
        if values.scores.keys() - firsts:
            raise PackedError("expected scores of runs of entries, got some of no run")
        for one, other in zip(self.runs, self.runs[1:], strict=False):
            if one.first + one.count != other.first:
                raise PackedError(
                    f"expected a run of entries from {one.first + one.count}, got {other.first}"
                )
        self.first = self.runs[0].first if self.runs else 0
        self._count = sum(run.count for run in self.runs)
        if self.first + self._count > MOST_POSITIONS:
            raise PackedError(f"expected runs of entries up to {MOST_POSITIONS}, got one at {self.first}")
        self._read = values.waiting
        self._record_ms = _joined([run.record_ms for run in self._read], np.int64)
        self._rewritten = _joined([run.rewritten for run in self._read], np.int32)
        self._model = _joined([run.model for run in self._read], np.int32)
        self._state = _joined([run.state for run in self._read], np.int8)
        self.notes: list[Note] = []
        dead = np.zeros(self._count, np.bool_)
        for commit, obsolete in values.obsolete:
            if obsolete.newest >= self.first + self._count:
                raise PackedError(f"commit {commit} notes entry {obsolete.newest} that was not written")
            self.notes.append(Note(OBSOLETE, commit, obsolete.newest, obsolete.total))
            dead[obsolete.dead.positions(self.first) - self.first] = True
            matched = obsolete.matched.positions(self.first) - self.first
            self._state[matched] = np.where(self._state[matched] == UNMATCHED, RETAINED, self._state[matched])
        self._positions = self._in_order(np.flatnonzero(~dead))
        self._scores = values.scores
        self._side = values.side
        self._changed = self._lasting(values.changed)
        self.notes.sort(key=lambda note: note.commit)

    def _lasting(
        self, changed: Sequence[tuple[int, ChangedRows]]
    ) -> list[tuple[ChangedRows, NDArray[np.intp]]]:
        """Return the changed predictions, and the indices of those whose position is in the runs."""
        found: list[tuple[ChangedRows, NDArray[np.intp]]] = []
        for commit, rows in changed:
            newest = int(rows.position[-1])
            if newest >= self.first + self._count:
                raise PackedError(f"commit {commit} notes entry {newest} that was not written")
            self.notes.append(Note(CHANGED, commit, newest, len(rows.position)))
            lasting = np.flatnonzero(rows.position >= self.first)
            if (self._state[rows.position[lasting] - self.first] != PENDING).any():
                raise PackedError(f"expected changes of predictions in commit {commit}, got some of others")
            found.append((rows, lasting))
        return found

    def __len__(self) -> int:
        return len(self._positions)

    def pending(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Model numbers and record times (ms) of pending predictions."""
        at = self._positions[self._state[self._positions] == PENDING]
        return self._model[at].astype(np.int64), self._record_ms[at]

    def _in_order(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        chosen = (positions, -self._rewritten[positions], self._record_ms[positions])
        return positions[np.lexsort(chosen)]

    def fill(self, entries: Records, log_positions: NDArray[np.int64]) -> NDArray[np.int32]:
        """Write the entries to the start of the arrays; return the entry of each position, -1 for none."""
        at, count = self._positions, len(self._positions)
        holders = np.full(self._count, -1, np.int32)
        holders[at] = np.arange(count, dtype=np.int32)
        log_positions[:count] = (at + self.first + 1) | self._rewritten[at].astype(np.int64) << POSITION_BITS
        entries["state"][:count] = self._state[at]
        entries["model"][:count] = self._model[at]
        entries["record_ms"][:count] = self._record_ms[at]
        for run, chosen, x in self._living(holders):
            rows = unpack_waiting(run.value)
            pending = rows.state[chosen] == PENDING
            named = rows.named[chosen]
            entries["low"][x], entries["high"][x] = rows.low[chosen], rows.high[chosen]
            entries["timestamp_ms"][x] = rows.timestamp_ms[chosen]
            entries["predicted_class"][x] = np.where(pending, named, -1)
            entries["true_or_scores"][x] = np.where(pending, -1, named)
            entries["label_at_prediction"][x] = rows.label_at_prediction[chosen]
            entries["topic"][x] = rows.topic[chosen]
        for rows, chosen, x in self._changes(holders):
            entries["timestamp_ms"][x] = rows.timestamp_ms[chosen]
            entries["predicted_class"][x] = rows.predicted_class[chosen]
            entries["label_at_prediction"][x] = rows.label_at_prediction[chosen]
        return holders

    def _changes(
        self, holders: NDArray[np.int32]
    ) -> Iterator[tuple[ChangedRows, NDArray[np.intp], NDArray[np.int32]]]:
        """Iterate over changes of predictions that still wait: changes, indices in them, and entries."""
        for rows, lasting in self._changed:
            held = holders[rows.position[lasting] - self.first]
            yield rows, lasting[held >= 0], held[held >= 0]

    def side(self, holders: NDArray[np.int32]) -> dict[str, NDArray[np.int64]]:
        """Side columns of the waiting entries by name, in the order of `fill`; 0 without a value.

        Raises
        ------
        PackedError
            If they are not what commits write.
        """
        found: dict[str, NDArray[np.int64]] = {}

        def put(value: bytes, rows: int, chosen: NDArray[np.intp], x: NDArray[np.int32]) -> None:
            for name, column in unpack_side(value, rows).items():
                found.setdefault(name, np.zeros(len(self), np.int64))[x] = column[chosen]

        for run, chosen, x in self._living(holders):
            if run.first in self._side:
                put(self._side[run.first], len(run.record_ms), chosen, x)
        for rows, chosen, x in self._changes(holders):
            for column in found.values():
                column[x] = 0
            if rows.side:
                put(rows.side, len(rows.position), chosen, x)
        return found

    def _living(
        self, holders: NDArray[np.int32]
    ) -> Iterator[tuple[WaitingRun, NDArray[np.intp], NDArray[np.int32]]]:
        """Iterate over the runs with entries that still wait: run, indices in it, and entries of the join."""
        start = 0
        for run in self._read:
            held = holders[start : start + len(run.record_ms)]
            start += len(held)
            chosen = np.flatnonzero(held >= 0)
            if len(chosen):
                yield run, chosen, held[chosen]

    def segments(self, holders: NDArray[np.int32]) -> NDArray[np.int64]:
        """Number of the segments of each waiting entry, in the order of `fill`; -1 without any."""
        segments = np.full(len(self._positions), -1, np.int64)
        for run, chosen, x in self._living(holders):
            if run.has_segments:
                segments[x] = unpack_waiting(run.value).segments[chosen]
        for rows, chosen, x in self._changes(holders):
            segments[x] = rows.segments[chosen]
        return segments

    def scores(self, holders: NDArray[np.int32]) -> tuple[NDArray[np.int32], ScoreLists]:
        """Return the entries with scores, and their scores in the same order, without segments.

        Raises
        ------
        PackedError
            If they are not what commits write.
        """
        parts, count = [NO_LISTS], 0
        of = np.full(len(self), -1, np.int64)  # position of the scores of each entry among all parts

        def put(scored: NDArray[np.int64], scores: ScoreLists, x: NDArray[np.int32]) -> None:
            nonlocal count
            living = x >= 0
            of[x[living]] = count + np.flatnonzero(living)
            parts.append(scores)
            count += len(scored)

        for run, _, _ in self._living(holders):
            if run.first in self._scores:
                rows = len(run.record_ms)
                scored, scores = unpack_scores(self._scores[run.first], rows)
                put(scored, scores, holders[run.first - self.first + scored])
        for rows, chosen, x in self._changes(holders):
            of[x] = -1
            entries = np.full(len(rows.position), -1, np.int32)
            entries[chosen] = x
            put(rows.scored, rows.scores, entries[rows.scored])
        x = np.flatnonzero(of >= 0).astype(np.int32)
        return x, joined_lists(parts).only(of[x])


def _joined(columns: Sequence[NDArray[Number]], kind: type[Number]) -> NDArray[Number]:
    return np.concatenate([np.zeros(0, kind), *columns])


def fill_dedup(
    entries: Records, start: int, values: Mapping[int, Sequence[tuple[DedupValue, bytes]]]
) -> dict[int, tuple[int, int]]:
    """Write dedup entries from `start` on; return (first, end) index by generation."""
    ends: dict[int, tuple[int, int]] = {}
    for generation, dedup_values in sorted(values.items()):
        first = start
        for _, value in dedup_values:
            rows = unpack_dedup(value)
            part = entries[start : start + len(rows.low)]
            for name, column in zip(rows._fields, rows, strict=True):
                part[name] = column
            part["label_at_prediction"] = -1
            part["earlier_or_generation"] = generation & NUMBERS
            start += len(part)
        entries["later"][first:start] = np.arange(first + 1, start + 1)
        if start > first:
            entries["later"][start - 1] = -1
        ends[generation] = first, start
    return ends


# Validation of values that are read back: raises for what commits cannot have written.


def check_outside(names: JoinNames, overflow: Overflow) -> None:
    """Raise PackedError if entries outside the table use numbers without a name."""
    for named, used in (
        (names.models, overflow.contents.cold.models()),
        (names.classes, overflow.contents.cold.classes()),
        (names.segments, overflow.contents.cold.segments()),
    ):
        for numbers in used:
            if not has_names(named, numbers):
                raise PackedError("expected numbers of names in the runs of cold entries, got one released")


def check_names(names: JoinNames, entries: NDArray[np.void]) -> None:
    """Raise PackedError if entries use numbers without a name."""
    pending = entries["state"] == PENDING
    for each, columns in (
        (names.models, (entries["model"],)),
        (
            names.classes,
            (entries["predicted_class"], entries["true_or_scores"], entries["label_at_prediction"]),
        ),
    ):
        named = np.zeros(len(each.names) + 1, np.bool_)
        named[list(each.values())] = True
        named[-1] = True  # for -1, which means no name
        for column in columns:
            if len(column) and not (int(column.min()) >= -1 and int(column.max()) < len(each.names)):
                raise PackedError(f"expected numbers of {len(each.names)} names, got {column.max()}")
            if not named[column].all():
                raise PackedError("expected numbers of names, got one that was released")
    if len(entries) and int(entries["topic"].max()) >= len(names.topics.names):
        raise PackedError(
            f"expected numbers of {len(names.topics.names)} topics, got {entries['topic'].max()}"
        )
    if (entries["model"][pending] < 0).any():
        raise PackedError("expected the model of every prediction, got none of one")


def check_generations(dedup: DedupState) -> None:
    """Raise PackedError if generations of dedup entries are not numbered as they were opened and dropped.

    Each has the number after that of the one before, also after older ones were dropped, and the open one is
    the last.
    """
    numbers = [each.number for each in (*dedup.closed, dedup.opened)]
    first = dedup.opened.number - len(dedup.closed)
    if not first >= 0 or len(numbers) > GENERATIONS_KEPT or numbers != [*range(first, first + len(numbers))]:
        raise PackedError(f"expected generations of dedup entries in succession, got {numbers[:20]}")
    if dedup.floor != first:
        raise PackedError(f"expected generation {first} as the oldest of dedup entries, got {dedup.floor}")


def check_counts(
    states: NDArray[np.int16],
    ends: dict[int, tuple[int, int]],
    totals: JoinTotals,
    outside: OutsideCounts,
    cold: tuple[int, ...],
) -> None:
    """Raise PackedError if the numbers of entries, with those outside the table, differ from the totals."""
    pending = sum(model.pending for model in totals.join_models.models())
    unmatched, retained = int((states == UNMATCHED).sum()), int((states == RETAINED).sum())
    expected = (pending, totals.early, totals.unmatched, totals.retained)
    found = (
        int((states == PENDING).sum()) + cold[0],
        int((states == EARLY).sum()) + cold[1],
        unmatched + outside.unmatched,
        unmatched + retained + cold[2],
    )
    if expected != found:
        raise PackedError(f"expected {expected} predictions and labels of each kind that wait, got {found}")
    dedup = {each.number: each.count for each in (*totals.dedup.closed, totals.dedup.opened) if each.count}
    written = Counter({generation: end - first for generation, (first, end) in ends.items() if end > first})
    written.update(outside.settled)
    if dedup != written:
        raise PackedError(f"expected dedup entries {dedup} by generation, got {written}")
