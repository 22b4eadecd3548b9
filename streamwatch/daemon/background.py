"""Work in a thread that does not keep the process from leaving."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress


async def in_background(work: Callable[[], None]) -> None:
    """Await `work` in a thread of its own; whoever stops waiting leaves it to itself.

    The event loop's own pool is waited for at the end of a run, be it for minutes.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as raised:  # noqa: BLE001 - it is raised where it is awaited
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, name="background", daemon=True).start()
    await done
