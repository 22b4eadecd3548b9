"""Scores and segments of predictions outside the table: one value per prediction, by arrival.

If a prediction has segments but no scores, the number of its segments is in the run.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.cold.store import SCORES, ColdChanges, ColdDamaged, RunStore, key_of
from streamwatch.core.join.compiled.layout import Records
from streamwatch.core.join.compiled.names import HeldScores, NumberedSegments
from streamwatch.core.join.entry import PENDING
from streamwatch.core.outcomes import SEGMENTS_FROM
from streamwatch.core.segments import segments_of

SCORED: Final = 0
"""Value outside the table for the number of scores."""
_HALF: Final = 32
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(dict[str, float] | tuple[dict[str, float], str])

StoredScores: TypeAlias = tuple[dict[str, float], str]
"""Scores, and the text of the same prediction's segments (empty without any)."""


class OutsideScores:
    """Scores of predictions outside the table, by arrival.

    Parameters
    ----------
    store
        Store of the scores of earlier commits.
    """

    __slots__ = ("_fresh", "_gone", "_store")

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._fresh: dict[bytes, bytes] = {}
        self._gone: set[bytes] = set()

    def put(self, packed: Records, held: HeldScores, segments: NumberedSegments) -> None:
        """Store the scores of predictions that leave the table, and mark predictions that have some."""
        scored = _scored(packed)
        numbers: list[int] = packed["true_or_scores"][scored].tolist()
        segment_numbers = [held.segments.get(number, -1) for number in numbers]
        for arrival, scores, segment in zip(
            packed["arrival"][scored].tolist(), held.take(numbers).values(), segment_numbers, strict=True
        ):
            stored = scores if segment < 0 else (scores, segments.names[segment])
            self._fresh[score_key(arrival)] = _ENCODER.encode(stored)
        packed["true_or_scores"][scored] = SCORED

    def read(self, packed: Records) -> list[StoredScores]:
        """Read the scores of those among these predictions that have some, in order; may run in a thread.

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
                decoded = _DECODER.decode(value)
            except msgspec.DecodeError as error:
                raise ColdDamaged(f"scores under {key.hex()} are not readable: {error}") from error
            read.append((decoded, "") if isinstance(decoded, dict) else decoded)
        return read

    def drop(self, packed: Records) -> None:
        """Drop the scores of these predictions, which are in the table or no longer needed."""
        for arrival in packed["arrival"][_scored(packed)].tolist():
            key = score_key(arrival)
            if self._fresh.pop(key, None) is None:
                self._gone.add(key)

    def add_changes(self, changes: ColdChanges) -> None:
        """Add to the changes what a commit must write."""
        changes.put.update(self._fresh)
        changes.put.update(dict.fromkeys(self._gone))
        self._fresh, self._gone = {}, set()


def with_numbers(
    packed: Records, stored: list[StoredScores], held: HeldScores, segments: NumberedSegments
) -> None:
    """Assign numbers in the table to scores that were read, in place."""
    packed["true_or_scores"][_scored(packed)] = [
        held.add(scores, segments.number(segments_of(text)) if text else -1) for scores, text in stored
    ]


def score_key(arrival: int) -> bytes:
    """Key of the scores of the prediction with this arrival."""
    return key_of(SCORES, arrival >> _HALF, arrival & (1 << _HALF) - 1)


def _scored(packed: Records) -> NDArray[np.intp]:
    carried = packed["true_or_scores"]
    return np.flatnonzero((packed["state"] == PENDING) & (carried >= 0) & (carried < SEGMENTS_FROM))
