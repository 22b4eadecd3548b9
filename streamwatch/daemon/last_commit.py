"""The last commit before a stop, which has a bounded time to reach the disk."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from streamwatch.daemon.commits import Commits
from streamwatch.edge.stores.errors import StateFailed

COMMIT_SECONDS = 4.0
"""Seconds a stop waits for the last commit to be on the disk."""


async def finish(commits: Commits) -> None:
    """Make durable what was read. Being cancelled gives up a poll, which is over: the disk has its time.

    Raises
    ------
    StateFailed
        If that takes longer than `COMMIT_SECONDS`.
    """
    finishing = asyncio.create_task(commits.finish())
    loop = asyncio.get_running_loop()
    deadline = loop.time() + COMMIT_SECONDS
    while not finishing.done() and (left := deadline - loop.time()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.wait({finishing}, timeout=left)
    if not finishing.done():
        finishing.cancel()
        raise StateFailed(f"the last commit was not on the disk within {COMMIT_SECONDS:g} s")
    finishing.result()
