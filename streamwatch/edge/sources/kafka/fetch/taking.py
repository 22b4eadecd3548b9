"""Hands out what was fetched, in turns of so many records; large batches are decompressed in threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from typing import Final, NamedTuple

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.batches.damage import Damage
from streamwatch.edge.sources.kafka.batches.reader import AT_ONCE_BYTES
from streamwatch.edge.sources.kafka.batches.record import KafkaRecords
from streamwatch.edge.sources.kafka.fetch.fetching import Fetching
from streamwatch.edge.sources.kafka.fetch.slot import Slot

LARGE_AT_ONCE: Final = 2
"""Large batches that stand decompressed in memory, over all partitions."""


class TurnRecords(NamedTuple):
    """Records of one turn."""

    records: dict[Partition, KafkaRecords]
    damages: dict[Partition, Damage]
    """What stands next in a partition and cannot be read, and where reading goes on after it."""
    out_of_range: list[Partition]
    """Their logs do not hold the position: `seek` is needed."""
    failed: dict[Partition, tuple[str, float]]
    """Why, and seconds until the next attempt, where attempts fail repeatedly."""
    denied: dict[Partition, float]
    """Seconds for which nothing but denials came, where this user may not read."""


class Taking:
    """Takes from the answers of all partitions in turn.

    Parameters
    ----------
    fetching
        What brings them.
    max_records
        Records in one turn.
    """

    def __init__(self, fetching: Fetching, max_records: int) -> None:
        self._fetching = fetching
        self._max_records = max_records

    async def take(self, wanted: Collection[Partition] | None, timeout_seconds: float) -> TurnRecords:
        """The next records of these partitions, or of all; nothing after the timeout.

        Raises
        ------
        CodecMissing
            Records are compressed with a codec whose package is not installed.
        """
        deadline = time.monotonic() + timeout_seconds
        while True:
            self._fetching.check()
            self._fetching.arrived.clear()
            slots = self._slots(wanted)
            await self._unpack(slots)
            taken = self._turn(slots)
            left = deadline - time.monotonic()
            if taken.records or taken.damages or taken.out_of_range or left <= 0:
                return taken
            if any(slot.reader is not None for slot in slots):
                await asyncio.sleep(0)
                continue
            try:
                async with asyncio.timeout(left):
                    await self._fetching.arrived.wait()
            except TimeoutError:
                return taken

    def _slots(self, wanted: Collection[Partition] | None) -> list[Slot]:
        """Those that may deliver; what is held back gives large memory back."""
        slots = self._fetching.slots
        if wanted is None:
            return list(slots.values())
        chosen = frozenset(wanted)
        for partition, slot in slots.items():
            if partition not in chosen and slot.reader is not None:
                slot.reader.release()
        return [slot for partition, slot in slots.items() if partition in chosen]

    async def _unpack(self, slots: list[Slot]) -> None:
        """Decompress one large batch, if one stands next and few others are in memory."""
        heavy = [slot.reader for slot in slots if slot.reader is not None and slot.reader.heavy]
        readers = [slot.reader for slot in self._fetching.slots.values() if slot.reader is not None]
        large = sum(reader.held_bytes > AT_ONCE_BYTES for reader in readers)
        if heavy and large < LARGE_AT_ONCE:
            await asyncio.to_thread(heavy[0].unpack)

    def _turn(self, slots: list[Slot]) -> TurnRecords:
        taken = TurnRecords({}, {}, [], {}, {})
        room = self._max_records
        now = time.monotonic()
        for slot in sorted(slots, key=lambda slot: slot.since):  # what came first goes first
            if slot.error:
                taken.failed[slot.partition] = slot.error, max(slot.retry_at - now, 0.0)
                slot.error = ""
            if slot.reader is not None and room > 0:
                room -= self._from(slot, room, taken)
            if slot.damage is not None:
                taken.damages[slot.partition] = slot.damage
            elif slot.out_of_range:
                taken.out_of_range.append(slot.partition)
            elif slot.denied_since is not None:
                taken.denied[slot.partition] = now - slot.denied_since
        return taken

    def _from(self, slot: Slot, room: int, taken: TurnRecords) -> int:
        """Take from one answer; the number of records."""
        reader = slot.reader
        assert reader is not None  # noqa: S101 - asked by the caller
        records = reader.take(room)
        slot.position = reader.position
        if records:
            taken.records[slot.partition] = records
        elif reader.damage is not None:
            self._fetching.broken(slot, reader.damage)
        if reader.done:
            self._fetching.taken(slot)
        return len(records)
