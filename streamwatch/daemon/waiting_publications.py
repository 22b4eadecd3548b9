"""Queue of durable publications that wait to be written to their topics, in the order of commits."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from streamwatch.core.metrics import single
from streamwatch.core.metrics.series import Family
from streamwatch.core.publishing.publications import Publication
from streamwatch.telemetry import InternalEvent, PublishingDelayed, PublishingResumed

MOST_BYTES: Final = 67_108_864
"""Encoded bytes that may wait to be written, about 110 an outcome; beyond it, commits and reading wait."""
TRANSACTION_BYTES: Final = 2_097_152
"""Encoded bytes of a transaction, exceeded by its last publication only; as JSON they are five times as
large."""
RETRY_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Delays between failed attempts to write; the last one repeats."""
FENCED_SECONDS: Final = 1.0
"""Time to wait after this process was fenced, so that the other process can write itself into the ledger."""


class Attempts:
    """Counts failed attempts to write, and chooses the delay after each.

    Parameters
    ----------
    names
        Names of the topics for messages, such as `topic outcomes`.
    emit
        Receives `PublishingDelayed` and `PublishingResumed`.
    delays
        Seconds between attempts while they fail; the last one repeats.
    """

    def __init__(self, names: str, emit: Callable[[InternalEvent], None], delays: Sequence[float]) -> None:
        self._names = names
        self._emit = emit
        self._delays = delays
        self._in_a_row = 0
        self.error: str | None = None
        """Error of the last attempt; None if it succeeded."""
        self.failed = 0
        """Number of attempts that failed."""

    def succeeded(self) -> None:
        """Note an attempt that succeeded."""
        if self.error is not None:
            self._emit(PublishingResumed(self._names))
        self.error, self._in_a_row = None, 0

    def failed_by(self, error: Exception, waiting: int, least_seconds: float = 0.0) -> float:
        """Count a failed attempt; return the seconds until the next one.

        Parameters
        ----------
        error
            Reason of the failure.
        waiting
            Number of records that wait, for the event.
        least_seconds
            Lower bound of the delay.
        """
        delay = max(least_seconds, self._delays[min(self._in_a_row, len(self._delays) - 1)])
        self._in_a_row += 1
        self.failed += 1
        self.error = str(error)
        self._emit(PublishingDelayed(self._names, waiting, self.error, delay))
        return delay


class TransactionSize:
    """Encoded bytes of the next transaction: halved by each failure, doubled by each success up to the limit.

    A transaction has a deadline. One that is too large for the network would fail again and again, and the
    next would be larger, as more waits by then.
    """

    def __init__(self) -> None:
        self.bytes = TRANSACTION_BYTES
        """Encoded bytes at which to end the transaction; its last publication may exceed them."""

    @contextmanager
    def attempted(self) -> Generator[None]:
        """Adapt to whether the block writes the transaction or raises."""
        try:
            yield
        except Exception:
            self.bytes = max(1, self.bytes // 2)
            raise
        self.bytes = min(TRANSACTION_BYTES, 2 * self.bytes)


class WaitingPublications:
    """Queue of publications to be written, and the commits of those written since.

    Parameters
    ----------
    most_bytes
        Encoded bytes that may wait; beyond it, `room` waits.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._waiting: deque[Publication] = deque()
        self._written: list[int] = []
        self._changed = asyncio.Event()
        self._waits = 0

    def restart(self, publications: Iterable[Publication]) -> None:
        """Replace all publications by those of a state that was opened."""
        self._waiting = deque(publications)
        self._written = []
        self._changed.set()

    def add(self, publication: Publication) -> None:
        """Add a publication that is durable now."""
        self._waiting.append(publication)
        self._changed.set()

    def replace(self, change: Callable[[Publication], Publication]) -> None:
        """Replace each publication by its changed version."""
        self._waiting = deque(map(change, self._waiting))

    def all(self) -> Sequence[Publication]:
        """Return all publications that wait."""
        return tuple(self._waiting)

    def take_written(self) -> list[int]:
        """Return the commits whose publications were written since the last call."""
        written, self._written = self._written, []
        return written

    def first(self, size_bytes: int) -> list[Publication]:
        """Return the first publications, up to and including the one that reaches `size_bytes`."""
        chosen: list[Publication] = []
        size = 0
        for publication in self._waiting:
            if size >= size_bytes:
                break
            chosen.append(publication)
            size += publication.size_bytes
        return chosen

    def drop(self, publications: Iterable[Publication]) -> None:
        """Note these publications as written and remove those still at the front of the queue."""
        for publication in publications:
            if self._waiting and self._waiting[0].commit == publication.commit:
                self._done()

    def drop_while(self, written: Callable[[Publication], bool]) -> None:
        """Remove publications from the front while `written` is true of them."""
        while self._waiting and written(self._waiting[0]):
            self._done()

    def _done(self) -> None:
        self._written.append(self._waiting.popleft().commit)
        self._changed.set()

    @property
    def size_bytes(self) -> int:
        """Encoded bytes of the publications that wait."""
        return sum(publication.size_bytes for publication in self._waiting)

    @property
    def records(self) -> int:
        """Number of outcomes, events and invalid records that wait."""
        return sum(publication.records for publication in self._waiting)

    @property
    def is_half_full(self) -> bool:
        """Return whether at least half of the bytes that may wait do."""
        return 2 * self.size_bytes >= self._most_bytes

    def wake(self) -> None:
        """Let `change` return without a change."""
        self._changed.set()

    async def change(self) -> None:
        """Wait until a publication is added or removed, or `wake` is called."""
        self._changed.clear()
        await self._changed.wait()

    async def room(self) -> None:
        """Wait until fewer bytes wait than are allowed."""
        if self.size_bytes < self._most_bytes:
            return
        self._waits += 1
        while self.size_bytes >= self._most_bytes:
            await self.change()

    async def drain(self, seconds: float) -> None:
        """Wait at most `seconds` until the queue is empty."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._waiting:
                    await self.change()

    def families(self) -> Sequence[Family]:
        """Records and bytes that wait, and how often commits waited for them."""
        return [
            single("publishing_waiting_records", float(self.records)),
            single("publishing_waiting_bytes", float(self.size_bytes)),
            single("publishing_delayed_commits_total", float(self._waits)),
        ]
