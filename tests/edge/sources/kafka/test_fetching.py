"""Fetching over answers made by hand: a partition that fails waits alone, and nothing of the others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError

from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka.batches.opened import Scanner
from streamwatch.edge.sources.kafka.batches.reader import AT_ONCE_BYTES
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from streamwatch.edge.sources.kafka.fetching import (
    HELD_BYTES,
    LARGE_AT_ONCE,
    LEAST_BYTES,
    Fetching,
    TurnRecords,
    bytes_of_each,
)
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from tests.edge.sources.kafka.batches.raw_batches import GZIP, ZSTD, RawBatch, compressed, message, of, record

A, B = Partition("events", 0), Partition("events", 1)
PATIENCE_SECONDS = 30
CORRUPT, UNAVAILABLE, DENIED = 2, 5, 29


class FakeClient:
    """One node that answers from logs of batches; an error code or an exception may stand for a log."""

    def __init__(self, logs: Mapping[Partition, Any]) -> None:
        self.logs = dict(logs)
        self.once: dict[Partition, Any] = {}
        """Logs that stand there for one answer only."""
        self.asked: list[tuple[Partition, int]] = []
        self.refreshed = 0
        self.sizes: list[int] = []
        """Bytes asked for of the first partition, by request."""
        self.only_what_fits = False
        """Whether a batch larger than what is asked for is given only of the first partition that has one."""
        self.cluster = SimpleNamespace(leader_for_partition=lambda _: 1)

    def force_metadata_update(self) -> None:
        self.refreshed += 1

    async def _get_conn(self, _node: int) -> None:
        """No connection that could be read directly."""

    async def send(self, _node: int, request: Any) -> Any:
        await asyncio.sleep(0)
        wanted = [(Partition(topic, n), offset) for topic, parts in request.topics for n, offset, _ in parts]
        self.asked += wanted
        size = request.topics[0][1][0][2]
        self.sizes.append(size)
        answers: list[tuple[Any, ...]] = []
        for partition, offset in wanted:
            log = self.once.pop(partition, self.logs[partition])
            if isinstance(log, Exception):
                raise log
            if isinstance(log, int):
                answers.append((partition.partition, log, -1, -1, -1, None, -1, b""))
                continue
            end = log[-1][1] + 1
            left = [raw for _, last, raw in log if last >= offset]
            given = any(answer[-1] for answer in answers)
            data = b"" if self.only_what_fits and given and len(left[0]) > size else b"".join(left)
            answers.append((partition.partition, 0, end, end, 0, None, -1, data))
        if not any(answer[-1] for answer in answers):
            await asyncio.sleep(0.02)  # as a broker waits for records
        return SimpleNamespace(API_KEY=1, API_VERSION=11, topics=[("events", answers)])


def log_of(*batches: RawBatch) -> list[tuple[int, int, bytes]]:
    return [(b.base, b.base + (b.last_delta or len(b.records) - 1), b.bytes()) for b in batches]


@asynccontextmanager
async def taking(
    client: FakeClient, positions: Mapping[Partition, int], **choices: object
) -> AsyncIterator[Fetching]:
    spec = KafkaSpec(**{"backoff_max_ms": 200, "max_poll_records": 100, **choices})  # type: ignore[arg-type]
    fetching = Fetching(client, spec, Scanner(compiled_scan(), 64))
    fetching.assign(positions)
    try:
        yield fetching
    finally:
        await fetching.close()


async def collected(
    fetching: Fetching, until: Callable[[TurnRecords], bool], **wanted: object
) -> list[tuple[int, int]]:
    seen: list[tuple[int, int]] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        taken = await fetching.take(wanted.get("only"), 0.05)  # type: ignore[arg-type]
        seen += [(r.partition, r.offset) for records in taken.records.values() for r in records]
        if until(taken):
            return seen
        assert time.monotonic() < deadline


async def test_an_answer_with_an_error_does_not_show_that_a_partition_is_still_at_its_end():
    client = FakeClient({A: log_of(of([b"x"] * 5, 0))})
    async with taking(client, {A: 0}) as fetching:
        await collected(fetching, lambda _: fetching.slots[A].position == 5)
        await collected(fetching, lambda _: fetching.slots[A].answer > 2)
        client.logs[A] = 6  # another node leads it: records may have been appended there
        before = len(client.asked)
        await collected(fetching, lambda _: len(client.asked) > before + 2)
        errors, known = client.asked[before:], fetching.slots[A].sent_at
        await collected(fetching, lambda _: len(client.asked) > before + len(errors) + 2)
        assert fetching.slots[A].sent_at == known


@pytest.mark.slow
@pytest.mark.parametrize("failure", [CORRUPT, DENIED, 56, 6])
async def test_a_partition_that_fails_is_asked_for_less_and_less_while_others_are_read(failure: int):
    client = FakeClient({A: failure, B: log_of(*(of([b"x"] * 5, base) for base in range(0, 500, 5)))})
    async with taking(client, {A: 0, B: 0}) as fetching:
        seen = 0
        failed: list[TurnRecords] = []

        def enough(taken: TurnRecords) -> bool:
            nonlocal seen
            seen += len(taken.records.get(B, []))
            if taken.failed:
                failed.append(taken)
            return seen == 500 and bool(failed)

        await collected(fetching, enough)
        first = time.monotonic()
        before = client.asked.count((A, 0))
        await collected(fetching, lambda _: time.monotonic() - first > 1.0)
        assert client.asked.count((A, 0)) - before <= 12
        [(error, delay)] = [failed[0].failed[A]]
        assert str(failure) in error or failure == CORRUPT
        assert 0 <= delay <= 0.2


@pytest.mark.slow
async def test_a_node_that_cannot_be_reached_is_asked_again_until_it_can_be():
    client = FakeClient({A: KafkaConnectionError("away")})
    async with taking(client, {A: 0}) as fetching:
        await collected(fetching, lambda _: len(client.asked) >= 3)
        client.logs[A] = log_of(of([b"x"]))
        assert await collected(fetching, lambda taken: bool(taken.records)) == [(0, 0)]


@pytest.mark.parametrize("code", [3, 5, 6, 9, 56, 74, 75, 78, 100])
async def test_metadata_is_refreshed_where_another_node_may_lead_the_partition(code: int):
    client = FakeClient({A: code})
    async with taking(client, {A: 0}) as fetching:
        await collected(fetching, lambda _: client.refreshed > 0)


@pytest.mark.parametrize("code", [CORRUPT, 76])  # 76: the broker cannot send this compression
async def test_metadata_is_not_refreshed_where_no_other_node_would_answer_otherwise(code: int):
    client = FakeClient({A: code})
    async with taking(client, {A: 0}) as fetching:
        await collected(fetching, lambda _: len(client.asked) >= 2)
        assert client.refreshed == 0


async def test_a_failure_is_reported_although_records_of_others_come_before_the_end_of_the_wait():
    client = FakeClient({A: log_of(of([b"a"])), B: log_of(of([b"b"]))})
    async with taking(client, {A: 1, B: 1}) as fetching:
        failing = fetching.slots[A]
        failing.error = "no leader"
        waiting = asyncio.create_task(fetching.take(None, PATIENCE_SECONDS))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while failing.error:  # noqa: ASYNC110  # no event to wait for
                await asyncio.sleep(0)
            client.logs[B] = log_of(of([b"b"] * 2))
            taken = await waiting
        assert list(taken.records) == [B]
        assert taken.failed[A][0] == "no leader"


@pytest.mark.slow
async def test_denials_are_reported_with_how_long_they_last_and_do_not_turn_the_loop_hot():
    client = FakeClient({A: DENIED})
    async with taking(client, {A: 0}) as fetching:
        began, turns = time.monotonic(), 0

        def long_enough(taken: TurnRecords) -> bool:
            nonlocal turns
            turns += 1
            return taken.denied.get(A, 0.0) > 0.4

        await collected(fetching, long_enough)
        assert time.monotonic() - began >= 0.4
        assert turns < 60


@pytest.mark.parametrize("since", [UNAVAILABLE, KafkaConnectionError("gone")])
async def test_a_denial_before_another_failure_is_no_denial_that_lasts(since: Any):
    client = FakeClient({A: since, B: log_of(of([b"y"]))})
    client.once[A] = DENIED
    async with taking(client, {A: 0, B: 0}) as fetching:
        await collected(fetching, lambda taken: A in taken.denied)
        await collected(fetching, lambda taken: A not in taken.denied)


class OneOfTwo(FakeClient):
    """A node whose answers leave out one partition."""

    async def send(self, node: int, request: Any) -> Any:
        answer = await super().send(node, request)
        [(topic, partitions)] = answer.topics
        answer.topics = [(topic, [each for each in partitions if each[0] != B.partition])]
        return answer


async def test_a_partition_that_answers_leave_out_waits_as_after_an_error_and_is_reported():
    client = OneOfTwo({A: log_of(of([b"x"])), B: log_of(of([b"y"]))})
    async with taking(client, {A: 0, B: 0}) as fetching:
        began = time.monotonic()
        assert await collected(fetching, lambda taken: B in taken.failed) == [(0, 0)]
        asked = client.asked.count((B, 0))
        assert asked <= 1 + (time.monotonic() - began) / 0.05  # half of the first wait is the least


class Throttling(FakeClient):
    """A node whose first answers have no partition, as of a broker that limits a client's rate."""

    async def send(self, node: int, request: Any) -> Any:
        answer = await super().send(node, request)
        if len(self.sizes) <= 4:
            answer.topics = []
        return answer


async def test_answers_without_a_partition_delay_requests_to_their_node_and_are_no_failure() -> None:
    client = Throttling({A: log_of(of([b"x"]))})
    async with taking(client, {A: 0}) as fetching:
        began = time.monotonic()

        def read(taken: TurnRecords) -> bool:
            assert not taken.failed
            return fetching.slots[A].position == 1

        assert await collected(fetching, read) == [(0, 0)]
        assert time.monotonic() - began >= 4 * 0.05


class ShortAnswers(FakeClient):
    """A node whose answers end within their second batch."""

    async def send(self, node: int, request: Any) -> Any:
        answer = await super().send(node, request)
        [(topic, [(*head, data)])] = answer.topics
        ends = 12 + int.from_bytes(data[8:12], "big") + 40
        answer.topics = [(topic, [(*head, data[:ends])])]
        return answer


async def test_a_broken_header_at_the_end_of_an_answer_costs_its_own_batch_only():
    batches = [of([b"x"] * 10, 10 * k).bytes() for k in range(20)]
    batches[3] = bytes((*batches[3][:26], 9 + 128, *batches[3][27:]))  # says that it ends at offset 167
    client = ShortAnswers({A: [(10 * k, 10 * k + 9, batch) for k, batch in enumerate(batches)]})
    async with taking(client, {A: 0}) as fetching:
        damages: list[tuple[int, int]] = []

        def skipped(taken: TurnRecords) -> bool:
            for partition, damage in taken.damages.items():
                damages.append((damage.first, damage.next_offset))
                fetching.seek(partition, damage.next_offset, damage.asked)
            return fetching.slots[A].position == 200

        seen = await collected(fetching, skipped)
    assert damages == [(30, 40)]
    assert [offset for _, offset in seen] == [*range(30), *range(40, 200)]


@pytest.mark.parametrize("magic", [0, 1])
async def test_damage_before_compressed_messages_of_an_old_format_costs_none_of_them(magic: int):
    inner = b"".join(message(i if magic else 7 + i, b"x", magic=magic) for i in range(5))
    whole = message(11, compressed(GZIP, inner), magic=magic, attributes=GZIP)
    broken = bytearray(message(5, b"y", magic=magic))
    broken[-1] ^= 1
    client = FakeClient({A: [(5, 5, bytes(broken)), (7, 11, whole)]})
    async with taking(client, {A: 5}) as fetching:
        taken = await fetching.take(None, PATIENCE_SECONDS)
        while not taken.damages:
            taken = await fetching.take(None, 0.05)
        damage = taken.damages[A]
        fetching.seek(A, damage.next_offset, damage.asked)
        seen = await collected(fetching, lambda _: fetching.slots[A].position == 12)
    assert [offset for _, offset in seen] == [7, 8, 9, 10, 11]


async def test_a_broken_answer_is_fetched_once_more_before_it_is_believed():
    sound = log_of(of([b"a"] * 3), of([b"b"] * 3, 3))
    flipped = bytearray(sound[0][2])
    flipped[70] ^= 1
    client = FakeClient({A: sound})
    client.once[A] = [(0, 2, bytes(flipped)), sound[1]]
    async with taking(client, {A: 0}) as fetching:
        seen = await collected(fetching, lambda _: fetching.slots[A].position == 6)
        assert seen == [(0, offset) for offset in range(6)]
        assert client.asked.count((A, 0)) == 2
        client.logs[A] = [*sound, (6, 8, bytes(flipped)), (9, 9, of([b"c"], 9).bytes())]
        taken = TurnRecords({}, {}, [], {}, {})
        while not taken.damages:
            taken = await fetching.take(None, 0.05)
        assert taken.damages[A].first == 6
        assert client.asked.count((A, 6)) >= 2
        fetching.seek(A, 9)
        assert await collected(fetching, lambda taken: bool(taken.records)) == [(0, 9)]


async def test_partitions_that_are_held_keep_what_was_fetched_and_give_large_memory_back():
    large = RawBatch([record(i, bytes(200_000)) for i in range(20)], codec=ZSTD)
    client = FakeClient({Partition("events", n): log_of(large) for n in range(6)})
    positions = dict.fromkeys(client.logs, 0)
    async with taking(client, positions, max_poll_records=2) as fetching:

        def unpacked() -> int:
            readers = [slot.reader for slot in fetching.slots.values() if slot.reader]
            return sum(reader.held_bytes > AT_ONCE_BYTES for reader in readers)

        most = 0
        seen: list[tuple[int, int]] = []

        def watched(taken: TurnRecords) -> bool:
            nonlocal most
            most = max(most, unpacked())
            seen.extend((r.partition, r.offset) for records in taken.records.values() for r in records)
            return len(seen) >= 30

        await collected(fetching, watched)
        assert 1 <= most <= LARGE_AT_ONCE
        await fetching.take([], 0.01)
        assert unpacked() == 0
        await collected(fetching, lambda taken: watched(taken) and len(seen) == 120)
        assert sorted(seen) == [(n, offset) for n in range(6) for offset in range(20)]
        assert most <= LARGE_AT_ONCE


def test_less_is_asked_for_of_each_of_many_partitions():
    assert bytes_of_each(8, 1_048_576) == 1_048_576
    assert bytes_of_each(128, 1_048_576) == HELD_BYTES // 128
    assert bytes_of_each(100_000, 1_048_576) == LEAST_BYTES
    assert bytes_of_each(128, 4_096) == 4_096
    assert bytes_of_each(0, 1_048_576) == 1_048_576


async def test_more_is_asked_for_where_batches_are_larger_and_nothing_is_taken_to_be_damaged():
    count = 1_024
    partitions = [Partition("events", n) for n in range(count)]
    large = log_of(of([b"x" * (LEAST_BYTES + 1)]))
    client = FakeClient(dict.fromkeys(partitions, large))
    client.only_what_fits = True
    async with taking(client, dict.fromkeys(partitions, 0)) as fetching:
        left = set(partitions)

        def all_are_read(taken: TurnRecords) -> bool:
            assert not taken.damages
            left.difference_update(taken.records)
            return not left

        await collected(fetching, all_are_read)
    assert client.sizes[:2] == [LEAST_BYTES, 1_048_576]
    assert len(client.sizes) < 10
