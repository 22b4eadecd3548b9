"""Fetches from the leaders of all partitions, one request to a node at a time.

Uses the client's connections and its metadata, not its consumer, which raises on invalid records and so would
end reading (see `batches.reader`). A partition is requested again once all records of its answer were taken,
so that memory is bounded by one answer for each; with many partitions, answers are smaller (`bytes_of_each`).
A partition that fails waits without delaying others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from aiokafka.errors import LeaderNotAvailableError
from aiokafka.structs import TopicPartition

from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka.batches.frames import Batch, Damage, Look, batch_at, next_readable
from streamwatch.edge.sources.kafka.batches.opened import Scanner
from streamwatch.edge.sources.kafka.batches.reader import AT_ONCE_BYTES, PartitionReader
from streamwatch.edge.sources.kafka.batches.record import KafkaRecords
from streamwatch.edge.sources.kafka.refusals import error_name
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.wire import CONNECTION_ERRORS, MOST_BYTES, Answer, ask, worded

# Waiting times before the next attempt.


@dataclass(slots=True)
class Backoff:
    """Exponential back-off from `initial` to `maximum` seconds; each wait is random within its upper half."""

    initial: float
    maximum: float
    random: Callable[[], float]
    attempts: int = 0

    def next_seconds(self) -> float:
        """Count a failure, and return the wait in seconds."""
        ceiling = min(self.maximum, self.initial * 2.0 ** min(self.attempts, 32))
        self.attempts += 1
        return ceiling * (0.5 + 0.5 * self.random())

    def reset(self) -> None:
        """Forget failures, after a success."""
        self.attempts = 0


# State of one partition that is fetched.


@dataclass(slots=True, eq=False)
class Slot:
    """State of one partition; a new assignment replaces the slot, so that late answers are dropped."""

    partition: Partition
    position: int
    """Offset of the next record to be taken."""
    backoff: Backoff
    """Back-off after errors of this partition."""
    reader: PartitionReader | None = None
    """Answer that is being taken."""
    since: float = 0.0
    """Time at which `reader`'s answer came (monotonic seconds)."""
    retry_at: float = 0.0
    """Time before which the partition is not requested (monotonic seconds)."""
    high_watermark: int = -1
    """High watermark in the last answer without an error; -1 before the first."""
    answer: int = 0
    """Number of the last answer without an error, among those of all partitions."""
    sent_at: float = 0.0
    """Time at which the request of the last answer without an error was sent (monotonic seconds)."""
    out_of_range: bool = False
    """Whether the log does not hold the position."""
    damage: Damage | None = None
    """Damage at the position that retries do not cure; None without any."""
    asked: int = -1
    """Later offset by which brokers find the position, after damage in the log; -1: the position itself."""
    suspected: int = -1
    """Offset at which an answer was broken once, or a broker failed; -1 without one."""
    error: str = ""
    """Failure to report; empty without one."""
    failures: int = 0
    """Number of a broker's errors at `suspected`."""
    salvage: asyncio.Task[None] | None = None
    """Task that searches the offset at which reading can continue; None without damage."""
    denied_since: float | None = None
    """Time since which every request was denied access (monotonic seconds); None if the last was not."""

    @property
    def idle(self) -> bool:
        """Tell whether the partition has nothing left to take or report, so that it can be requested."""
        return self.reader is None and self.damage is None and self.salvage is None and not self.out_of_range

    def seek(self, position: int) -> None:
        """Continue from another offset, and drop the answer, errors and damage before it."""
        self.position = position
        self.reader = self.damage = self.denied_since = None
        self.asked = -1
        self.out_of_range = False
        self.suspected, self.failures, self.retry_at = -1, 0, 0.0
        if self.salvage is not None:
            self.salvage.cancel()
            self.salvage = None
        self.backoff.reset()


# Unreadable parts of a log: when they are given up, and where reading continues.


class Unreadable:
    """Gives up damaged parts of partitions, after enough attempts to read them.

    Parameters
    ----------
    client
        aiokafka's client.
    arrived
        Set when there is damage to report.
    wake
        Set when there is a partition to fetch again.
    """

    def __init__(self, client: Any, arrived: asyncio.Event, wake: asyncio.Event) -> None:
        self._client = client
        self._arrived = arrived
        self._wake = wake

    def broken(self, slot: Slot, damage: Damage) -> None:
        """Drop an answer that is damaged at the position, as aborts may be missing from its rest.

        It is fetched once more before the damage is given up, unless the checksum shows that it was written
        so.
        """
        slot.reader = None
        if not damage.certain and slot.suspected != slot.position:
            slot.suspected = slot.position
        else:
            self._give_up(slot, damage, to_the_end=True)
        self._wake.set()

    def suspect(self, slot: Slot, tries: int, reason: str, *, to_the_end: bool) -> None:
        """Count a failure to read at the slot's position; give it up as damaged after `tries`."""
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
        """Search the offset from which the log can be read; without one, retry the position later."""

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
            if not isinstance(found, Batch):
                return "unreadable"
            return offset if found.first_offset is None else found.first_offset

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
        elif resumed.position <= slot.position:  # nothing is lost: another offset leads to it
            slot.asked = resumed.asked
        else:
            slot.damage = damage._replace(next_offset=resumed.position, asked=resumed.asked)
        self._arrived.set()
        self._wake.set()


WAIT_MS: Final = 500
"""Time that a broker waits for records when there are none."""
SOON_MS: Final = 100
"""The same time while records of other partitions on the node wait to be taken, perhaps for this answer."""
TAKING_SECONDS: Final = 0.1
"""Time for which a request to a node waits until answers of its other partitions are taken."""
TRIES: Final = 3
"""Number of a broker's errors at one offset after which the batch there is given up."""
EMPTY_TRIES: Final = 10
"""Number of empty answers at an offset before the end of the log, each after `WAIT_MS`, after which the batch
there is given up: a broker that does not find a batch answers so. Proportionally more where answers come
sooner."""
REPORT_AFTER: Final = 3
"""Failure in a row from which on each is reported: after a change of leader, the next attempt succeeds."""
REPORT_EVERY: Final = 10
"""Of unanswered requests to one node in a row, each of this number is reported: nodes restart."""
HELD_BYTES: Final = 32 * 1_048_576
"""Bytes at most of waiting answers, over all partitions, unless `LEAST_BYTES` for each are more."""
LEAST_BYTES: Final = 131_072
"""Bytes to request of a partition at least, unless its limit is lower: a smaller request takes more time than
its records."""


def bytes_of_each(partitions: int, limit: int) -> int:
    """Return the bytes to request of each of `partitions`; `limit` is `max_partition_fetch_bytes`."""
    return min(limit, max(LEAST_BYTES, HELD_BYTES // max(partitions, 1)))


OUT_OF_RANGE, CORRUPT, DENIED, UNKNOWN = 1, 2, 29, -1
MOVED: Final = frozenset({3, 5, 6, 9, 56, 74, 75, 78, 100})
"""Error codes after which metadata is refreshed: no such topic (3, 100), no leader or another one (5, 6, 9,
74, 75), a leader whose disk failed (56) or that does not know yet how far its log may be read (78)."""


LARGE_AT_ONCE: Final = 2
"""Large decompressed batches in memory at most, over all partitions."""


class TurnRecords(NamedTuple):
    """Records of one turn."""

    records: dict[Partition, KafkaRecords]
    damages: dict[Partition, Damage]
    """Damage at the position of a partition."""
    out_of_range: list[Partition]
    """Partitions whose logs do not hold the position: `seek` is needed."""
    failed: dict[Partition, tuple[str, float]]
    """(error, seconds until the next attempt) of partitions whose requests fail repeatedly."""
    denied: dict[Partition, float]
    """Seconds for which every request was denied access, for partitions that this user may not read."""


class Fetching:
    """Fetches all partitions: holds one answer of each, or has requested it, and lets records be taken.

    Parameters
    ----------
    client
        aiokafka's client.
    spec
        Limits on bytes, and waits after errors.
    scanner
        Scanner of batches of format v2.
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
        self._size_bytes = spec.max_partition_fetch_bytes
        """Bytes to request of each partition."""
        self.answers = 0
        """Number of answers without an error so far, over all partitions."""
        self.slots: dict[Partition, Slot] = {}
        self.arrived = asyncio.Event()
        """Set when there are records to take, or something to report."""
        self.unreadable = Unreadable(client, self.arrived, self._wake)

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Fetch these partitions from these offsets, and no others."""
        for slot in self.slots.values():
            slot.seek(slot.position)
        self.slots = {p: Slot(p, position, self._backoff()) for p, position in positions.items()}
        self._size_bytes = bytes_of_each(len(self.slots), self._spec.max_partition_fetch_bytes)
        if self._loop is None:
            self._loop = asyncio.create_task(self._run())
        self._wake.set()

    def seek(self, partition: Partition, position: int, asked: int = -1) -> None:
        """Continue from another offset; `asked` is a later one by which brokers find it, -1 for itself."""
        self.slots[partition].seek(position)
        self.slots[partition].asked = asked
        self._wake.set()

    def taken(self, slot: Slot) -> None:
        """Drop an answer whose records were all taken, and request the next."""
        slot.reader = None
        self._wake.set()

    def check(self) -> None:
        """Raise the exception that ended the fetching; only a bug causes one."""
        if self._loop is not None and self._loop.done():
            self._loop.result()

    async def close(self) -> None:
        """Stop fetching."""
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
        """Send requests for idle partitions to nodes without one; return the seconds to the next call."""
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
        size = self._size_bytes
        wait = self._waits.setdefault(node, self._backoff())
        try:
            answers = await ask(self._client, node, offsets, size, wait_ms=wait_ms)
        except CONNECTION_ERRORS as error:
            self._unanswered(node, slots, worded(error))
        else:
            if not answers:  # a broker that limits this client's rate answers so
                self._unanswered(node, slots, "the broker's answer is empty")
                return
            wait.reset()
            crowded = sum(len(answer.data) for answer in answers) > MOST_BYTES / 2
            given = {answer.partition: answer for answer in answers}
            for partition, (slot, position) in asked.items():
                if self.slots.get(partition) is not slot or slot.position != position:
                    continue
                if (answer := given.get(partition)) is None:
                    self._delay(slot, "the broker's answer leaves it out")
                else:
                    self._take_in(slot, answer, sent_at, wait_ms, crowded=crowded)
        finally:
            self._wake.set()

    def _unanswered(self, node: int, slots: Sequence[Slot], error: str) -> None:
        """Let a node wait before its next request; report the error for each of `REPORT_EVERY` in a row."""
        wait = self._waits[node]
        self._not_before[node] = time.monotonic() + min(wait.next_seconds(), 1.0)
        for slot in slots:
            slot.denied_since = None
        if wait.attempts % REPORT_EVERY == 0:
            for slot in slots:
                slot.error = error

    def _take_in(self, slot: Slot, answer: Answer, sent_at: float, wait_ms: int, *, crowded: bool) -> None:
        if answer.error:
            self._failed(slot, answer.error)
            return
        slot.high_watermark, slot.sent_at, slot.denied_since = answer.high_watermark, sent_at, None
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
        elif answer.readable <= max(slot.position, slot.asked) or crowded:
            return
        elif self._size_bytes < self._spec.max_partition_fetch_bytes:
            # Brokers exceed the requested bytes only for the first partition in an answer, by one batch.
            self._size_bytes = self._spec.max_partition_fetch_bytes
        else:
            tries = EMPTY_TRIES * WAIT_MS // wait_ms
            self.unreadable.suspect(slot, tries, "the broker does not find it", to_the_end=False)

    def _delay(self, slot: Slot, error: str) -> None:
        """Let a partition wait before it is requested again; report its error after some failures."""
        slot.retry_at = time.monotonic() + slot.backoff.next_seconds()
        if slot.backoff.attempts >= REPORT_AFTER:
            slot.error = error

    def _failed(self, slot: Slot, code: int) -> None:
        now = time.monotonic()
        if code != DENIED:
            slot.denied_since = None
        if code == OUT_OF_RANGE:
            slot.out_of_range = True
            self.arrived.set()
            return
        self._delay(slot, error_name(code))
        if code in MOVED:
            self._client.force_metadata_update()
        elif code == DENIED:
            slot.denied_since = slot.denied_since or now
            self.arrived.set()
        elif code in (CORRUPT, UNKNOWN):
            reason = f"the broker cannot read it: {error_name(code)}"
            self.unreadable.suspect(slot, TRIES, reason, to_the_end=code == CORRUPT)

    # Taking fetched records, a limited number in a turn; large batches are decompressed in threads.

    async def take(self, wanted: Collection[Partition] | None, timeout_seconds: float) -> TurnRecords:
        """Wait for the next records of these partitions, or of all (None), at most `timeout_seconds`.

        Raises
        ------
        CodecMissing
            Records are compressed with a codec whose package is not installed.
        """
        deadline = time.monotonic() + timeout_seconds
        failed: dict[Partition, tuple[str, float]] = {}
        while True:
            self.check()
            self.arrived.clear()
            slots = self._slots(wanted)
            await self._unpack(slots)
            taken = self._turn(slots, failed)
            left = deadline - time.monotonic()
            if taken.records or taken.damages or taken.out_of_range or left <= 0:
                return taken
            if any(slot.reader is not None for slot in slots):
                await asyncio.sleep(0)
                continue
            try:
                async with asyncio.timeout(left):
                    await self.arrived.wait()
            except TimeoutError:
                return taken

    def _slots(self, wanted: Collection[Partition] | None) -> list[Slot]:
        """Return the slots of wanted partitions, or of all; others free large decompressed batches."""
        slots = self.slots
        if wanted is None:
            return list(slots.values())
        chosen = frozenset(wanted)
        for partition, slot in slots.items():
            if partition not in chosen and slot.reader is not None:
                slot.reader.release()
        return [slot for partition, slot in slots.items() if partition in chosen]

    async def _unpack(self, slots: list[Slot]) -> None:
        """Decompress one large batch, if any is next and fewer than `LARGE_AT_ONCE` are in memory."""
        heavy = [slot.reader for slot in slots if slot.reader is not None and slot.reader.heavy]
        readers = [slot.reader for slot in self.slots.values() if slot.reader is not None]
        large = sum(reader.held_bytes > AT_ONCE_BYTES for reader in readers)
        if heavy and large < LARGE_AT_ONCE:
            await asyncio.to_thread(heavy[0].unpack)

    def _turn(self, slots: list[Slot], failed: dict[Partition, tuple[str, float]]) -> TurnRecords:
        """Take what there is; `failed` are the failures of earlier turns without records, to be added to."""
        taken = TurnRecords({}, {}, [], failed, {})
        room = self._spec.max_poll_records
        now = time.monotonic()
        for slot in sorted(slots, key=lambda slot: slot.since):  # the earliest answer first
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
        """Take up to `room` records from one answer; return their number."""
        reader = slot.reader
        assert reader is not None  # noqa: S101 - asked by the caller
        records = reader.take(room)
        slot.position = reader.position
        if records:
            taken.records[slot.partition] = records
        elif reader.damage is not None:
            self.unreadable.broken(slot, reader.damage)
        if reader.done:
            self.taken(slot)
        return len(records)
