"""Waiting entries as commits write them: a log of runs, whose oldest are rewritten when many are dead.

Every written entry has a place, numbered across runs. A commit writes a run of the entries that began to
wait, and the places of entries written before that no longer wait. A run without waiting entries is deleted.
When the log is more than twice as large as what waits, the entries of its oldest runs that still wait are
written again at its end. So the log is only ever cut at its start, and the places of removed entries need not
be stored for longer.

Entries are ordered by record time; within a millisecond by how often they were written, more often first, and
then by place, since entries that arrived earlier are also rewritten earlier.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.durable.keys import OBSOLETE, SCORES, WAITING, key_of
from streamwatch.core.join.compiled.durable.packed import ObsoletePlaces, pack_obsolete, pack_waiting
from streamwatch.core.join.compiled.layout import FRONT, PLACE_BITS, PLACE_MASK, Arrays
from streamwatch.core.join.compiled.names import HeldScores
from streamwatch.core.join.entry import PENDING
from streamwatch.core.outcomes import SEGMENTS_FROM
from streamwatch.core.words import taken

OF_FRONT: Final = FRONT >> PLACE_BITS
"""Added to the number of times written of an entry that came back to the front of its queue."""
MOST_REWRITTEN: Final = OF_FRONT - 1
RUN_ROWS: Final = 8_192
"""Largest number of entries of one run."""
SLACK_ROWS: Final = 131_072
"""Size below which a log is not rewritten."""
ROWS_OF_A_VALUE: Final = 4
"""Fixed cost of a value, in entries."""
SCANNED: Final = 16_384
"""Places examined per commit for rewriting the start of the log, plus twice the number of added entries."""

Changes = dict[bytes, bytes | None]
"""New values by key; None for a key to remove."""
_ENCODER = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True)
class Run:
    """Run of entries written as one value."""

    first: int
    """Place of its first entry."""
    count: int
    scored: bool
    """Whether some entries have scores, which are stored separately."""


@dataclass(frozen=True, slots=True)
class ObsoleteNote:
    """Places that one commit noted as changed."""

    commit: int
    newest: int
    """Largest of them: once the log starts after it, the note is obsolete."""
    count: int


class WaitingLog:
    """Runs in the store, and the entry of the join at each place.

    Parameters
    ----------
    runs, notes
        Those in the store, oldest first.
    holders
        int32: entry at every place from the first run on; -1 if it no longer waits.
    """

    __slots__ = ("_holders", "_notes", "_offset", "_rows", "_runs", "next")

    def __init__(
        self,
        runs: Sequence[Run] = (),
        notes: Sequence[ObsoleteNote] = (),
        holders: NDArray[np.int32] | None = None,
    ) -> None:
        self._runs = deque(runs)
        self._notes = deque(notes)
        self._offset = runs[0].first if runs else 0  # place of the first holder
        self.next = runs[-1].first + runs[-1].count if runs else 0
        """Place of the next entry."""
        self._holders = np.full(1_024, -1, np.int32) if holders is None or not len(holders) else holders
        self._rows = sum(map(_size_of_run, runs)) + sum(map(_size_of_note, notes))

    @property
    def first(self) -> int:
        """Place at which the log starts."""
        return self._runs[0].first if self._runs else self.next

    def write(
        self, commit: int, arrays: Arrays, fresh: NDArray[np.int32], scores: HeldScores, changes: Changes
    ) -> None:
        """Add to the changes what commit `commit` writes of waiting entries.

        Parameters
        ----------
        commit
            Number of the commit.
        arrays
            Arrays of the join; the places of written entries are set, and `obsolete_places` is emptied.
        fresh
            Entries that began to wait since the last commit, queue by queue, each in its order.
        scores
            Scores of pending predictions.
        changes
            Changes to add to.
        """
        dead, matched = self._take_obsolete(arrays)
        still_waiting = self._take_oldest(arrays, len(fresh), changes)
        first = self.first
        obsolete = ObsoletePlaces(np.sort(dead[dead >= first]), np.sort(matched[matched >= first]))
        if len(obsolete.dead) or len(obsolete.matched):
            newest = max(int(places[-1]) for places in obsolete if len(places))
            self._add_note(ObsoleteNote(commit, newest, len(obsolete.dead) + len(obsolete.matched)))
            changes[key_of(OBSOLETE, commit)] = pack_obsolete(obsolete)
        for chosen in (still_waiting, fresh):
            for start in range(0, len(chosen), RUN_ROWS):
                self._write_run(arrays, chosen[start : start + RUN_ROWS], scores, changes)
        while self._notes and self._notes[0].newest < self.first:
            note = self._notes.popleft()
            self._rows -= _size_of_note(note)
            changes[key_of(OBSOLETE, note.commit)] = None

    def _take_obsolete(self, arrays: Arrays) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        count = int(arrays.totals["obsolete"][0])
        noted = arrays.obsolete_places[:count]
        arrays.totals["obsolete"] = 0
        dead, matched = (noted[noted > 0] & PLACE_MASK) - 1, (-noted[noted < 0] & PLACE_MASK) - 1
        self._holders[dead - self._offset] = -1
        return dead, matched

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
        return np.concatenate(oldest) if oldest else np.empty(0, np.int32)

    def _write_run(
        self, arrays: Arrays, chosen: NDArray[np.int32], scores: HeldScores, changes: Changes
    ) -> None:
        entries, first, count = taken(arrays.entries, chosen), self.next, len(chosen)
        before = arrays.places[chosen]
        # The number of times written must stay below the bit that marks entries that came back.
        most = np.where(before >= FRONT, OF_FRONT + MOST_REWRITTEN, MOST_REWRITTEN)
        times = before >> PLACE_BITS
        rewritten = np.where(before & PLACE_MASK == 0, times, np.minimum(times + 1, most))
        arrays.places[chosen] = np.arange(first + 1, first + 1 + count) | rewritten << PLACE_BITS
        carried = np.where(entries["state"] == PENDING, entries["true_or_scores"], -1)
        scored = (carried >= 0) & (carried < SEGMENTS_FROM)
        segments = np.where(carried >= SEGMENTS_FROM, carried - SEGMENTS_FROM, -1).astype(np.int64)
        if scored.any() and scores.segments:
            segments_of_scored = [scores.segments.get(number, -1) for number in carried[scored].tolist()]
            segments[scored] = segments_of_scored
        has_segments = bool((segments >= 0).any())
        changes[key_of(WAITING, first)] = pack_waiting(entries, rewritten, segments if has_segments else None)
        if scored.any():
            held = {
                position: scores[int(entries["true_or_scores"][position])]
                for position in np.flatnonzero(scored).tolist()
            }
            changes[key_of(SCORES, first)] = _ENCODER.encode(held)
        self._hold(chosen)
        run = Run(first, count, bool(scored.any()))
        self._runs.append(run)
        self._rows += _size_of_run(run)

    def _hold(self, chosen: NDArray[np.int32]) -> None:
        """Store the entries of the next places, and drop those before the log."""
        if self.next - self._offset + len(chosen) > len(self._holders):
            kept = self._holders[self.first - self._offset : self.next - self._offset]
            self._offset = self.next - len(kept)
            self._holders = np.full(max(1_024, 3 * (len(kept) + len(chosen)) // 2), -1, np.int32)
            self._holders[: len(kept)] = kept
        start = self.next - self._offset
        self._holders[start : start + len(chosen)] = chosen
        self.next += len(chosen)

    def _add_note(self, note: ObsoleteNote) -> None:
        self._notes.append(note)
        self._rows += _size_of_note(note)


def _size_of_run(run: Run) -> int:
    return run.count + ROWS_OF_A_VALUE


def _size_of_note(note: ObsoleteNote) -> int:
    return note.count // 8 + ROWS_OF_A_VALUE
