"""Polls of a source in order, each once the schemas are at hand that its records need.

While a registry cannot be asked, everything waits: at most `max_hold_back_seconds` once a partition was at
its end in this run, without limit while its backlog is read. Then the partitions whose records need a schema
are left behind: what was read of them is set aside until it can be decoded, nothing more is read of them, and
others go on. What they bring later is out of order.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from streamwatch.core.events import Partition
from streamwatch.core.ports import PartitionState, Poll, Record, Schemas, Source
from streamwatch.daemon.commits import Commits

PATIENCE_SECONDS: Final = 2.0
"""Time for which a poll waits for a schema of its own, however long others were waited for."""


class Decodable(NamedTuple):
    """A poll whose records can be decoded."""

    poll: Poll
    at_once: bool
    """Whether nothing had to be waited for."""


@dataclass(slots=True)
class _Aside:
    """What was read of a partition that was left behind."""

    pieces: list[Sequence[Record]] = field(default_factory=list["Sequence[Record]"])
    """As polls delivered them."""
    needed: set[Any] = field(default_factory=set[Any])
    """Schemas of all of them."""


class Polls:
    """Reads polls ahead while one of them waits for schemas.

    Parameters
    ----------
    source
        Asked for the next poll.
    schemas
        Had at hand before anything is decoded; None where no format needs any.
    max_hold_back_seconds
        How long others wait for a partition whose schema cannot be had, once it was at its end in this run.
    monotonic
        Seconds that never go back.
    """

    def __init__(
        self,
        source: Source,
        schemas: Schemas | None,
        max_hold_back_seconds: float = 600.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._schemas = schemas
        self._max_hold_back_seconds = max_hold_back_seconds
        self._monotonic = monotonic
        self._ahead: deque[Poll] = deque()
        self._aside: dict[Partition, _Aside] = {}
        self._states: Mapping[Partition, PartitionState] = {}
        self._seen_end: set[Partition] = set()
        self._waiting_since: float | None = None

    @property
    def left_behind(self) -> frozenset[Partition]:
        """Partitions of which nothing more is to be read until their schemas are at hand."""
        return frozenset(self._aside)

    def clear(self) -> None:
        """Drop what was read ahead and what was set aside."""
        self._ahead.clear()
        self._aside.clear()
        self._seen_end.clear()

    async def next(self, stop: asyncio.Event) -> Poll | None:
        """The next poll; None when it is time to stop, be it that the brokers kept a poll waiting."""
        if stop.is_set():
            return None
        if self._aside and (returned := await self._returned()):
            return returned
        if self._ahead:
            return self._ahead.popleft()
        return await self._polled(stop)

    def last_of(self, poll: Poll) -> Sequence[Poll]:
        """Records set aside of partitions whose logs are gone as of a poll.

        No schema of it can be waited for any longer: what comes next is of another log.
        """
        gone = {p for p in self._aside if p in poll.moved or (poll.partitions and p not in poll.partitions)}
        return self._given_back(gone)

    async def decodable(self, poll: Poll, commits: Commits, stop: asyncio.Event) -> Decodable | None:
        """Wait until the records of a poll can be decoded; None if told to stop.

        Meanwhile nothing more is read, but the source is heard, and what was evaluated before becomes
        durable. Records given up at a stop are read again: positions follow what was evaluated.
        """
        schemas, at_once = self._schemas, True
        if schemas is None:
            return Decodable(poll, at_once)
        records = dict(poll.records)
        needed = dict(await schemas.needed(records))
        for partition in self._aside.keys() & records.keys():  # of polls read ahead
            self._set_aside(partition, records.pop(partition), needed.pop(partition, ()))
        began = self._monotonic()
        while missing := await schemas.missing(needed):
            at_once = False
            late = self._seen_end.intersection(missing) if self._is_too_long(began) else ()
            for partition in late:
                self._set_aside(partition, records.pop(partition), needed.pop(partition))
            if late:
                continue
            self._source.pause(frozenset(poll.partitions))
            heard = await self._polled(stop)
            if stop.is_set() or heard is None:
                return None
            if heard.moved or heard.records:
                self._ahead.append(heard)
            await commits.settle(soon=True)
        if not self._aside:
            self._waiting_since = None
        self._states = poll.partitions
        self._seen_end.update(p for p, state in poll.partitions.items() if state.at_end_ms is not None)
        return Decodable(self._as_left(records, poll.moved), at_once)

    def _is_too_long(self, began: float) -> bool:
        """Tell whether others have waited long enough for schemas, of this poll or of one before."""
        now = self._monotonic()
        if self._waiting_since is None:
            self._waiting_since = began
        patient = min(PATIENCE_SECONDS, self._max_hold_back_seconds)
        return now - self._waiting_since >= self._max_hold_back_seconds and now - began >= patient

    def _set_aside(self, partition: Partition, records: Sequence[Record], needed: Any) -> None:
        aside = self._aside.setdefault(partition, _Aside())
        aside.pieces.append(records)
        aside.needed.update(needed)

    async def _returned(self) -> Poll | None:
        """Records set aside of partitions whose schemas are all at hand by now."""
        assert self._schemas is not None  # noqa: S101 - nothing is set aside without
        needed = {partition: aside.needed for partition, aside in self._aside.items()}
        missing = await self._schemas.missing(needed, wait=False)
        found = needed.keys() - set(missing)
        polls = self._given_back(found)
        self._ahead.extendleft(reversed(polls[1:]))
        return polls[0] if polls else None

    def _given_back(self, partitions: Collection[Partition]) -> Sequence[Poll]:
        """Records set aside of these, as it was delivered."""
        pieces = {partition: self._aside.pop(partition).pieces for partition in sorted(partitions)}
        polls: list[Poll] = []
        for number in range(max(map(len, pieces.values()), default=0)):
            records = {partition: each[number] for partition, each in pieces.items() if number < len(each)}
            ends = {partition: piece[-1].offset + 1 for partition, piece in records.items()}
            polls.append(Poll(records, {**self._states, **self._standing(ends)}))
        return polls

    def _standing(self, positions: Mapping[Partition, int]) -> Mapping[Partition, PartitionState]:
        """States of partitions of which there is more to be evaluated."""
        return {
            partition: replace(self._states[partition], position=position, caught_up=False, at_end_ms=None)
            for partition, position in positions.items()
            if partition in self._states
        }

    def _as_left(self, records: Mapping[Partition, Sequence[Record]], moved: frozenset[Partition]) -> Poll:
        """A poll as of which partitions that were left behind stand where what is set aside begins."""
        states = self._standing({p: aside.pieces[0][0].offset for p, aside in self._aside.items()})
        return Poll(records, {**self._states, **states}, moved, frozenset(states))

    async def _polled(self, stop: asyncio.Event) -> Poll | None:
        try:
            return await self._source.poll()
        except asyncio.CancelledError:
            if stop.is_set():
                return None  # what was read before can be made durable
            raise
