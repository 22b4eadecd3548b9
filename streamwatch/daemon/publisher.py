"""Publications (outcomes and events of a commit) from the state to their topics, each exactly once.

1. A commit makes the state durable together with its publication. After a crash before it, nothing has been
   written, and the records are evaluated again.
2. The publication is written in one Kafka transaction with the ledger, a record that names the commit. After
   a crash before the end of the transaction, the next producer aborts it, and the publication is written
   from the state.
3. A later commit removes the publication from the state. After a crash before it, the ledger shows that the
   publication is written.

As publications are read back from the state, evaluation and clocks need not be reproducible.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from streamwatch.core.metrics import single
from streamwatch.core.metrics.series import Family
from streamwatch.core.publishing.publication_log import SECTION, PublicationLog
from streamwatch.core.publishing.publications import Ledger, Publication, decoded, encoded
from streamwatch.core.records.events import Alarm
from streamwatch.daemon.alerting import AlertDecisions, Alerting
from streamwatch.edge.sources.kafka.transactions import (
    ProducerWasFenced,
    PublishingFailed,
    PublishingFenced,
)
from streamwatch.telemetry import (
    InternalEvent,
    PublishingBegun,
    PublishingDelayed,
    PublishingResumed,
    StateOlderThanTopics,
)

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

    @property
    def is_full(self) -> bool:
        """Return whether as many bytes wait as may, so that commits and reading wait."""
        return self.size_bytes >= self._most_bytes

    def wake(self) -> None:
        """Let `change` return without a change."""
        self._changed.set()

    async def change(self) -> None:
        """Wait until a publication is added or removed, or `wake` is called."""
        self._changed.clear()
        await self._changed.wait()

    async def room(self) -> None:
        """Wait until fewer bytes wait than are allowed."""
        if not self.is_full:
            return
        self._waits += 1
        while self.is_full:
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


class Transactions(Protocol):
    """Topics of results and their ledger, written in transactions (`KafkaTransactions`)."""

    async def open(self) -> Ledger | None:
        """Fence older producers and return the ledger; None if nothing was written yet."""
        ...

    async def write(self, publications: Sequence[Publication], ledger: Ledger) -> None:
        """Write publications and the ledger in one transaction."""
        ...

    async def read(self) -> Ledger | None:
        """Return the ledger without fencing other producers; None if nothing was written yet."""
        ...

    async def close(self) -> None:
        """Close the producer in bounded time."""
        ...


class Publisher:
    """Writes publications to their topics in the order of commits, each once; one for the process.

    Parameters
    ----------
    transactions
        Topics to write to.
    names
        Names of the topics for messages, such as `topic outcomes`.
    emit
        Receives internal events.
    most_bytes
        Bytes of publications that may wait; beyond it, commits wait.
    """

    def __init__(
        self,
        transactions: Transactions,
        names: str,
        emit: Callable[[InternalEvent], None],
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._transactions = transactions
        self._names = names
        self._emit = emit
        self._writer = str(uuid.uuid4())
        self._queue = WaitingPublications(most_bytes)
        self._life: str | None = None
        self._commits = 0
        self._ledger: Ledger | None = None
        """Ledger as this process last read or wrote it; None before."""
        self._is_open = False
        self._attempts = Attempts(names, emit, RETRY_SECONDS)
        self._size = TransactionSize()
        self._outcomes = self._events = self._transactions_committed = 0

    def begin(self, life: str, commits: int, waiting: Mapping[int, bytes]) -> None:
        """Replace all waiting publications by those of a state that was opened.

        Parameters
        ----------
        life
            Identifier of the sequence in which the state numbers its outcomes.
        commits
            Number of the state's last commit.
        waiting
            Encoded publications of the state by commit number, ascending.

        Raises
        ------
        PublicationError
            If a publication cannot be decoded by this version.
        """
        self._queue.restart(map(decoded, waiting.values()))
        self._life, self._commits = life, commits
        if self._ledger is not None:
            self._ledger = self._aligned(self._ledger)

    def add(self, publication: Publication) -> None:
        """Queue a publication whose commit is durable."""
        self._queue.add(publication)

    def take_written(self) -> list[int]:
        """Return the commits whose publications were written since the last call."""
        return self._queue.take_written()

    @property
    def writes_invalid(self) -> bool:
        """Return whether publications contain invalid records: never, as those are written before commits."""
        return False

    @property
    def problem(self) -> str | None:
        """Reason for which publications wait; None unless the last attempt to write failed."""
        if self._attempts.error is None:
            return None
        return f"{self._queue.records} records wait for {self._names}: {self._attempts.error}"

    async def room(self) -> None:
        """Wait until less than `most_bytes` of publications wait."""
        await self._queue.room()

    async def run(self) -> None:
        """Write publications until cancelled.

        Raises
        ------
        PublishingRefused
            If the topics cannot be used, or another process writes to them.
        """
        try:
            while True:
                try:
                    await self._turn()
                    self._attempts.succeeded()
                except PublishingFailed as error:
                    self._is_open = False
                    least = FENCED_SECONDS if isinstance(error, ProducerWasFenced) else 0.0
                    await asyncio.sleep(self._attempts.failed_by(error, self._queue.records, least))
        finally:
            await self._transactions.close()

    async def drain(self, seconds: float) -> None:
        """Wait at most `seconds` until no publication waits."""
        await self._queue.drain(seconds)

    def families(self) -> Sequence[Family]:
        """Records written, records waiting, and how often commits waited for them."""
        return [
            single("publishing_outcomes_total", float(self._outcomes)),
            single("publishing_events_total", float(self._events)),
            single("publishing_transactions_total", float(self._transactions_committed)),
            single("publishing_failures_total", float(self._attempts.failed)),
            *self._queue.families(),
            single("publishing_up", float(self._is_open)),
        ]

    async def _turn(self) -> None:
        """Open the topics if they are closed, else write the next transaction or wait for a publication."""
        if not self._is_open:
            while self._life is None:
                await self._queue.change()
            await self._open()
            return
        ledger = self._ledger
        assert ledger is not None  # noqa: S101 - `_open` has set it
        chosen = self._next(ledger)
        if not chosen:
            await self._queue.change()
            return
        with self._size.attempted():
            await self._write([publication.after(ledger) for publication in chosen], chosen)

    def _next(self, ledger: Ledger) -> list[Publication]:
        """Drop publications that the ledger has; return those of the next transaction."""
        self._queue.drop_while(lambda publication: publication.commit <= ledger.commit)
        return self._queue.first(self._size.bytes)

    async def _open(self) -> None:
        if self._ledger is not None:  # opening would fence a process that has taken over meanwhile
            self._require_own(await self._transactions.read())
        found = await self._transactions.open()
        if self._ledger is not None:
            self._require_own(found)
        self._ledger = self._aligned(found)
        self._is_open = True
        await self._write([], [])

    def _require_own(self, ledger: Ledger | None) -> None:
        if ledger is None or ledger.writer != self._writer:
            raise _fenced(self._names)

    def _aligned(self, ledger: Ledger | None) -> Ledger:
        """Return a ledger adapted to the open state; a new one for the state of another life."""
        life = self._life
        assert life is not None  # noqa: S101 - `run` waits for it
        if ledger is None:
            return Ledger.begun(life, self._writer)
        if ledger.life != life:
            self._emit(PublishingBegun(life, ledger.life, ledger.outcome))
            return Ledger.begun(life, self._writer)
        if ledger.commit > self._commits:  # never after a crash: a commit is durable before it is published
            self._emit(StateOlderThanTopics(self._commits, ledger.commit))
            return msgspec.structs.replace(ledger, commit=self._commits)
        return ledger

    async def _write(self, publications: Sequence[Publication], chosen: Sequence[Publication]) -> None:
        life, ledger = self._life, self._ledger
        assert ledger is not None  # noqa: S101 - `_open` has set it
        after = ledger.with_written(chosen, self._writer)
        await self._transactions.write(publications, after)
        self._outcomes += sum(publication.count for publication in publications)
        self._events += sum(len(publication.events) for publication in publications)
        self._transactions_committed += 1
        if life != self._life:  # another state was opened meanwhile
            self._ledger = self._aligned(after)
            return
        self._ledger = after
        self._queue.drop(chosen)


def _fenced(names: str) -> PublishingFenced:
    return PublishingFenced(
        f"another process writes {names} under the same ledger.transactional_id: stop one of them, or give "
        "each deployment a ledger.transactional_id of its own"
    )


@dataclass(frozen=True, slots=True)
class Publishing:
    """Makes the publications of the open state, and passes them to the publisher of the process."""

    log: PublicationLog
    publisher: Publisher
    alerting: Alerting
    commits: int
    """Number of the last commit when the state was opened."""
    waiting: Mapping[int, bytes]
    """Encoded publications in the state at its opening, by commit number."""

    def begin(self) -> None:
        """Have the publications of the opened state written, and those of later commits after them."""
        self.publisher.begin(self.log.life, self.commits, self.waiting)

    @property
    def due(self) -> bool:
        """Return whether a commit is needed to decide on alarms: never, as each commit decides."""
        return False

    @property
    def leads(self) -> bool:
        """Return whether this process publishes: always, as there are no replicas."""
        return True

    def decide(
        self,
        alarms: Sequence[Alarm],
        retired: Sequence[str],
        *,
        in_backlog: bool,
        behind: bool,
    ) -> AlertDecisions:
        """Number the alarms raised since the last commit, and decide on notifications."""
        self.log.note(alarms)
        return self.alerting.decide(alarms, retired, in_backlog=in_backlog, behind=behind)

    def close(self, commit: int, outgoing: AlertDecisions) -> ClosedPublication:
        """Make the publication of a commit with this number."""
        publication = self.log.close(commit, outgoing.announced)
        values: dict[int, bytes | None] = dict.fromkeys(self.publisher.take_written())
        if publication is not None:
            values[commit] = encoded(publication)
        return ClosedPublication(publication, values, {SECTION: self.log.section()})

    def durable(self, closed: ClosedPublication, deliver: Callable[[], None]) -> None:
        """Deliver the notifications of a durable commit, and queue its publication."""
        deliver()
        if closed.publication is not None:
            self.publisher.add(closed.publication)


@dataclass(frozen=True, slots=True)
class ClosedPublication:
    """Publication of a commit, and the changes of the state that go with it."""

    publication: Publication | None = None
    """None if the commit has nothing to publish or, with replicas, to decide."""
    values: Mapping[int, bytes | None] = field(default_factory=dict[int, "bytes | None"])
    """Encoded publications to store by commit number; None removes that of a commit."""
    sections: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Sections of the commit by name."""
