"""Records wait for their schemas: nothing is dropped, nothing is passed over, and the wait is reported."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from streamwatch.core.metrics import single
from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import NeededSchemas, Poll, Record
from streamwatch.core.records.events import Partition
from tests.cpu_budget import until
from tests.daemon.fake_daemon import (
    NOW_MS,
    L,
    P,
    fake_daemon,
    label,
    poll,
    prediction,
    stands,
)


@dataclass
class FakeSchemas:
    """Schemas that are at hand while the test says so."""

    waiting: str | None = None
    problem: str | None = None
    missing_of: frozenset[Partition] = frozenset({P, L})
    """Partitions whose records need what is not at hand while something is waited for."""
    asked: list[Mapping[Partition, Sequence[Record]]] = field(default_factory=list)
    looks: int = 0
    closed: bool = False

    async def needed(self, records: Mapping[Partition, Sequence[Record]]) -> NeededSchemas:
        self.asked.append(records)
        return dict.fromkeys(records, (7,))

    async def missing(self, needed: NeededSchemas, *, wait: bool = True) -> Collection[Partition]:
        self.looks += wait
        await asyncio.sleep(0)
        return self.missing_of & needed.keys() if self.waiting else ()

    def families(self) -> Sequence[Family]:
        return [single("schema_registry_up", float(self.waiting is None))]

    async def close(self) -> None:
        self.closed = True


@pytest.mark.slow
async def test_what_came_before_is_shown_while_records_wait_and_all_of_it_counts_in_the_end() -> None:
    schemas = FakeSchemas()
    first = poll(*(prediction(i) for i in range(10)), *(label(i) for i in range(10)))
    h = fake_daemon(first, schemas=schemas)
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: bool(h.server.reports) and h.reported("labels_joined_total") == 10)
    schemas.waiting = "schema registry at r: the connection fails"
    h.source.polls.append(poll(*(prediction(i) for i in range(10, 20)), *(label(i) for i in range(10, 20))))
    await until(lambda: schemas.looks > 50 and schemas.asked[-1] != {})
    assert h.status.unready() == [
        "records wait for their schemas: schema registry at r: the connection fails"
    ]
    assert (h.live("ready"), h.live("schema_registry_up")) == (0.0, 0.0)
    assert h.source.paused == {P, L}
    assert h.processor.positions == {P: 10, L: 10}
    assert h.reported("labels_joined_total") == 10
    schemas.waiting = None
    await until(lambda: h.reported("labels_joined_total") == 20)
    assert h.processor.positions == {P: 20, L: 20}
    assert h.status.unready() == []
    assert h.source.paused == frozenset()
    h.daemon.stop()
    await running
    assert schemas.closed


async def test_a_stop_does_not_wait_for_a_registry_and_what_waited_is_read_again() -> None:
    schemas = FakeSchemas(waiting="away")
    h = fake_daemon(poll(*(prediction(i) for i in range(10))), schemas=schemas)
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: schemas.looks > 5)
    h.daemon.stop()
    async with asyncio.timeout(30):
        await running
    assert all(position == 0 for position in h.processor.positions.values())
    assert all(position == 0 for position in h.source.durable_positions.values())


async def test_what_polls_tell_of_the_logs_meanwhile_is_heeded_in_turn() -> None:
    schemas = FakeSchemas(waiting="away")
    moved = replace(Poll({}, poll().partitions), moved=frozenset({L}))
    h = fake_daemon(poll(*(prediction(i) for i in range(10))), moved, schemas=schemas)
    flushed: list[frozenset[Partition]] = []
    flush = h.processor.flush
    h.processor.flush = lambda gone: (flushed.append(gone), flush(gone))[1]  # type: ignore[method-assign]
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: schemas.looks > 5)
    assert flushed == []
    schemas.waiting = None
    await until(lambda: bool(flushed))
    assert flushed == [frozenset({L})]
    assert h.processor.records == 10
    h.daemon.stop()
    await running


AWAY = "schema registry at r: the connection fails"


async def test_once_caught_up_others_wait_so_long_and_then_what_needs_a_schema_is_left_behind() -> None:
    schemas = FakeSchemas(missing_of=frozenset({L}))
    h = fake_daemon(poll(prediction(0), label(0)), schemas=schemas, max_hold_back_seconds=0.05)
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: bool(h.server.reports) and h.reported("labels_joined_total") == 1)
    schemas.waiting = AWAY
    late = [label(n, record_ms=NOW_MS - 5) for n in (1, 2)]
    h.source.polls += [
        poll(prediction(1, record_ms=NOW_MS + 1), late[0]),
        poll(late[1]),  # on its way when reading it was given up
        poll(prediction(2, record_ms=NOW_MS + 2)),
    ]
    await until(lambda: h.processor.positions[P] == 3)
    assert h.processor.positions[L] == 1, "what was set aside is read again after a restart"
    assert h.processor.progress.left_behind == 1
    assert "partition_left_behind" in h.events()
    await until(lambda: h.source.paused == {L})
    assert h.status.unready() == [f"records wait for their schemas: {AWAY}"]
    assert not h.status.caught_up
    schemas.waiting = None
    await until(lambda: h.processor.positions[L] == 3 and h.reported("labels_joined_total") == 3)
    assert h.processor.progress.out_of_order == {"labels": 2}
    await until(lambda: h.status.caught_up)
    assert h.source.paused == frozenset()
    h.daemon.stop()
    await running


async def test_a_partition_left_behind_holds_nobody_up_whatever_comes_to_others_in_need() -> None:
    """The time of an outage counts, not that of each partition."""
    schemas = FakeSchemas(missing_of=frozenset({P, L}))
    h = fake_daemon(
        poll(prediction(0, record_ms=NOW_MS - 9), label(0, record_ms=NOW_MS - 9)),
        schemas=schemas,
        max_hold_back_seconds=0.05,
    )
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: h.processor.positions == {P: 1, L: 1})
    schemas.waiting = AWAY
    h.source.polls.append(poll(label(1, record_ms=NOW_MS - 4)))
    await until(lambda: h.source.paused == {L})
    h.source.polls.append(poll(prediction(1, record_ms=NOW_MS - 5)))
    await until(lambda: h.source.paused == {P, L} and h.processor.progress.left_behind == 2)
    schemas.waiting = None
    await until(lambda: h.processor.positions == {P: 2, L: 2})
    assert h.processor.progress.out_of_order == {}, "both come back together, in order"
    h.daemon.stop()
    await running


async def test_while_a_backlog_is_read_a_schema_is_waited_for_without_limit() -> None:
    schemas = FakeSchemas(waiting=AWAY)
    h = fake_daemon(
        poll(*(prediction(i) for i in range(10)), *(label(i) for i in range(10))),
        schemas=schemas,
        max_hold_back_seconds=0.0,
    )
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: schemas.looks > 50)
    assert h.processor.records == 0
    assert h.processor.progress.left_behind == 0
    schemas.waiting = None
    await until(lambda: h.processor.positions == {P: 10, L: 10})
    assert h.processor.progress.out_of_order == {}
    h.daemon.stop()
    await running


async def test_records_set_aside_of_a_log_that_is_gone_are_taken_before_those_of_the_new_one() -> None:
    schemas = FakeSchemas(missing_of=frozenset({L}))
    h = fake_daemon(poll(prediction(0), label(0)), schemas=schemas, max_hold_back_seconds=0.0)
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: h.processor.positions == {P: 1, L: 1})
    schemas.waiting = AWAY
    h.source.polls.append(poll(label(1), label(2)))
    await until(lambda: h.source.paused == {L})
    assert h.processor.records == 2
    h.source.ends[L] = 0
    h.source.polls.append(replace(Poll({}, {P: stands(1), L: stands(0)}), moved=frozenset({L})))
    await until(lambda: h.processor.records == 4)
    await until(lambda: h.source.paused == frozenset())
    assert h.processor.positions == {P: 1, L: 0}
    h.daemon.stop()
    await running
