"""What of a log cannot be read: when that is believed, and where reading goes on behind it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from aiokafka.errors import LeaderNotAvailableError
from aiokafka.structs import TopicPartition

from streamwatch.edge.sources.kafka.batches.damage import Damage
from streamwatch.edge.sources.kafka.batches.frames import Batch, batch_at
from streamwatch.edge.sources.kafka.batches.salvage import Look, next_readable
from streamwatch.edge.sources.kafka.fetch.answer import CONNECTION_ERRORS, ask
from streamwatch.edge.sources.kafka.fetch.slot import Slot


class Unreadable:
    """Gives damaged stretches of partitions up, after they were tried often enough.

    Parameters
    ----------
    client
        aiokafka's.
    arrived
        Set when there is damage to tell of.
    wake
        Set when there is something to be fetched again.
    """

    def __init__(self, client: Any, arrived: asyncio.Event, wake: asyncio.Event) -> None:
        self._client = client
        self._arrived = arrived
        self._wake = wake

    def broken(self, slot: Slot, damage: Damage) -> None:
        """The answer cannot be read from here on; what follows is void: a marker of an abort may be missing.

        Unless the checksum says that it was written so, it is fetched once more first.
        """
        slot.reader = None
        if not damage.certain and slot.suspected != slot.position:
            slot.suspected = slot.position
        else:
            self._give_up(slot, damage, to_the_end=True)
        self._wake.set()

    def suspect(self, slot: Slot, tries: int, reason: str, *, to_the_end: bool) -> None:
        """Count a failure to read at the slot's position; after `tries` of them it counts as damaged."""
        slot.failures = slot.failures + 1 if slot.suspected == slot.position else 1
        slot.suspected = slot.position
        if slot.failures >= tries:
            damage = Damage("corrupt_batch", slot.position, -1, reason, certain=False)
            self._give_up(slot, damage, to_the_end=to_the_end)

    def _give_up(self, slot: Slot, damage: Damage, *, to_the_end: bool) -> None:
        if damage.next_offset >= 0:
            slot.damage = damage
            self._arrived.set()
        else:
            slot.failures = 0
            slot.salvage = asyncio.create_task(self._salvage(slot, damage, to_the_end=to_the_end))

    async def _salvage(self, slot: Slot, damage: Damage, *, to_the_end: bool) -> None:
        """Search where the log can be read again; if nowhere yet, the same is tried again later."""

        async def look(offset: int) -> Look:
            node = self._client.cluster.leader_for_partition(TopicPartition(*slot.partition))
            if node is None or node < 0:
                raise LeaderNotAvailableError(slot.partition)
            answers = await ask(self._client, node, [(slot.partition, offset)], 1)
            if not answers or answers[0].error:
                return "unreadable"
            answer = answers[0]
            if not answer.data:
                return "unreadable" if answer.readable > offset else "end"
            found = batch_at(memoryview(answer.data), 0, offset, answer.high_watermark)
            return found.base_offset if isinstance(found, Batch) else "unreadable"

        resumed = None
        try:
            end = slot.high_watermark
            resumed = await next_readable(look, slot.position, end, to_the_end=to_the_end)
        except CONNECTION_ERRORS:
            resumed = None
        slot.salvage = None
        if resumed is None:
            slot.error = damage.reason
            slot.retry_at = time.monotonic() + slot.backoff.next_seconds()
        elif resumed.position <= slot.position:  # nothing is lost: it is only to be asked for otherwise
            slot.asked = resumed.asked
        else:
            slot.damage = damage._replace(next_offset=resumed.position, asked=resumed.asked)
        self._arrived.set()
        self._wake.set()
