"""A connection that is closed leaves nothing behind, whoever still asks over it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from aiokafka.errors import KafkaError

from streamwatch.core.records.events import Partition
from streamwatch.demo.embedded import EmbeddedBroker
from streamwatch.edge.sources.kafka.connection import Connection
from streamwatch.edge.sources.kafka.dead_letters import KafkaProducer
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from tests.tiers import few

Complaints = list[str]


@pytest.fixture
async def complaints() -> AsyncIterator[Complaints]:
    """What asyncio would log."""
    heard: Complaints = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: heard.append(str(context["message"])))
    yield heard
    loop.set_exception_handler(None)


@pytest.fixture(scope="module")
def broker():
    gc.freeze()  # collections are then of what a test leaves, not of the whole process
    with EmbeddedBroker() as broker:
        broker.create_topic("events", 1)
        yield broker


def tasks() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


async def settled(before: set[asyncio.Task[Any]]) -> None:
    """Wait until only the tasks of before are left, and collect what nobody holds."""
    async with asyncio.timeout(20.0):
        while tasks() - before:
            await asyncio.wait(tasks() - before)
    gc.collect()


Asking = Callable[[Connection], Coroutine[None, None, Any]]


@pytest.mark.parametrize(
    "asking",
    [
        lambda connection: connection.listing(),
        lambda connection: connection.ends(Partition("events", 0)),
        lambda connection: connection.commit({Partition("events", 0): 1}, "state"),
    ],
    ids=["listing", "ends", "commit"],
)
@pytest.mark.parametrize("turns", few(range(8), 1))
async def test_what_is_asked_while_it_closes_fails_and_opens_no_connection_again(
    broker: EmbeddedBroker, complaints: Complaints, asking: Asking, turns: int
) -> None:
    before = tasks()
    connection = Connection(KafkaSpec(bootstrap_servers=broker.bootstrap_servers, group_id="g"))
    await connection.open()
    connection.assign({Partition("events", 0): 0})
    asked = asyncio.create_task(asking(connection))
    for _ in range(turns):
        await asyncio.sleep(0)
    await connection.close(2.0)
    [answer] = await asyncio.gather(asked, return_exceptions=True)
    assert not isinstance(answer, BaseException) or isinstance(answer, KafkaError | TimeoutError)
    late = await asyncio.gather(asking(connection), return_exceptions=True)
    assert isinstance(late[0], KafkaError | TimeoutError | AssertionError)
    del connection, asked, answer, late
    await settled(before)
    assert complaints == []


@pytest.mark.parametrize("turns", few(range(0, 40, 4), 3))
async def test_a_producer_that_is_given_up_while_it_opens_leaves_nothing_open(
    broker: EmbeddedBroker, complaints: Complaints, turns: int
) -> None:
    before = tasks()
    producer = KafkaProducer(KafkaSpec(bootstrap_servers=broker.bootstrap_servers))
    opening = asyncio.create_task(producer.leaders("events"))
    for _ in range(turns):
        await asyncio.sleep(0)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    await producer.close()
    del producer, opening
    await settled(before)
    assert complaints == []


@pytest.mark.parametrize("turns", few(range(0, 40, 4), 3))
async def test_a_connection_that_is_given_up_while_it_opens_leaves_nothing_open(
    broker: EmbeddedBroker, complaints: Complaints, turns: int
) -> None:
    before = tasks()
    connection = Connection(KafkaSpec(bootstrap_servers=broker.bootstrap_servers))
    opening = asyncio.create_task(connection.open())
    for _ in range(turns):
        await asyncio.sleep(0)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    await connection.close(2.0)
    del connection, opening
    await settled(before)
    assert complaints == []
