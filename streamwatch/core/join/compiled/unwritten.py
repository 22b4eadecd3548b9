"""Entries that no commit has written yet: waiting ones and dedup entries, found along their lists."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, inner
from streamwatch.core.join.compiled.layout import FRONT, GENERATIONS_KEPT, PLACE_MASK, UNWRITTEN, Arrays


class DedupMark(NamedTuple):
    """Position of the dedup entry that was written last."""

    generation: int = 0
    entry: int = -1
    """Index of the entry; -1 if none of that generation was written."""
    settled: int = -1
    """Entries of that generation up to and including it; -1 if what was written is obsolete."""


@entry
def find_waiting(entries: Any, totals: Any, places: Any, came_back: Any, found: Any) -> Any:
    """Find the entries that no commit has written: the last ones of each queue; return their numbers.

    Of each queue, entries that came back to its front precede the others.

    Parameters
    ----------
    entries, totals, places
        Fields of `Arrays`.
    came_back
        Whether entries may have come back.
    found
        int32 (room for all that waits,), output: entries queue by queue, each in its order.

    Returns
    -------
    tuple[int, int, int]
        Numbers of predictions, of labels with a model, and of labels without.
    """
    counts = np.zeros(3, np.int64)
    start = 0
    for queue in range(3):
        if came_back:
            x = totals[0]["first"][queue]
            while x >= 0 and places[x] >= FRONT:
                if places[x] & PLACE_MASK == 0:
                    found[start] = x
                    start += 1
                    counts[queue] += 1
                x = np.int64(entries[x]["later"])
        x = totals[0]["last"][queue]
        n = 0
        while x >= 0 and places[x] == UNWRITTEN:
            found[start + n] = x
            n += 1
            x = np.int64(entries[x]["earlier_or_generation"])
        for k in range(n // 2):
            other = found[start + n - 1 - k]
            found[start + n - 1 - k] = found[start + k]
            found[start + k] = other
        counts[queue] += n
        start += n
    return counts[0], counts[1], counts[2]


@inner
def _append_list(entries, first, found, n):
    x = first
    while x >= 0:
        found[n] = x
        n += 1
        x = np.int64(entries[x]["later"])
    return n


@entry
def find_dedup(
    entries: Any, totals: Any, generations: Any, generation: int, last: int, found: Any, runs: Any
) -> int:
    """Find the dedup entries after the one written last, of generations that are not dropped.

    Parameters
    ----------
    entries, totals, generations
        Fields of `Arrays`.
    generation, last
        Fields of `DedupMark`.
    found
        int32 (room for all dedup entries,), output, in the order in which they settled.
    runs
        int64 (`GENERATIONS_KEPT` + 1, 2), output: number of each generation, and its end in `found`.

    Returns
    -------
    int
        Number of runs.
    """
    t = totals[0]
    n = 0
    written = 0
    for k in range(t.closed + 1):
        if k < t.closed:
            g = generations[(t.closed_start + k) % generations.shape[0]]
            number, first = g.number, g.first
        else:
            number, first = t.generation, t.open_first
        if number < generation:
            continue
        if number == generation and last >= 0:
            first = np.int64(entries[last]["later"])
        if first < 0:
            continue
        n = _append_list(entries, first, found, n)
        runs[written, 0] = number
        runs[written, 1] = n
        written += 1
    return written


def unwritten_waiting(arrays: Arrays, *, came_back: bool = False) -> NDArray[np.int32]:
    """Indices of entries that began to wait since the last commit, queue by queue, each in its order."""
    totals = arrays.totals[0]
    waiting = totals["pending"] + totals["early"] + totals["retained"] - totals["cold"].sum()
    found = np.empty(int(waiting), np.int32)
    counts: tuple[int, int, int] = find_waiting(
        arrays.entries, arrays.totals, arrays.places, came_back, found
    )
    return found[: sum(counts)]


def unwritten_dedup(arrays: Arrays, mark: DedupMark) -> tuple[list[tuple[int, NDArray[np.int32]]], DedupMark]:
    """Indices of the dedup entries after `mark` by generation, in the order they settled.

    And the next mark.
    """
    totals = arrays.totals[0]
    now = DedupMark(int(totals["generation"]), int(totals["open_last"]), int(totals["open_entries"]))
    noted = int(totals["settled"])
    arrays.totals["settled"] = 0
    if (counts := _since(arrays, mark)) and sum(counts.values()) == noted:
        ends = np.cumsum(list(counts.values())).tolist()
        settled = arrays.settled[:noted].copy()
        return [
            (number, settled[end - count : end])
            for (number, count), end in zip(counts.items(), ends, strict=True)
            if count
        ], now
    found = np.empty(int(totals["closed_entries"] + totals["open_entries"]), np.int32)
    ends = np.empty((GENERATIONS_KEPT + 1, 2), np.int64)
    generation, last, _ = mark
    count = find_dedup(arrays.entries, arrays.totals, arrays.generations, generation, last, found, ends)
    runs: list[tuple[int, NDArray[np.int32]]] = []
    start = 0
    for generation, end in ends[:count].tolist():
        runs.append((generation, found[start:end]))
        start = end
    return runs, now


def _since(arrays: Arrays, mark: DedupMark) -> dict[int, int]:
    """Count the dedup entries after `mark` by generation, without dropped ones; empty if unknown.

    If a generation was dropped in the meantime, fewer are counted than settled.
    """
    if mark.settled < 0:
        return {}
    totals = arrays.totals[0]
    start, closed = int(totals["closed_start"]), int(totals["closed"])
    ring = arrays.generations[(start + np.arange(closed)) % GENERATIONS_KEPT]
    counts = dict(zip(ring["number"].tolist(), ring["count"].tolist(), strict=True))
    counts[int(totals["generation"])] = int(totals["open_entries"])
    counts = {number: count for number, count in counts.items() if number >= mark.generation}
    if mark.generation in counts:
        counts[mark.generation] -= mark.settled
    return counts
