"""Fetches from the leaders of all partitions, one request to a node at a time.

Uses the client's connections and its knowledge of leaders, not its consumer: what that raises on the content
of a record would end reading (see `reader`). A partition is asked for again once everything of it was taken,
so memory is bounded by one answer for each. One that fails, for whatever reason, waits alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from aiokafka.structs import TopicPartition

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.batches.damage import Damage
from streamwatch.edge.sources.kafka.batches.reader import PartitionReader
from streamwatch.edge.sources.kafka.batches.scanner import Scanner
from streamwatch.edge.sources.kafka.fetch.answer import CONNECTION_ERRORS, Answer, ask, worded
from streamwatch.edge.sources.kafka.fetch.backoff import Backoff
from streamwatch.edge.sources.kafka.fetch.slot import Slot
from streamwatch.edge.sources.kafka.fetch.unreadable import Unreadable
from streamwatch.edge.sources.kafka.refusals import error_name
from streamwatch.edge.sources.kafka.spec import KafkaSpec

WAIT_MS: Final = 500
"""How long a broker waits for records when there are none."""
SOON_MS: Final = 100
"""How long it waits while records of others are held back, which may wait to hear that there are none."""
TAKING_SECONDS: Final = 0.1
"""How long others on a node wait until what came from it is taken: an answer may take `WAIT_MS`."""
TRIES: Final = 3
"""Errors of a broker at one offset after which what stands there is taken to be unreadable."""
EMPTY_TRIES: Final = 10
"""Empty answers, each after `WAIT_MS`, though the log goes on: so a broker says that it finds no batch.
Where answers come sooner, more of them in the same time."""
TELL_AFTER: Final = 3
"""Failures in a row before one is told: leaders change now and then, which is over at the next attempt."""
TELL_EVERY: Final = 10
"""Requests in a row that brought no answer: nodes come and go, and that none answers is told by others."""
MOST_BYTES: Final = 52_428_800
"""Of one answer, over all partitions."""

OUT_OF_RANGE, CORRUPT, DENIED, UNKNOWN = 1, 2, 29, -1
MOVED: Final = frozenset({3, 5, 6, 9, 74, 75, 76, 78, 100})
"""Error codes after which leaders are looked for anew: no leader, another one, a topic that is not there."""


class Fetching:
    """Keeps one answer for each partition, or has asked for it.

    Parameters
    ----------
    client
        aiokafka's.
    spec
        Bytes to ask for, and how long to wait after errors.
    scanner
        Reads records of format v2.
    """

    def __init__(self, client: Any, spec: KafkaSpec, scanner: Scanner) -> None:
        self._client = client
        self._spec = spec
        self._scanner = scanner
        self._wake = asyncio.Event()
        self._busy: dict[int, asyncio.Task[None]] = {}
        self._waits: dict[int, Backoff] = {}
        self._not_before: dict[int, float] = {}
        self._loop: asyncio.Task[None] | None = None
        self.answers = 0
        """Answers without an error so far, over all partitions."""
        self.slots: dict[Partition, Slot] = {}
        self.arrived = asyncio.Event()
        """Set when there is something to take or to tell."""
        self._unreadable = Unreadable(client, self.arrived, self._wake)

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Fetch these partitions from these offsets, and no others."""
        for slot in self.slots.values():
            slot.seek(slot.position)
        self.slots = {p: Slot(p, position, self._backoff()) for p, position in positions.items()}
        if self._loop is None:
            self._loop = asyncio.create_task(self._run())
        self._wake.set()

    def seek(self, partition: Partition, position: int, asked: int = -1) -> None:
        """Go on from another offset, for which a broker may have to be asked by a later one."""
        self.slots[partition].seek(position)
        self.slots[partition].asked = asked
        self._wake.set()

    def taken(self, slot: Slot) -> None:
        """Everything of the answer was taken: ask for more."""
        slot.reader = None
        self._wake.set()

    def broken(self, slot: Slot, damage: Damage) -> None:
        """Take note that the answer cannot be read from here on; see `Unreadable.broken`."""
        self._unreadable.broken(slot, damage)

    def check(self) -> None:
        """Raise what ended the fetching, which nothing but a bug does."""
        if self._loop is not None and self._loop.done():
            self._loop.result()

    async def close(self) -> None:
        """Leave off."""
        tasks = [self._loop, *self._busy.values(), *(slot.salvage for slot in self.slots.values())]
        running = [task for task in tasks if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _backoff(self) -> Backoff:
        return Backoff(0.1, self._spec.backoff_max_ms / 1_000, lambda: 0.5)

    async def _run(self) -> None:
        try:
            while True:
                self._wake.clear()
                for node in [node for node, task in self._busy.items() if task.done()]:
                    self._busy.pop(node).result()
                seconds = self._dispatch(time.monotonic())
                try:
                    async with asyncio.timeout(seconds):
                        await self._wake.wait()
                except TimeoutError:
                    continue
        finally:
            self.arrived.set()

    def _dispatch(self, now: float) -> float:
        """Ask every node that is free for partitions of which nothing is left; seconds to the next turn."""
        wanted: dict[int, list[Slot]] = {}
        waiting: dict[int, float] = {}
        later = now + 1.0
        for slot in self.slots.values():
            node = self._client.cluster.leader_for_partition(TopicPartition(*slot.partition))
            if node is None or node < 0:
                if slot.retry_at <= now:
                    slot.retry_at = now + 0.1
                    self._client.force_metadata_update()
                later = min(later, slot.retry_at)
            elif slot.reader is not None:
                waiting[node] = max(waiting.get(node, 0.0), slot.since + TAKING_SECONDS)
            elif slot.idle and slot.retry_at > now:
                later = min(later, slot.retry_at)
            elif slot.idle:
                wanted.setdefault(node, []).append(slot)
        for node, slots in wanted.items():
            due = max(waiting.get(node, 0.0), self._not_before.get(node, 0.0))
            if node in self._busy:
                continue
            if due > now:
                later = min(later, due)
            else:
                wait_ms = SOON_MS if node in waiting else WAIT_MS
                self._busy[node] = asyncio.create_task(self._fetch(node, slots, wait_ms))
        return max(later - now, 0.001)

    async def _fetch(self, node: int, slots: list[Slot], wait_ms: int) -> None:
        asked = {slot.partition: (slot, slot.position) for slot in slots}
        offsets = [(slot.partition, max(slot.position, slot.asked)) for slot in slots]
        sent_at = time.monotonic()
        size = self._spec.max_partition_fetch_bytes
        wait = self._waits.setdefault(node, self._backoff())
        try:
            answers = await ask(self._client, node, offsets, size, wait_ms=wait_ms, most_bytes=MOST_BYTES)
        except CONNECTION_ERRORS as error:
            self._not_before[node] = time.monotonic() + min(wait.next_seconds(), 1.0)
            if wait.attempts % TELL_EVERY == 0:
                for slot in slots:
                    slot.error = worded(error)
        else:
            wait.reset()
            crowded = sum(len(answer.data) for answer in answers) > MOST_BYTES / 2
            for answer in answers:
                slot, position = asked.get(answer.partition, (None, -1))
                if slot is not None and self.slots.get(slot.partition) is slot and slot.position == position:
                    slot.sent_at = sent_at
                    self._take_in(slot, answer, wait_ms, crowded=crowded)
        finally:
            self._wake.set()

    def _take_in(self, slot: Slot, answer: Answer, wait_ms: int, *, crowded: bool) -> None:
        if answer.error:
            self._failed(slot, answer.error)
            return
        slot.high_watermark, slot.denied_since = answer.high_watermark, None
        self.answers += 1
        slot.answer = self.answers
        slot.backoff.reset()
        if answer.data:
            slot.reader = PartitionReader(
                slot.partition,
                answer.data,
                slot.position,
                answer.high_watermark,
                answer.aborted,
                self._scanner,
                self._spec.max_batch_bytes,
                self._spec.max_record_bytes,
            )
            slot.since = time.monotonic()
            self.arrived.set()
        elif answer.readable > max(slot.position, slot.asked) and not crowded:
            tries = EMPTY_TRIES * WAIT_MS // wait_ms
            self._unreadable.suspect(slot, tries, "the broker does not find it", to_the_end=False)

    def _failed(self, slot: Slot, code: int) -> None:
        now = time.monotonic()
        if code == OUT_OF_RANGE:
            slot.out_of_range = True
            self.arrived.set()
            return
        slot.retry_at = now + slot.backoff.next_seconds()
        if slot.backoff.attempts >= TELL_AFTER:
            slot.error = error_name(code)
        if code in MOVED:
            self._client.force_metadata_update()
        elif code == DENIED:
            slot.denied_since = slot.denied_since or now
            self.arrived.set()
        elif code in (CORRUPT, UNKNOWN):
            reason = f"the broker cannot read it: {error_name(code)}"
            self._unreadable.suspect(slot, TRIES, reason, to_the_end=code == CORRUPT)
