"""Connections that are made and then bring nothing are not made ever faster anew."""

from __future__ import annotations

import asyncio
import logging

import pytest

from streamwatch.edge.sources.kafka import connection as module
from streamwatch.edge.sources.kafka.client import ClientLogCapture
from streamwatch.edge.sources.kafka.connection import BrokerHealth, Session
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.wire import Listed
from streamwatch.telemetry import InternalEvent, KafkaLost


class FakeConnection:
    """Opens at once; what it would bring is the test's business."""

    def __init__(self, _: KafkaSpec) -> None: ...

    async def open(self) -> None: ...

    async def listing(self) -> dict[str, Listed]:
        return {"events": Listed({0: 1})}

    async def close(self, _: float) -> None: ...


async def test_the_wait_grows_while_connecting_succeeds_and_fetching_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "Connection", FakeConnection)
    heard: list[InternalEvent] = []
    spec = KafkaSpec(backoff_initial_ms=8, backoff_max_ms=64)
    health = BrokerHealth(5_000, heard.append, asyncio.get_running_loop().time)

    async def settle(*_: object) -> None: ...

    session = Session(spec, ["events"], health, settle, lambda: 1.0)
    await session.begin()

    async def fail() -> float:
        """The connection at hand breaks; returns the wait that was reported."""
        assert session.connection is not None
        session.drop(session.connection, TimeoutError("nothing came"))
        async with asyncio.timeout(30):
            while session.connection is None:
                await session.wait_connected()
        lost = heard[-2] if not isinstance(heard[-1], KafkaLost) else heard[-1]
        assert isinstance(lost, KafkaLost)
        return lost.retry_in_seconds

    assert [await fail() for _ in range(5)] == [0.008, 0.016, 0.032, 0.064, 0.064]
    session.proven()
    assert await fail() == 0.008
    await session.end(1.0)


def test_a_log_line_of_the_client_that_cannot_be_formatted_is_kept_as_it_stands():
    log = ClientLogCapture()
    log.emit(
        logging.LogRecord("aiokafka", logging.WARNING, __file__, 1, "no %(broker)s", ({"node": 1},), None)
    )
    assert log.last == "no %(broker)s"
