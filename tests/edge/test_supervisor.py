from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from streamwatch.edge.process import Supervisor


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """A service manager's socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(300)
        yield listening


def supervised(manager: socket.socket, **environment: str) -> Supervisor:
    return Supervisor.from_environment({"NOTIFY_SOCKET": manager.getsockname(), **environment})


def test_each_message_is_one_datagram_of_the_protocol(manager: socket.socket) -> None:
    supervisor = supervised(manager)

    supervisor.status("the estimators are being compiled")
    supervisor.ready()
    supervisor.stopping()

    reported = [manager.recv(4096) for _ in range(3)]
    assert reported == [b"STATUS=the estimators are being compiled", b"READY=1", b"STOPPING=1"]


def test_a_status_is_sent_once_and_cannot_smuggle_in_another_message(manager: socket.socket) -> None:
    supervisor = supervised(manager)

    supervisor.status("Kafka has not answered yet")
    supervisor.status("Kafka has not answered yet")
    supervisor.status("reading\nREADY=1")
    supervisor.stopping()

    reported = [manager.recv(4096) for _ in range(3)]
    assert reported == [b"STATUS=Kafka has not answered yet", b"STATUS=reading READY=1", b"STOPPING=1"]


def test_an_abstract_socket_is_reached() -> None:
    name = f"streamwatch-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}")
        manager.settimeout(300)

        Supervisor.from_environment({"NOTIFY_SOCKET": f"@{name}"}).ready()

        assert manager.recv(4096) == b"READY=1"


@pytest.mark.slow
async def test_the_loop_pings_at_least_twice_in_the_time_it_is_given(manager: socket.socket) -> None:
    supervisor = supervised(manager, WATCHDOG_USEC="200000", WATCHDOG_PID=str(os.getpid()))
    manager.setblocking(False)

    began = time.monotonic()
    pings = asyncio.create_task(supervisor.watch())
    for _ in range(4):
        await asyncio.sleep(0.1)  # in this loop, late as the pings are: one at least must have been sent
        assert manager.recv(4096) == b"WATCHDOG=1"
    reported = 4
    with suppress(BlockingIOError):
        while manager.recv(4096) == b"WATCHDOG=1":
            reported += 1
    pings.cancel()

    assert reported <= 1 + (time.monotonic() - began) / 0.06  # a third of 200 ms apart, and no nearer


async def test_a_loop_that_does_not_turn_does_not_ping(manager: socket.socket) -> None:
    supervisor = supervised(manager, WATCHDOG_USEC="30000")
    pings = asyncio.create_task(supervisor.watch())
    await asyncio.sleep(0)
    assert manager.recv(4096) == b"WATCHDOG=1"

    manager.settimeout(0.1)
    with pytest.raises(TimeoutError):
        manager.recv(4096)  # holds the loop for three times the interval

    pings.cancel()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"},  # meant for another
    ],
)
async def test_nobody_pings_where_nobody_watches(manager: socket.socket, environment: dict[str, str]) -> None:
    supervisor = supervised(manager, **environment)
    assert supervisor.watchdog_seconds is None
    async with asyncio.timeout(300):
        await supervisor.watch()


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nowhere/at/all"}])
def test_a_supervisor_that_is_not_there_is_no_fault(environment: dict[str, str]) -> None:
    supervisor = Supervisor.from_environment(environment)
    supervisor.ready()
    supervisor.status("reading")
    supervisor.stopping()


def test_a_supervisor_that_does_not_listen_is_not_waited_for(manager: socket.socket) -> None:
    supervisor = supervised(manager)
    began = time.monotonic()
    for _ in range(2_000):  # the queue of a datagram socket holds some hundreds at most
        supervisor.ready()
    assert time.monotonic() - began < 60
