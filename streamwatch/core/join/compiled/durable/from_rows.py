"""Conversion of the row-wise join's entries to the values that commits of a compiled join write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.durable.keys import (
    CLASS,
    DEDUP,
    MODEL,
    SCORES,
    SEGMENTS,
    TOPIC,
    WAITING,
    key_of,
)
from streamwatch.core.join.compiled.durable.packed import pack_dedup, pack_waiting
from streamwatch.core.join.compiled.durable.waiting_log import RUN_ROWS
from streamwatch.core.join.compiled.layout import ENTRY, NO_TIME
from streamwatch.core.join.compiled.names import NumberedNames, NumberedSegments, NumberedTopics
from streamwatch.core.join.entry import PENDING, RESOLVED, JoinEntry

_GROWN: Final = 65_536
_ENCODER = msgspec.msgpack.Encoder()


class RowPacker:
    """Takes chains whose ids are digests, then returns the values.

    Waiting entries are ordered by record time, and within a millisecond by the order in which their chains
    were added.
    """

    def __init__(self) -> None:
        self._models, self._classes = NumberedNames(), NumberedNames()
        self._entries = np.zeros(_GROWN, ENTRY)
        self._count = 0
        self._scores: dict[int, dict[str, float]] = {}
        self._segments = NumberedSegments()
        self._topics = NumberedTopics()
        self._values: dict[int, int] = {}

    def add(self, first: JoinEntry) -> None:
        """Add a chain, without dead dedup entries."""
        record: JoinEntry | None = first
        high, low = (int.from_bytes(half.encode("latin-1"), "big") for half in (first.id[:8], first.id[8:]))
        while record is not None:
            if self._count == len(self._entries):
                self._entries = np.concatenate([self._entries, np.zeros(len(self._entries), ENTRY)])
            if record.scores is not None:
                self._scores[self._count] = record.scores
            if record.segments is not None:
                self._values[self._count] = self._segments.number(record.segments)
            waits, classes = record.state < RESOLVED, self._classes
            true_class = "" if record.state == PENDING else record.true_class
            own_ms = record.timestamp_ms if waits else None
            self._entries[self._count] = (
                low,
                high,
                record.record_ms if waits else 0,
                NO_TIME if own_ms is None else own_ms,
                -1 if record.model is None else self._models[record.model],
                classes[record.predicted_class] if record.predicted_class else -1,
                classes[true_class] if true_class else -1,
                -1 if record.label_at_prediction is None else classes[record.label_at_prediction],
                record.state,
                self._topics[record.topic] if waits else 0,
                0,
                0,
                0 if waits else record.generation,
            )
            self._count += 1
            record = record.next

    def values(self) -> Iterator[tuple[bytes, bytes]]:
        """All values, by key."""
        for kind, names in (
            (MODEL, self._models),
            (CLASS, self._classes),
            (SEGMENTS, self._segments),
            (TOPIC, self._topics),
        ):
            yield from ((key_of(kind, number), name.encode()) for name, number in names.items() if name)
        entries = self._entries[: self._count]
        waiting = np.flatnonzero(entries["state"] < RESOLVED)
        waiting = waiting[np.argsort(entries["record_ms"][waiting], kind="stable")]
        for place in range(0, len(waiting), RUN_ROWS):
            chosen = waiting[place : place + RUN_ROWS]
            yield (
                key_of(WAITING, place),
                pack_waiting(entries[chosen], np.zeros(len(chosen), np.int64), self._segments_of(chosen)),
            )
            held = {
                position: self._scores[x] for position, x in enumerate(chosen.tolist()) if x in self._scores
            }
            if held:
                yield key_of(SCORES, place), _ENCODER.encode(held)
        settled = np.flatnonzero(entries["state"] >= RESOLVED)
        generations = entries["earlier_or_generation"][settled]
        number = 0
        for generation in np.unique(generations).tolist():
            in_generation = settled[generations == generation]
            for start in range(0, len(in_generation), RUN_ROWS):
                yield (
                    key_of(DEDUP, generation, number),
                    pack_dedup(entries[in_generation[start : start + RUN_ROWS]]),
                )
                number += 1

    def _segments_of(self, chosen: NDArray[np.intp]) -> NDArray[np.int64] | None:
        """Numbers of the segments of entries; None if no entry has any."""
        if not self._values:
            return None
        numbers = np.array([self._values.get(x, -1) for x in chosen.tolist()], np.int64)
        return numbers if (numbers >= 0).any() else None
