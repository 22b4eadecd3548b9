"""The event loop turns often enough for health checks, and no more often than that."""

from __future__ import annotations

import asyncio
from typing import Final
from weakref import WeakKeyDictionary

REQUEST_STEPS: Final = 4
HELD_SECONDS: Final = 0.003
"""How long the loop may be held before others have a turn: those cost what a hundred records cost."""

_turned: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()
"""When each loop last turned for others, by its own clock."""


async def yield_to_loop() -> None:
    """Let the event loop turn between two batches, if it was held for long since it last did.

    A request takes as many turns as it has steps (read, handle, answer): after a single turn a whole batch
    would stand between two of its steps.
    """
    loop = asyncio.get_running_loop()
    if loop.time() - _turned.get(loop, 0.0) < HELD_SECONDS:
        return
    for _ in range(REQUEST_STEPS):
        await asyncio.sleep(0)
    _turned[loop] = loop.time()
