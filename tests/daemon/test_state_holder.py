"""An opening that is cancelled leaves no store open, whenever its thread comes to an end."""

from __future__ import annotations

import asyncio
import io
import threading
from typing import cast

import pytest

from streamwatch.daemon.commits import OffsetMetadata, State
from streamwatch.daemon.state_holder import StateHolder
from streamwatch.daemon.status import DaemonStatus
from streamwatch.telemetry import Telemetry
from tests.cpu_budget import until
from tests.daemon.fake_daemon import FakeSource

DEADLINE_SECONDS = 30


class Slow:
    """State whose opening takes as long as the test says, and that counts how often it was closed."""

    def __init__(self) -> None:
        self.begun, self.go_on, self.opened = threading.Event(), threading.Event(), threading.Event()
        self.closed = 0
        self.store = self

    def open(self) -> State:
        self.begun.set()
        assert self.go_on.wait(DEADLINE_SECONDS)
        self.opened.set()
        return cast("State", self)

    def close(self) -> None:
        self.closed += 1


def holder(slow: Slow) -> StateHolder:
    telemetry = Telemetry(stream=io.StringIO())
    return StateHolder(slow.open, OffsetMetadata(), DaemonStatus(FakeSource([]), telemetry), telemetry)


async def test_a_store_that_is_opened_after_the_opening_was_cancelled_is_closed() -> None:
    slow = Slow()
    held = holder(slow)
    opening = asyncio.create_task(held.open())
    await until(slow.begun.is_set)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not slow.opened.is_set()
    assert (held.state, slow.closed) == (None, 0)
    slow.go_on.set()
    await until(lambda: slow.closed > 0)
    assert (held.state, held.was_open, slow.closed) == (None, False, 1)


async def test_a_store_that_was_opened_when_the_opening_is_cancelled_is_closed_once() -> None:
    slow = Slow()
    opening = asyncio.create_task(holder(slow).open())
    await until(slow.begun.is_set)
    slow.go_on.set()
    assert slow.opened.wait(DEADLINE_SECONDS)  # and the loop has not seen it
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await until(lambda: slow.closed > 0)
    assert slow.closed == 1
