"""Records wait for their schemas: nothing is dropped, nothing is passed over, and the wait is told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from streamwatch.core.events import Partition
from streamwatch.core.metrics import single
from streamwatch.core.ports import Poll, Record
from streamwatch.core.series import Family
from tests.daemon.fake_daemon import L, P, fake_daemon, label, poll, prediction, until


@dataclass
class FakeSchemas:
    """Schemas that are at hand while the test says so."""

    problem: str | None = None
    asked: list[Mapping[Partition, Sequence[Record]]] = field(default_factory=list)
    closed: bool = False

    async def ready(self, records: Mapping[Partition, Sequence[Record]]) -> bool:
        self.asked.append(records)
        return self.problem is None or not records

    def families(self) -> Sequence[Family]:
        return [single("schema_registry_up", float(self.problem is None))]

    async def close(self) -> None:
        self.closed = True


@pytest.mark.slow
async def test_what_came_before_is_shown_while_records_wait_and_all_of_it_counts_in_the_end() -> None:
    schemas = FakeSchemas()
    first = poll(*(prediction(i) for i in range(10)), *(label(i) for i in range(10)))
    h = fake_daemon(first, schemas=schemas)
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: bool(h.server.reports) and h.reported("labels_joined_total") == 10)
    schemas.problem = "schema registry at r: the connection fails"
    h.source.polls.append(poll(*(prediction(i) for i in range(10, 20)), *(label(i) for i in range(10, 20))))
    await until(lambda: len(schemas.asked) > 50 and schemas.asked[-1] != {})
    assert h.status.unready() == [
        "records wait for their schemas: schema registry at r: the connection fails"
    ]
    assert (h.live("ready"), h.live("schema_registry_up")) == (0.0, 0.0)
    assert h.source.paused == {P, L}
    assert h.processor.positions == {P: 10, L: 10}
    assert h.reported("labels_joined_total") == 10
    schemas.problem = None
    await until(lambda: h.reported("labels_joined_total") == 20)
    assert h.processor.positions == {P: 20, L: 20}
    assert h.status.unready() == []
    assert h.source.paused == frozenset()
    h.daemon.stop()
    await running
    assert schemas.closed


async def test_a_stop_does_not_wait_for_a_registry_and_what_waited_is_read_again() -> None:
    schemas = FakeSchemas(problem="away")
    h = fake_daemon(poll(*(prediction(i) for i in range(10))), schemas=schemas)
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: len(schemas.asked) > 5)
    h.daemon.stop()
    async with asyncio.timeout(30):
        await running
    assert all(position == 0 for position in h.processor.positions.values())
    assert all(position == 0 for position in h.source.durable_positions.values())


async def test_what_polls_tell_of_the_logs_meanwhile_is_heeded_in_turn() -> None:
    schemas = FakeSchemas(problem="away")
    moved = replace(Poll({}, poll().partitions), moved=frozenset({L}))
    h = fake_daemon(poll(*(prediction(i) for i in range(10))), moved, schemas=schemas)
    flushed: list[frozenset[Partition]] = []
    flush = h.processor.flush
    h.processor.flush = lambda gone: (flushed.append(gone), flush(gone))[1]  # type: ignore[method-assign]
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: len(schemas.asked) > 5)
    assert flushed == []
    schemas.problem = None
    await until(lambda: bool(flushed))
    assert flushed == [frozenset({L})]
    assert h.processor.records == 10
    h.daemon.stop()
    await running
