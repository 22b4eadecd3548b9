"""Waiting entries and dedup entries as commits write them, with what changed while they waited."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.join.durable.columns import PackedError, pack_columns, unpack_columns
from streamwatch.core.join.durable.packed import CHANGED as CHANGED_KEY
from streamwatch.core.join.durable.packed import (
    DEDUP,
    MOST_POSITIONS,
    OBSOLETE,
    SCORES,
    SIDE,
    WAITING,
    DedupRows,
    entry_columns,
    key_of,
    pack_dedup,
    pack_obsolete,
    pack_times,
    pack_waiting,
    runs_of_positions,
    unpack_dedup,
    unpack_times,
)
from streamwatch.core.join.durable.packed_scores import pack_scores, unpack_scores
from streamwatch.core.join.held_scores import NOTHING_CARRIED, Carried, HeldScores
from streamwatch.core.join.layout import CHANGED, FRONT, POSITION_BITS, POSITION_MASK, Arrays, Records, Side
from streamwatch.core.join.table import DedupMark, unwritten_dedup
from streamwatch.core.records.batch import taken
from streamwatch.core.records.events import Name
from streamwatch.core.records.outcomes import SEGMENTS_FROM
from streamwatch.core.records.scores import NO_LISTS, ScoreLists

# Side columns of waiting entries, as commits write them: names and packed columns.


_STORED: Final = msgspec.msgpack.Decoder(tuple[tuple[Name, ...], bytes])


def pack_side(names: tuple[str, ...], side: Side) -> bytes:
    """Pack the side columns of entries, (n, columns), with their names; empty if all values are 0."""
    if not side.any():
        return b""
    return msgspec.msgpack.encode((names, pack_columns(list(side.T.astype(np.int64)))))


def unpack_side(value: bytes, rows: int) -> Mapping[str, NDArray[np.int64]]:
    """Unpack a value of `pack_side` that is not empty: columns of this many rows by name.

    Raises
    ------
    PackedError
        If it cannot be such a value.
    """
    try:
        names, packed = _STORED.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PackedError(f"expected names and side columns: {error}") from error
    columns = unpack_columns(packed, len(names))
    if any(len(column) != rows or column.dtype != np.int64 for column in columns):
        raise PackedError(f"expected side columns of {rows} entries")
    for name, column in zip(names, columns, strict=True):
        if len(column) and not (int(column.min()) >= 0 and int(column.max()) < 2**31):
            raise PackedError(f"expected values of side column {name} from 0 on, got {column.min()}")
    return {name: column.astype(np.int64) for name, column in zip(names, columns, strict=True)}


# Predictions that changed while they waited, as commits write them: position and new values of each.
#
# What never changes of a prediction (its id, model, record time and topic) is in the run at that position.


_COLUMNS: Final = 6
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(tuple[bytes, bytes, bytes])


class ChangedRows(NamedTuple):
    """Predictions that changed, as columns of equal length."""

    position: NDArray[np.int64]
    """Positions, ascending."""
    timestamp_ms: NDArray[np.int64]
    """`NO_TIME` without a time."""
    predicted_class: NDArray[np.int64]
    label_at_prediction: NDArray[np.int64]
    segments: NDArray[np.int64]
    """Number of the segments; -1 without any."""
    scored: NDArray[np.int64]
    """Indices of the predictions with scores, ascending."""
    scores: ScoreLists
    """Scores of these predictions, in the same order, without segments."""
    side: bytes
    """Side columns (`pack_side`); empty without values."""


def pack_changed(
    positions: NDArray[np.int64],
    entries: Records,
    carried: Carried,
    side: bytes,
) -> bytes:
    """Pack pending predictions (`ENTRY`) at these positions, ascending; see `ChangedRows`."""
    columns = (
        np.diff(positions, prepend=np.int64(0)),
        *pack_times(entries["timestamp_ms"], np.zeros(len(entries), np.int64)),
        entries["predicted_class"].astype(np.int64),
        entries["label_at_prediction"].astype(np.int64),
        carried.segments,
    )
    scores = pack_scores(carried.scored, carried.scores)
    return _ENCODER.encode((pack_columns(columns), scores, side))


def unpack_changed(value: bytes) -> ChangedRows:
    """Unpack the result of `pack_changed`.

    Raises
    ------
    PackedError
        If it cannot be such a result.
    """
    try:
        packed, packed_scores, side = _DECODER.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PackedError(f"expected changed predictions: {error}") from error
    columns = unpack_columns(packed, _COLUMNS)
    if any(column.dtype != np.int64 for column in columns):
        raise PackedError("expected small numbers, got digests")
    steps, timed, own_ms, predicted, label, segments = (column.astype(np.int64) for column in columns)
    positions = np.cumsum(steps)
    count = len(positions)
    if not (
        count
        and int(steps[1:].min(initial=1)) > 0
        and 0 <= int(steps[0]) <= int(positions[-1]) < MOST_POSITIONS
    ):
        raise PackedError("expected ascending positions of changed predictions")
    if not (int(segments.min()) >= -1 and int(segments.max()) < SEGMENTS_FROM):
        raise PackedError(f"expected numbers of segments, got {segments.min()} to {segments.max()}")
    scored, scores = np.zeros(0, np.int64), NO_LISTS
    if packed_scores:
        scored, scores = unpack_scores(packed_scores, count)
    timestamp_ms = unpack_times(timed, own_ms, np.zeros(count, np.int64))
    return ChangedRows(positions, timestamp_ms, predicted, label, segments, scored, scores, side)


# Waiting entries as commits write them: a log of runs, whose oldest are rewritten when many are dead.
#
# Every written entry has a position, numbered across runs. A commit writes a run of the entries that began
# to wait, and the positions of entries written before that no longer wait. The first run is deleted once none
# of its entries wait. When the log has more than twice as many entries as wait, the entries of its oldest
# runs that still wait are written again at its end. So the log is only ever cut at its start, and the
# positions of removed entries before that need not be stored any more.
#
# A prediction that changes while it waits keeps its position, and with it its order: a commit writes the
# position and the new values (`pack_changed`), which are kept as long as the positions of removed entries.
#
# Entries are ordered by record time; within a millisecond by how often they were written, more often first,
# and then by position, since entries that arrived earlier are also rewritten earlier.


OF_FRONT: Final = FRONT >> POSITION_BITS
"""Summand in the number of times written of an entry that was loaded to the front of its queue."""
MOST_REWRITTEN: Final = (CHANGED >> POSITION_BITS) - 1
RUN_ROWS: Final = 4_096
"""Most entries of one value: few enough that their columns stay in the processor's cache."""
SLACK_ROWS: Final = 131_072
"""Size below which a log is not rewritten."""
ROWS_OF_A_VALUE: Final = 4
"""Fixed cost of a value, in entries."""
SCANNED: Final = 16_384
"""Most entries examined per commit to rewrite the start of the log, besides twice the number added."""

Changes = dict[bytes, bytes | None]
"""New values by key; None for a key to remove."""


@dataclass(frozen=True, slots=True)
class Run:
    """Run of entries written as one value."""

    first: int
    """Position of its first entry."""
    count: int
    scored: bool
    """Whether some entries have scores, which are stored separately."""
    sided: bool
    """Whether some entries have values in side columns, which are stored separately."""


@dataclass(frozen=True, slots=True)
class Note:
    """Positions that one commit noted as obsolete or changed."""

    kind: bytes
    """Kind of its key."""
    commit: int
    newest: int
    """Largest of the positions: once the log starts after it, the note is obsolete."""
    count: int


@entry
def mark_positions_left(noted: Any, base: int, holders: Any, offset: int, dead: Any, matched: Any) -> None:
    """Mark the positions of entries that stopped waiting or were matched; remove the former from `holders`.

    Parameters
    ----------
    noted
        int64: see `Arrays.obsolete_positions`.
    base
        First position of the log.
    holders, offset
        int32: entry at every position from `offset` on; written to.
    dead, matched
        uint64, 0: a bit for each position from `base` on; written to.
    """
    for i in range(noted.shape[0]):
        position = (abs(noted[i]) & POSITION_MASK) - 1
        if noted[i] > 0:
            holders[position - offset] = -1
        if position >= base:
            marks = dead if noted[i] > 0 else matched
            marks[(position - base) >> 6] |= np.uint64(1) << np.uint64((position - base) & 63)


class WaitingLog:
    """Runs in the store, and the entry of the join at each position.

    Parameters
    ----------
    runs, notes
        Runs and notes in the store, oldest first.
    holders
        int32: entry at every position from the first run on; -1 if it no longer waits.
    """

    __slots__ = ("_holders", "_notes", "_offset", "_rows", "_runs", "next")

    def __init__(
        self,
        runs: Sequence[Run] = (),
        notes: Sequence[Note] = (),
        holders: NDArray[np.int32] | None = None,
    ) -> None:
        self._runs = deque(runs)
        self._notes = deque(notes)
        self._offset = runs[0].first if runs else 0  # position of the first holder
        self.next = runs[-1].first + runs[-1].count if runs else 0
        """Position of the next entry."""
        self._holders = np.full(1_024, -1, np.int32) if holders is None or not len(holders) else holders
        self._rows = sum(map(_size_of_run, runs)) + sum(map(_size_of_note, notes))

    @property
    def first(self) -> int:
        """Position at which the log starts."""
        return self._runs[0].first if self._runs else self.next

    def write(
        self,
        commit: int,
        arrays: Arrays,
        fresh: NDArray[np.int32],
        scores: HeldScores,
        columns: tuple[str, ...],
        changes: Changes,
    ) -> None:
        """Add to the changes what commit `commit` writes of waiting entries.

        Parameters
        ----------
        commit
            Number of the commit.
        arrays
            Arrays of the join; the positions of written entries are set, and `obsolete_positions` is emptied.
        fresh
            Entries that began to wait since the last commit, queue by queue, each in its order.
        scores
            Scores of pending predictions.
        columns
            Names of the side columns.
        changes
            Changes to add to.
        """
        base, noted, dead, matched = self.first, *self._take_obsolete(arrays)
        still_waiting = self._take_oldest(arrays, len(fresh), changes)
        runs = [runs_of_positions(marks, base, self.first, noted) for marks in (dead, matched)]
        count = sum(int(each[1].sum()) for each in runs)
        if count:
            newest = max(int(each[0].sum() + each[1, -1]) - 1 for each in runs if each.size)
            self._add_note(Note(OBSOLETE, commit, newest, count))
            changes[key_of(OBSOLETE, commit)] = pack_obsolete(*runs)
        self._write_changed(commit, arrays, scores, columns, changes)
        for chosen in (still_waiting, fresh):
            for start in range(0, len(chosen), RUN_ROWS):
                self._write_run(arrays, chosen[start : start + RUN_ROWS], scores, columns, changes)
        while self._notes and self._notes[0].newest < self.first:
            note = self._notes.popleft()
            self._rows -= _size_of_note(note)
            changes[key_of(note.kind, note.commit)] = None

    def _take_obsolete(self, arrays: Arrays) -> tuple[int, NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the number of noted positions, and bits by position in the log: dead ones, matched ones."""
        noted = arrays.obsolete_positions[: int(arrays.totals["obsolete"][0])]
        arrays.totals["obsolete"] = 0
        words = (self.next - self.first) // 64 + 1
        dead, matched = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
        mark_positions_left(noted, self.first, self._holders, self._offset, dead, matched)
        return len(noted), dead, matched

    def _take_oldest(self, arrays: Arrays, fresh: int, changes: Changes) -> NDArray[np.int32]:
        """Remove runs from the start while the log is too large; return their entries that still wait."""
        totals = arrays.totals[0]
        waiting = int(totals["pending"] + totals["early"] + totals["retained"] - totals["cold"].sum())
        budget = SCANNED + 2 * fresh
        oldest: list[NDArray[np.int32]] = []
        rewritten = 0
        while self._runs:
            run = self._runs[0]
            start = run.first - self._offset
            holders = self._holders[start : start + run.count]
            living = holders[holders >= 0]
            if len(living):
                crowded = self._rows + rewritten > 2 * waiting + SLACK_ROWS
                if not crowded or budget < 0:
                    break
            budget -= run.count if len(living) else 0
            rewritten += len(living)
            oldest.append(living.copy())
            self._runs.popleft()
            self._rows -= _size_of_run(run)
            changes[key_of(WAITING, run.first)] = None
            if run.scored:
                changes[key_of(SCORES, run.first)] = None
            if run.sided:
                changes[key_of(SIDE, run.first)] = None
        return np.concatenate(oldest) if oldest else np.empty(0, np.int32)

    def _write_changed(
        self, commit: int, arrays: Arrays, scores: HeldScores, columns: tuple[str, ...], changes: Changes
    ) -> None:
        """Write the new values of predictions that changed and stay at their position."""
        count = int(arrays.totals["changed"][0])
        if not count:
            return
        arrays.totals["changed"] = 0
        noted = arrays.changed[:count]
        positions = arrays.log_positions[noted]
        changed = noted[(positions > 0) & (positions & CHANGED != 0)]  # others stopped waiting since
        arrays.log_positions[changed] &= ~CHANGED
        positions = (arrays.log_positions[changed] & POSITION_MASK) - 1
        lasting = positions >= self.first
        chosen, positions = changed[lasting], positions[lasting]
        if not len(chosen):
            return
        order = np.argsort(positions)
        chosen, positions = chosen[order], positions[order]
        entries = taken(arrays.entries, chosen)
        carried = scores.carried(entries["true_or_scores"])
        side = pack_side(columns, arrays.side[chosen]) if columns else b""
        changes[key_of(CHANGED_KEY, commit)] = pack_changed(positions, entries, carried, side)
        self._add_note(Note(CHANGED_KEY, commit, int(positions[-1]), len(positions)))

    def _write_run(
        self,
        arrays: Arrays,
        chosen: NDArray[np.int32],
        scores: HeldScores,
        columns: tuple[str, ...],
        changes: Changes,
    ) -> None:
        entries, first, count = entry_columns(arrays.entries, chosen), self.next, len(chosen)
        before = arrays.log_positions[chosen]
        # The number of times written must stay below the bit that marks entries that came back.
        most = np.where(before >= FRONT, OF_FRONT + MOST_REWRITTEN, MOST_REWRITTEN)
        times = (before & ~CHANGED) >> POSITION_BITS
        rewritten = np.where(before & POSITION_MASK == 0, times, np.minimum(times + 1, most))
        arrays.log_positions[chosen] = np.arange(first + 1, first + 1 + count) | rewritten << POSITION_BITS
        carried = scores.carried(entries.carried) if entries.carrying else NOTHING_CARRIED
        changes[key_of(WAITING, first)] = pack_waiting(
            entries, rewritten, carried.segments if entries.carrying else None
        )
        if len(carried.scored):
            changes[key_of(SCORES, first)] = pack_scores(carried.scored, carried.scores)
        side = b""
        if columns:
            values = arrays.side[chosen]
            values[~entries.pending] = 0
            side = pack_side(columns, values)
        if side:
            changes[key_of(SIDE, first)] = side
        self._hold(chosen)
        run = Run(first, count, len(carried.scored) > 0, bool(side))
        self._runs.append(run)
        self._rows += _size_of_run(run)

    def _hold(self, chosen: NDArray[np.int32]) -> None:
        """Store the entries of the next positions, and drop those before the log."""
        if self.next - self._offset + len(chosen) > len(self._holders):
            kept = self._holders[self.first - self._offset : self.next - self._offset]
            self._offset = self.next - len(kept)
            self._holders = np.full(max(1_024, 3 * (len(kept) + len(chosen)) // 2), -1, np.int32)
            self._holders[: len(kept)] = kept
        start = self.next - self._offset
        self._holders[start : start + len(chosen)] = chosen
        self.next += len(chosen)

    def _add_note(self, note: Note) -> None:
        self._notes.append(note)
        self._rows += _size_of_note(note)


def _size_of_run(run: Run) -> int:
    return run.count + ROWS_OF_A_VALUE


def _size_of_note(note: Note) -> int:
    return (note.count if note.kind == CHANGED_KEY else note.count // 8) + ROWS_OF_A_VALUE


# Dedup entries as commits write them: values of one generation each, removed together with it.
#
# Small values are merged: sixteen of one size, written in succession, become one of the next size.


SIZES: Final = (256, 4_096)
"""Bounds of the sizes: values with fewer entries than a bound are merged."""
MERGED: Final = 16
"""Number of values of one size that are merged into one."""


@dataclass(slots=True)
class DedupValue:
    """Dedup entries of one value in the store."""

    number: int
    count: int
    value: bytes | None
    """The value, as long as it may still be merged."""


class DedupLog:
    """Values of dedup entries in the store, by generation.

    Parameters
    ----------
    values
        Values in the store by generation, in the order of their numbers.
    mark
        The dedup entry written last.
    """

    __slots__ = ("_mark", "_next", "_stored", "_values")

    def __init__(
        self, values: Mapping[int, Sequence[DedupValue]] | None = None, mark: DedupMark | None = None
    ) -> None:
        self._values = {generation: list(each) for generation, each in (values or {}).items()}
        numbers = [each.number for of_generation in self._values.values() for each in of_generation]
        self._next = max(numbers, default=-1) + 1
        self._stored = self._next
        """Number from which on values are not in the store yet."""
        self._mark = mark or DedupMark()

    def write(self, arrays: Arrays, changes: Changes) -> None:
        """Add to the changes the dedup entries made since the last commit, and remove dropped generations."""
        floor = int(arrays.totals["floor"][0])
        for generation in [generation for generation in self._values if generation < floor]:
            for each in self._values.pop(generation):
                changes[key_of(DEDUP, generation, each.number)] = None
        runs, self._mark = unwritten_dedup(arrays, self._mark)
        self._stored = self._next
        for generation, chosen in runs:
            for start in range(0, len(chosen), RUN_ROWS):
                self._write_run(generation, arrays, chosen[start : start + RUN_ROWS], changes)

    def remove_all(self, changes: Changes) -> None:
        """Add to the changes the removal of all values, after all dedup entries left the table."""
        for generation, values in self._values.items():
            for each in values:
                changes[key_of(DEDUP, generation, each.number)] = None
        self._values.clear()
        self._mark = DedupMark()

    def _write_run(
        self, generation: int, arrays: Arrays, chosen: NDArray[np.int32], changes: Changes
    ) -> None:
        value = pack_dedup(entry_columns(arrays.entries, chosen))
        values = self._values.setdefault(generation, [])
        values.append(DedupValue(self._next, len(chosen), value))
        changes[key_of(DEDUP, generation, self._next)] = value
        self._next += 1
        for size in SIZES:
            self._merge(generation, size, changes)
        if values[-1].count >= SIZES[-1]:
            values[-1].value = None

    def _merge(self, generation: int, size: int, changes: Changes) -> None:
        """Merge the last values if at least `MERGED` of them are smaller than `size`.

        The merged value has the number of the last, so that numbering continues after it at the next start.
        """
        values = self._values[generation]
        count = 0
        while count < len(values) and values[-1 - count].count < size:
            count += 1
        if count < MERGED:
            return
        merged = values[-count:]
        del values[-count:]
        rows = [unpack_dedup(each.value) for each in merged if each.value is not None]
        value = pack_columns([np.concatenate(column) for column in zip(*rows, strict=True)])
        values.append(DedupValue(merged[-1].number, sum(each.count for each in merged), value))
        changes[key_of(DEDUP, generation, merged[-1].number)] = value
        for each in merged[:-1]:
            key = key_of(DEDUP, generation, each.number)
            if each.number >= self._stored:  # not in the store yet
                changes.pop(key, None)
            else:
                changes[key] = None


def dedup_value(number: int, value: bytes, rows: DedupRows) -> DedupValue:
    """Describe a value that is in the store."""
    count = len(rows.low)
    return DedupValue(number, count, value if count < SIZES[-1] else None)
