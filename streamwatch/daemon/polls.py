"""Polls of a source in order, each once the schemas are at hand that its records need."""

from __future__ import annotations

import asyncio
from collections import deque

from streamwatch.core.ports import Poll, Schemas, Source
from streamwatch.daemon.commits import Commits


class Polls:
    """Reads polls ahead while one of them waits for schemas.

    Parameters
    ----------
    source
        Asked for the next poll.
    schemas
        Had at hand before anything is decoded; None where no format needs any.
    """

    def __init__(self, source: Source, schemas: Schemas | None) -> None:
        self._source = source
        self._schemas = schemas
        self._ahead: deque[Poll] = deque()

    def clear(self) -> None:
        """Drop what was read ahead."""
        self._ahead.clear()

    async def next(self, stop: asyncio.Event) -> Poll | None:
        """The next poll; None when it is time to stop, be it that the brokers kept a poll waiting."""
        if stop.is_set():
            return None
        if self._ahead:
            return self._ahead.popleft()
        return await self._polled(stop)

    async def schemas_at_hand(self, poll: Poll, commits: Commits, stop: asyncio.Event) -> bool | None:
        """Wait until the records of a poll can be decoded; whether that took no time, None if told to stop.

        Meanwhile nothing more is read, but the source is heard, and what was evaluated before becomes
        durable. Records given up at a stop are read again: positions follow what was evaluated.
        """
        schemas, waited = self._schemas, False
        while schemas is not None and not await schemas.ready(poll.records):
            waited = True
            self._source.pause(frozenset(poll.partitions))
            heard = await self._polled(stop)
            if stop.is_set() or heard is None:
                return None
            if heard.moved or heard.records:
                self._ahead.append(heard)
            await commits.settle(soon=True)
        return not waited

    async def _polled(self, stop: asyncio.Event) -> Poll | None:
        try:
            return await self._source.poll()
        except asyncio.CancelledError:
            if stop.is_set():
                return None  # what was read before can be made durable
            raise
