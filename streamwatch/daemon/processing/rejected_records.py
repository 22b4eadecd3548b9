"""Invalid records on their way to the dead-letter topic: kept until their turn, written before the commit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import EventGroup, Invalid
from streamwatch.core.ports import DeadLetters, Record
from streamwatch.core.records import RecordBatch
from streamwatch.core.series import Family


class RejectedRecords:
    """Keeps invalid records as they were read until they are released.

    Parameters
    ----------
    dead_letters
        Given every invalid record when its turn has come; None keeps nothing.
    """

    def __init__(self, dead_letters: DeadLetters | None = None) -> None:
        self._dead_letters = dead_letters
        self._records: dict[tuple[str, int, int], Record] = {}

    def keep(self, records: Sequence[Record], batch: RecordBatch, objects: NDArray[np.int64]) -> None:
        """Keep what is invalid of the records of a decoded batch that are objects, by their places in it."""
        if self._dead_letters is not None:
            for place, number in zip(objects.tolist(), batch.rows["object"][objects].tolist(), strict=True):
                found = batch.objects[number]
                for event in found.events if isinstance(found, EventGroup) else (found,):
                    if type(event) is Invalid:
                        self._records[event.topic, event.partition, event.offset] = records[place]

    def release(self, event: Invalid) -> None:
        """Hand over the record of an event whose turn has come; once, whatever number of them is invalid."""
        if self._dead_letters is not None:
            record = self._records.pop((event.topic, event.partition, event.offset), None)
            if record is not None:
                self._dead_letters.put(record, event.reason)

    @property
    def problem(self) -> str | None:
        """Reason for which dead letters wait to be written; None if they do not."""
        return None if self._dead_letters is None else self._dead_letters.problem

    async def deliver(self, *, only_if_full: bool = False) -> None:
        """Have what was released written: before the commit that is past it, or if very much waits."""
        if self._dead_letters is not None and (self._dead_letters.is_full or not only_if_full):
            await self._dead_letters.flush()

    def families(self) -> Sequence[Family]:
        """Dead letters written and dropped; nothing where there is no topic for them."""
        return () if self._dead_letters is None else self._dead_letters.families()
