"""Everything outside the table of a compiled join: entries in runs, their scores, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.cold.block import PACKED_ENTRY
from streamwatch.core.join.cold.entries import ColdEntries
from streamwatch.core.join.cold.moving import WAITING_QUEUES, Table
from streamwatch.core.join.cold.run import DEDUP_ENTRIES
from streamwatch.core.join.cold.store import SCORES, ColdChanges, ColdDamaged, ColdSpec, RunStore, key_of
from streamwatch.core.join.counters import PENDING, UNMATCHED
from streamwatch.core.join.layout import NEVER_MS, PREDICTIONS, RETAINED_LABELS, Records
from streamwatch.core.records.events import Name, segments_of
from streamwatch.core.records.outcomes import SEGMENTS_FROM
from streamwatch.core.records.scores import ScoreLists

# Scores and segments of predictions outside the table: one value per prediction, by arrival.
#
# Classes are spelt out, so that their numbers may be released. If a prediction has segments but no scores,
# the number of its segments is in the run.


SCORED: Final = 0
"""Value of `true_or_scores` of a prediction outside the table that has scores."""
_HALF: Final = 32
_MOST_LISTS: Final = 4_096
"""Most lists of classes kept decoded; most predictions of a model have the same list."""
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(tuple[msgspec.Raw, bytes, str])
_NAMES: Final = msgspec.msgpack.Decoder(tuple[Name, ...])


class StoredScores(NamedTuple):
    """Scores of one prediction."""

    classes: tuple[str, ...]
    values: bytes
    """float64, one for each class."""
    segments: str
    """Text of the same prediction's segments; empty without any."""


class OutsideScores:
    """Scores of predictions outside the table, by arrival.

    Parameters
    ----------
    store
        Store of the scores of earlier commits.
    """

    __slots__ = ("_classes", "_fresh", "_gone", "_store")

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._fresh: dict[bytes, bytes] = {}
        self._gone: set[bytes] = set()
        self._classes: dict[bytes, tuple[str, ...]] = {}

    def put(self, packed: Records, table: Table) -> None:
        """Store the scores of predictions that are evicted, and set `true_or_scores` of these to `SCORED`."""
        scored = _scored(packed)
        if not len(scored):
            return
        lists = table.names.scores.take(packed["true_or_scores"][scored])
        packed["true_or_scores"][scored] = SCORED
        classes, segments = table.names.classes.names, table.names.segments.names
        numbers, values = lists.classes.tobytes(), lists.values.astype("<f8", copy=False).tobytes()
        spelt: dict[bytes, msgspec.Raw] = {}
        start = 0
        for arrival, stop, number in zip(
            packed["arrival"][scored].tolist(), lists.ends.tolist(), lists.beside.tolist(), strict=True
        ):
            listed = numbers[4 * start : 4 * stop]
            names = spelt.get(listed)
            if names is None:
                named = [classes[each] for each in lists.classes[start:stop].tolist()]
                names = spelt[listed] = msgspec.Raw(_ENCODER.encode(named))
            text = "" if number < 0 else segments[number]
            self._fresh[score_key(arrival)] = _ENCODER.encode((names, values[8 * start : 8 * stop], text))
            start = stop

    def replace(self, before: Records, packed: Records, table: Table) -> None:
        """Replace the scores of predictions by those of their present values, of the same arrivals."""
        self.drop(before)  # first: what has the same arrival has the same key
        self.put(packed, table)

    def read(self, packed: Records) -> list[StoredScores]:
        """Read the scores of the predictions that have some, in order; may run in a thread.

        Raises
        ------
        ColdDamaged
            If some are missing or cannot be read.
        """
        keys = [score_key(arrival) for arrival in packed["arrival"][_scored(packed)].tolist()]
        asked = [key for key in keys if key not in self._fresh]
        found = dict(zip(asked, self._store.get_all(asked), strict=True)) if asked else {}
        read: list[StoredScores] = []
        for key in keys:
            value = self._fresh.get(key) or found.get(key)
            if value is None:
                raise ColdDamaged(f"scores of a cold prediction are missing: there is no value {key.hex()}")
            try:
                names, values, text = _DECODER.decode(value)
                classes = self._classes_of(bytes(names))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ColdDamaged(f"scores under {key.hex()} are not readable: {error}") from error
            if len(values) != 8 * len(classes):
                raise ColdDamaged(
                    f"scores under {key.hex()}: expected {len(classes)} of them, got {len(values)} bytes"
                )
            read.append(StoredScores(classes, values, text))
        return read

    def _classes_of(self, names: bytes) -> tuple[str, ...]:
        classes = self._classes.get(names)
        if classes is None:
            if len(self._classes) >= _MOST_LISTS:
                self._classes.clear()
            classes = self._classes[names] = _NAMES.decode(names)
        return classes

    def drop(self, packed: Records) -> None:
        """Drop the scores of these predictions, which are in the table or no longer needed."""
        for arrival in packed["arrival"][_scored(packed)].tolist():
            key = score_key(arrival)
            if self._fresh.pop(key, None) is None:
                self._gone.add(key)

    def add_changes(self, changes: ColdChanges) -> None:
        """Add to the changes what a commit must write."""
        changes.put.update(dict.fromkeys(self._gone))
        changes.put.update(self._fresh)  # some replace what is gone
        self._fresh, self._gone = {}, set()


def with_numbers(packed: Records, stored: list[StoredScores], table: Table) -> None:
    """Add scores that were read to the table, and write their numbers to the entries `packed`, in place."""
    if not stored:
        return
    numbers = {
        classes: np.array([table.names.classes[name] for name in classes], np.int32)
        for classes in dict.fromkeys(each.classes for each in stored)
    }
    segments = table.names.segments
    lists = ScoreLists(
        np.cumsum([len(each.classes) for each in stored], dtype=np.int64),
        np.concatenate([numbers[each.classes] for each in stored]),
        np.frombuffer(b"".join(each.values for each in stored), "<f8").astype(np.float64),
        np.array([segments.number(segments_of(text)) if text else -1 for *_, text in stored], np.int32),
    )
    packed["true_or_scores"][_scored(packed)] = table.names.scores.add(lists)


def score_key(arrival: int) -> bytes:
    """Key of the scores of the prediction with this arrival."""
    return key_of(SCORES, arrival >> _HALF, arrival & (1 << _HALF) - 1)


def _scored(packed: Records) -> NDArray[np.intp]:
    carried = packed["true_or_scores"]
    return np.flatnonzero((packed["state"] == PENDING) & (carried >= 0) & (carried < SEGMENTS_FROM))


class OutsideContents:
    """Entries in runs, the scores of the predictions among them, and the number of dedup entries.

    Parameters
    ----------
    store
        Store of the runs.
    spec
        Sizes of the runs.
    clean
        Whether to remove values that no commit refers to.

    Raises
    ------
    ColdDamaged
        If the store's contents are not what was written.
    """

    __slots__ = ("cold", "scores", "settled")

    def __init__(self, store: RunStore, spec: ColdSpec, *, clean: bool) -> None:
        self.cold = ColdEntries(store, spec, clean=clean)
        self.scores = OutsideScores(store)
        self.settled: dict[int, int] = {}
        """Number of dedup entries by generation."""

    def changes(self) -> ColdChanges:
        """Changes of runs and scores for a commit."""
        changes = self.cold.changes()
        self.scores.add_changes(changes)
        return changes

    def drop_generations(self, floor: int) -> None:
        """Drop the dedup entries of generations before `floor`."""
        self.cold.floor = floor
        for generation in [generation for generation in self.settled if generation < floor]:
            del self.settled[generation]

    def update_oldest_ms(self, table: Table) -> None:
        """Set the table's times of the oldest entries outside, by queue."""
        cold_ms = table.arrays.totals["cold_ms"][0]
        for queue in WAITING_QUEUES:
            oldest_ms = self.cold.oldest_ms(queue)
            cold_ms[queue] = NEVER_MS if oldest_ms is None else oldest_ms


# Reading of all entries outside the table, for the inspection of a state.


def entries_outside(store: RunStore, floor: int) -> Iterator[tuple[int, Records]]:
    """Iterate over queue and living entries, `PACKED_ENTRY` (n,), run by run, some thousands at a time.

    Parameters
    ----------
    store
        Store of the runs; nothing is written to it.
    floor
        Oldest generation of dedup entries that is not dropped.

    Raises
    ------
    ColdDamaged
        If a run is not what was written.
    """
    cold = ColdEntries(store, clean=False)
    cold.floor = floor
    return cold.all_living()


@dataclass(slots=True)
class Examined:
    """Counts of the entries read, and the faults found."""

    by_queue: Counter[int] = field(default_factory=Counter[int])
    unmatched: int = 0
    settled: Counter[int] = field(default_factory=Counter[int])
    """Number of dedup entries by generation."""
    faults: list[str] = field(default_factory=list[str])


def examine(store: RunStore, floor: int) -> Examined:
    """Read every living entry, and check that its id finds it and that its scores exist.

    Raises
    ------
    ColdDamaged
        If a run is not what was written.
    """
    found = Examined()
    cold = ColdEntries(store, clean=False)
    cold.floor = floor
    scores = OutsideScores(store)
    for queue, entries in cold.all_living():
        found.by_queue[queue] += len(entries)
        if queue == RETAINED_LABELS:
            found.unmatched += int((entries["state"] == UNMATCHED).sum())
        elif queue == DEDUP_ENTRIES:
            generations, counts = np.unique(entries["generation"], return_counts=True)
            found.settled.update(dict(zip(generations.tolist(), counts.tolist(), strict=True)))
        elif queue == PREDICTIONS:
            scores.read(entries)
        ids = np.unique(entries[["low", "high"]])
        low, high = ids["low"].copy(), ids["high"].copy()
        looked_up = cold.look_up(low, high).entries
        missing = ~np.isin(_as_bytes(entries), _as_bytes(looked_up))
        for entry in entries[missing][:1]:
            digest = int(entry["high"]).to_bytes(8, "big") + int(entry["low"]).to_bytes(8, "big")
            found.faults.append(f"a look-up of id {digest.hex()} does not find its cold entry")
    return found


def _as_bytes(entries: Records) -> Records:
    return np.ascontiguousarray(entries).view(f"V{PACKED_ENTRY.itemsize}")
