"""Publishing by one of several replicas: all evaluate, only the elected one (the holder) publishes.

Each replica reads all records into a state of its own and gives the same outcomes and alarms the same
numbers. Only the holder writes them to topics and decides on notifications. The ledger, written in the same
transactions, has what the other replicas need: the last numbers, digests up to them, and the decisions.

- A follower (a replica that is not the holder) keeps its outcomes and alarms until the ledger has their
  numbers. It compares digests with those of the ledger; if they differ, it leaves the election for good.
- A newly elected replica opens a producer, which fences that of the previous holder, and reads the ledger to
  its end. It writes its outcomes and alarms beyond the last numbers, and decides on alarms that the previous
  holder has not decided on.
- A notification is sent after the transaction that contains its decision, so that the next holder sends it
  under the same id. The next transaction records that it was delivered; a holder elected in between sends it
  again, unless it is the same process, which remembers.
- A replica that loses the election drops its decisions that were not written; the next holder decides anew.
- Publications also contain invalid records. The holder writes them to the dead-letter topic just before the
  transaction whose ledger has their position; if it fails in between, the next holder writes them again.

`Candidacy` decides whether a replica may notify; the brokers decide, by fencing, whether it may write.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

import msgspec

from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.metrics import family, single
from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import DeadLetters
from streamwatch.core.publishing.candidacy import ROLES, Candidacy, Decisions, Role, parts_digest, to_parts
from streamwatch.core.publishing.kept import BEGINNING, Digests
from streamwatch.core.publishing.publication_log import SECTION, PublicationLog
from streamwatch.core.publishing.publications import Ledger, Publication, decoded, encoded
from streamwatch.core.records.events import Alarm
from streamwatch.daemon.alerting import AlertDecisions, Alerting
from streamwatch.daemon.membership import Conditions, Election, Membership
from streamwatch.daemon.publisher import (
    MOST_BYTES,
    Attempts,
    ClosedPublication,
    Transactions,
    TransactionSize,
    WaitingPublications,
)
from streamwatch.edge.sources.kafka.transactions import PublishingFailed
from streamwatch.telemetry import (
    InternalEvent,
    StandbyDiverged,
    StandbySteppedDown,
    StandbyTookOver,
)

RETRY_SECONDS: Final = (0.1, 0.2, 0.5, 1.0)
"""Delays between failed attempts to write; the last one repeats.

Shorter than without replicas, as a takeover waits for them."""
LOOK_SECONDS: Final = 0.2
"""Interval at which a follower reads the ledger."""
MOST_POINTS: Final = 10_000
"""Most digests of the ledger that a replica behind it remembers for comparison."""
BEHIND_MS: Final = 60_000
"""Age of a number of the ledger from which on a replica that has evaluated its log must have reached it.

Twice the interval at which topics are listed: until then, the holder may read a partition that was added and
that this replica does not know yet. A new leader of a partition knows of its newest records sooner."""


class SharedTransactions(Transactions, Protocol):
    """Topics of results and their ledger, shared by replicas (`KafkaTransactions`)."""

    async def prepare(self) -> None:
        """Check the topics without fencing other producers."""
        ...

    async def write(
        self, publications: Sequence[Publication], ledger: Ledger, parts: Sequence[bytes] = ()
    ) -> None:
        """Write publications, the ledger and encoded decisions (`parts`) in one transaction."""
        ...

    async def follow(self, seconds: float) -> Ledger | None:
        """Read for at most `seconds` what is added to the ledger; return its latest record, or None."""
        ...

    def decisions(self) -> Decisions | None:
        """Return the decisions written with the ledger record read last; None without any."""
        ...

    async def leave(self) -> None:
        """Close the producer and the reader of the ledger in bounded time."""
        ...


class Comparison:
    """Compares the digests of the ledger with those of this replica, once both have them.

    Parameters
    ----------
    what
        `outcomes` or `alarms and verdicts`, for messages.
    digest
        (publication, number) → digest up to that number; None if the publication does not contain it.
    """

    def __init__(self, what: str, digest: Callable[[Publication, int], int | None]) -> None:
        self._what = what
        self._digest = digest
        self._points: deque[tuple[int, int]] = deque(maxlen=MOST_POINTS)
        self._reached = (0, 0)

    def restart(self, number: int, digest: int) -> None:
        """Forget all digests, and set the newest number of the opened state and the digest up to it."""
        self._reached = (number, digest)
        self._points.clear()

    def reach(self, number: int, digest: int) -> None:
        """Set the newest number of the state and the digest up to it."""
        self._reached = (number, digest)

    def add(self, number: int, digest: int) -> None:
        """Remember the ledger's digest up to a number."""
        if not self._points or self._points[-1] != (number, digest):
            self._points.append((number, digest))

    def difference(self, publications: Sequence[Publication]) -> str | None:
        """Compare remembered digests up to the state's newest number; return the first difference, or None.

        Digests of numbers before the first of these waiting publications cannot be compared and are dropped.

        Parameters
        ----------
        publications
            Publications of this replica that wait, in order.
        """
        while self._points and self._points[0][0] <= self._reached[0]:
            number, expected = self._points.popleft()
            found = self._found(number, publications)
            if found is not None and found != expected:
                return f"its {self._what} up to number {number} are not those of the replica that wrote them"
        return None

    def _found(self, number: int, publications: Sequence[Publication]) -> int | None:
        if number == self._reached[0]:
            return self._reached[1]
        for publication in publications:
            if (found := self._digest(publication, number)) is not None:
                return found
        return None


class LogProgress(NamedTuple):
    """Progress of the evaluation of the topics' logs, by a monotonic clock."""

    now_ms: int
    evaluated_ms: int | None
    """Time up to which all that was in the logs is evaluated; None if none is known."""


class StandbyPublisher:
    """Publishes while this replica is the holder, and follows the ledger while another is.

    Parameters
    ----------
    transactions
        Topics to write to and their ledger.
    names
        Names of the topics for messages, such as `topic outcomes`.
    emit
        Receives internal events.
    candidacy
        Knows whether this replica is the holder.
    election
        (callback) → membership in the electing group, which calls the callback after each change.
    clock
        Monotonic clock in seconds that also counts while the process is stopped.
    deployment
        Name that the replicas share.
    most_bytes
        Bytes of publications that may wait; beyond it, commits wait.
    dead_letters
        Topic of invalid records, which the holder writes; None without one.
    """

    def __init__(  # noqa: PLR0913  # one for each thing it works with
        self,
        transactions: SharedTransactions,
        names: str,
        emit: Callable[[InternalEvent], None],
        candidacy: Candidacy,
        election: Callable[[Callable[[], None]], Election],
        clock: Callable[[], float],
        *,
        deployment: str,
        most_bytes: int = MOST_BYTES,
        dead_letters: DeadLetters | None = None,
    ) -> None:
        self._transactions = transactions
        self._dead_letters = dead_letters
        self._sent = BEGINNING
        """Position up to which this process has written invalid records; the ledger may be behind it."""
        self._names = names
        self._deployment = deployment
        self._emit = emit
        self._clock = clock
        self.candidacy = candidacy
        self._queue = WaitingPublications(most_bytes)
        self._election = election(self._queue.wake)
        self._writer = str(uuid.uuid4())
        self.caught_up: Callable[[], bool] = lambda: False
        """Returns whether all partitions were read to their ends; a replica is no candidate before."""
        self.stalled: Callable[[], str | None] = lambda: None
        """Returns the reason why no records can be evaluated, such as a full disk; None if there is none."""
        self.log_progress: Callable[[], LogProgress] = lambda: LogProgress(0, None)
        """Returns how far the logs are evaluated."""
        self._unreached: tuple[int, int] | None = None
        """Number of an outcome that the ledger had and the state did not, and when that was found, in ms."""
        self._has_caught_up = False
        """Whether the state was, since it was opened, as far as one that may be a candidate."""
        self._state: SharedPublishing | None = None
        self._ledger: Ledger | None = None
        """Ledger as last read or written; None if nothing was written yet."""
        self._decisions: Decisions | None = None
        self._is_read = self._was_holder = False
        self._tenures = 0
        """Number of takeovers by this process; decisions of an earlier tenure are void."""
        self._deliver_after: dict[int, Callable[[], None]] = {}
        """By commit, the function that delivers its notifications, called once its publication is written."""
        self._outcomes_compared = Comparison("outcomes", Publication.outcome_digest)
        self._events_compared = Comparison("alarms and verdicts", Publication.event_digest)
        self._attempts = Attempts(names, emit, RETRY_SECONDS)
        self._size = TransactionSize()
        self._outcomes = self._events = self._transactions_committed = 0
        self._takeovers = self._in_doubt = 0

    # Called by commits.

    def begin(self, state: SharedPublishing, waiting: Mapping[int, bytes]) -> None:
        """Replace the previous state, if any, and its waiting publications by those of an opened state.

        Parameters
        ----------
        state
            Outcomes and alarms of the opened state.
        waiting
            Encoded publications of that state by commit number, ascending.

        Raises
        ------
        PublicationError
            If a publication cannot be decoded by this version.
        """
        log = state.log
        self._state = state
        self._deliver_after.clear()
        self._outcomes_compared.restart(log.outcomes, log.digests.outcomes)
        self._events_compared.restart(log.events, log.digests.events)
        self._queue.restart(map(decoded, waiting.values()))
        self._sent = BEGINNING
        self._is_read = self._has_caught_up = False
        self._unreached = None
        self.candidacy.close()
        self._queue.wake()

    def add(self, publication: Publication, tenure: int | None, deliver: Callable[[], None]) -> None:
        """Queue the publication of a durable commit: to be written, or until the holder has written the same.

        Parameters
        ----------
        publication
            Publication, with its decisions if it was made in a tenure.
        tenure
            Number of that tenure; None if the commit decided nothing.
        deliver
            Delivers its notifications; called once it is written.
        """
        if tenure is None or tenure != self.tenure:
            publication = publication.numbered()
        else:
            self._deliver_after[publication.commit] = deliver
        digests = publication.digests or Digests()
        self._queue.add(publication)
        self._outcomes_compared.reach(publication.last_outcome, digests.outcomes)
        self._events_compared.reach(publication.last_event, digests.events)
        self._compare()
        if self._ledger is not None:
            self._drop_written(self._ledger)

    def take_written(self) -> list[int]:
        """Return the commits whose publications were written since the last call, by whichever replica."""
        return self._queue.take_written()

    async def room(self) -> None:
        """Wait until less than `most_bytes` of publications wait."""
        await self._queue.room()

    async def drain(self, seconds: float) -> None:
        """Wait at most `seconds` until no publication waits; a follower returns at once."""
        if self.tenure is not None:
            await self._queue.drain(seconds)

    @property
    def problem(self) -> str | None:
        """Reason for which publications wait; None if there is no known obstacle to writing them."""
        if self.candidacy.divergence is not None:
            return f"this replica is no standby any more: {self.candidacy.divergence}"
        reason = self._attempts.error or self._election.problem
        if reason is None and self._dead_letters is not None:
            reason = self._dead_letters.problem
        return None if reason is None else f"{self._queue.records} records wait for {self._names}: {reason}"

    @property
    def tenure(self) -> int | None:
        """Number of the tenure in which this replica decides and writes; None while it does not."""
        return self._tenures if self.candidacy.is_open else None

    @property
    def writes_invalid(self) -> bool:
        """Return whether publications contain invalid records, because there is a topic for them."""
        return self._dead_letters is not None

    @property
    def reached(self) -> tuple[int, int]:
        """Numbers of the last outcome and the last event in the topics; 0 without any."""
        return (0, 0) if self._ledger is None else (self._ledger.outcome, self._ledger.event)

    @property
    def role(self) -> Role:
        """Role of this replica."""
        return self.candidacy.role(self._clock())

    def speaks(self) -> bool:
        """Return whether this replica may notify now."""
        return self.candidacy.speaks(self._clock())

    def unready(self) -> Sequence[str]:
        """Reasons why this replica could not take over."""
        match self.role:
            case "diverged":
                then = f"it stops reading once {MOST_BYTES >> 20} MB of results wait in it"
                if self._queue.is_full:
                    then = "it has stopped reading, as too many results wait in it"
                then += ": copy the holder's state to it"
                return [f"it cannot be a standby: {self.candidacy.divergence}; {then}"]
            case "catching_up":
                problem = self._election.problem or self._attempts.error
                problem = problem or self.stalled()
                why = "it has not caught up" if problem is None else problem
                return [f"it takes no part in the election of the holder yet: {why}"]
            case _:
                return []

    def families(self) -> Sequence[Family]:
        """Deployment and role of this replica, takeovers, and records that it has written as the holder."""
        role = self.role
        return [
            family("standby_info", [((self._deployment,), 1.0)]),
            family("standby_role", [((name,), float(name == role)) for name in ROLES]),
            single("standby_takeovers_total", float(self._takeovers)),
            single("standby_notifications_in_doubt_total", float(self._in_doubt)),
            single("standby_diverged", float(role == "diverged")),
            single("publishing_outcomes_total", float(self._outcomes)),
            single("publishing_events_total", float(self._events)),
            single("publishing_transactions_total", float(self._transactions_committed)),
            single("publishing_failures_total", float(self._attempts.failed)),
            *self._queue.families(),
            single("publishing_up", float(self._attempts.error is None and self._is_read)),
            *(() if self._dead_letters is None else self._dead_letters.families()),
        ]

    # The task of the publisher.

    async def run(self) -> None:
        """Take part in elections, write as the holder, and follow the ledger otherwise, until cancelled.

        Raises
        ------
        PublishingRefused
            If the topics cannot be used.
        """
        conditions = Conditions(self._may_join, self._impediment, self._others)
        membership = Membership(self._election, self.candidacy, conditions, self._emit, self._clock)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(membership.run())
                group.create_task(self._work())
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None
        finally:
            await self._transactions.leave()
            if self._dead_letters is not None:
                await self._dead_letters.stop()

    def _may_join(self) -> bool:
        """Return whether this replica may be a candidate: it has caught up, or its queue is half full."""
        may = self._is_read and (self.caught_up() or self._queue.is_half_full)
        self._has_caught_up = self._has_caught_up or may
        return may

    def _impediment(self) -> str | None:
        """Return the reason why this replica cannot evaluate what comes in; None if it can."""
        if (reason := self.stalled()) is not None:
            return reason
        if self._has_caught_up or self._may_join():
            return None
        return "it has not caught up since its state was opened"

    def _others(self) -> Ledger | None:
        """Return the ledger if another replica was the last to write it; else None."""
        return None if self._ledger is None or self._ledger.writer == self._writer else self._ledger

    async def _work(self) -> None:
        while True:
            try:
                await self._turn()
                self._attempts.succeeded()
            except PublishingFailed as error:
                self.candidacy.close()
                await asyncio.sleep(self._attempts.failed_by(error, self._queue.records))

    async def _turn(self) -> None:
        """Take the next step of the current role."""
        self._require_reached()
        if self._state is None:
            await self._queue.change()
        elif not self._is_read:
            await self._transactions.prepare()
            state = self._state
            self._learn(await self._transactions.read())
            self._is_read = state is self._state
        elif self.candidacy.is_open:
            await self._hold()
        elif self.candidacy.holds(self._clock()):
            await self._take_over()
        else:
            if self._was_holder:
                await self._step_down()
            self._learn(await self._transactions.follow(LOOK_SECONDS))

    def _learn(self, ledger: Ledger | None) -> None:
        """Compare digests with a ledger that was read, drop publications it has, and show its decisions."""
        state = self._state
        if ledger is None or state is None or (ledger == self._ledger and self._is_read):
            return
        if ledger.life != state.log.life:
            self._diverge(f"the ledger is of {ledger.life!r}, and its state of {state.log.life!r}")
            return
        self._ledger = ledger
        if ledger.digests is not None:
            self._outcomes_compared.add(ledger.outcome, ledger.digests.outcomes)
            self._events_compared.add(ledger.event, ledger.digests.events)
        self._compare()
        if self._unreached is None and ledger.outcome > state.log.outcomes:
            self._unreached = (ledger.outcome, self.log_progress().now_ms)
        self._drop_written(ledger)
        decisions = self._transactions.decisions()
        if decisions is not None and (decisions != self._decisions or not self._is_read):
            self._decisions = decisions
            state.log.decided(decisions.event, decisions.retired)
            self._with_decisions(decisions, state.alerting.follow)

    def _drop_written(self, ledger: Ledger) -> None:
        """Drop publications from the front of the queue while the topics have all of their records."""
        self._queue.drop_while(lambda each: each.is_written(ledger) and not each.decides)

    def _with_decisions(self, decisions: Decisions, step: Callable[[Decisions], None]) -> None:
        try:
            step(decisions)
        except (PackedError, ValueError, msgspec.MsgspecError) as error:
            self._diverge(f"it cannot read what the holder has decided: {error}")

    def _compare(self) -> None:
        waiting = self._queue.all()
        found = self._outcomes_compared.difference(waiting) or self._events_compared.difference(waiting)
        if found is not None:
            self._diverge(found)

    def _require_reached(self) -> None:
        """Diverge if all records are evaluated and outcomes that the ledger had before are not among theirs.

        Digests show that only once the state has come to those numbers, which may take days: until then a
        holder would write and decide nothing.
        """
        if self._unreached is None or self._state is None:
            return
        (number, found_ms), reached = self._unreached, self._state.log.outcomes
        if reached >= number:
            self._unreached = None
            return
        evaluated_ms = self.log_progress().evaluated_ms
        if evaluated_ms is not None and evaluated_ms - found_ms >= BEHIND_MS:
            self._diverge(
                f"it has evaluated all records, and its outcomes end at number {reached}, those of the "
                f"replica that wrote them at {number} or beyond: it has lost records, or has other topics or "
                "settings"
            )

    async def _change(self) -> None:
        """Wait for a change of the queue; not for long while `_require_reached` has to look."""
        if self._unreached is None:
            await self._queue.change()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._queue.change()

    def _diverge(self, what: str) -> None:
        if self.candidacy.divergence is None:
            self.candidacy.diverge(what)
            self._emit(StandbyDiverged(what))
            self._queue.wake()

    async def _take_over(self) -> None:
        """Fence the previous holder, and continue after the last numbers of the ledger."""
        state, term = self._state, self.candidacy.terms
        assert state is not None  # noqa: S101 - `_turn` waits for it
        began = self._clock()
        await self._transactions.close()
        found = await self._transactions.open()
        before = None if found is None else found.writer
        self._learn(found)
        if not self._is_elected(state, term):
            await self._transactions.close()
            return
        self._queue.replace(Publication.numbered)
        self._deliver_after.clear()
        if found is not None:
            self._drop_written(found)
        ledger = found or Ledger.begun(state.log.life, self._writer)
        begun: Decisions | None = None
        if self._decisions is None:  # the first holder: followers start from these decisions
            begun = state.alerting.decided(0, 0, state.log.verdicts)
        written = ledger.invalid or BEGINNING if self.writes_invalid else None
        await self._write(
            [], msgspec.structs.replace(ledger, commit=0, writer=self._writer, invalid=written), begun
        )
        decisions = self._decisions
        if decisions is None or not self._is_elected(state, term):
            await self._transactions.close()
            return
        broken_off = state.alerting.take_broken_off()
        state.take_over(decisions)
        self._with_decisions(decisions, state.alerting.take_over)
        self._was_holder = True
        self._tenures += 1
        self.candidacy.open(term)
        if before is not None and before != self._writer:
            self._takeovers += 1
            self._in_doubt += len(decisions.outbox)
            waiting = self._queue.records
            self._emit(StandbyTookOver(ledger.outcome, waiting, round(self._clock() - began, 3)))
        else:
            self._in_doubt += broken_off  # this process remembers what it has delivered

    def _is_elected(self, state: SharedPublishing, term: int) -> bool:
        """Return whether this replica is still elected, in this term and with this state."""
        return state is self._state and self.candidacy.is_elected and self.candidacy.terms == term

    async def _hold(self) -> None:
        """Write the next transaction, or wait for a publication."""
        ledger = self._ledger
        assert ledger is not None  # noqa: S101 - `_take_over` has set it
        self._drop_written(ledger)
        chosen = self._queue.first(self._size.bytes)
        if not chosen:
            await self._change()
            return
        decided = [each.decisions for each in chosen if each.decisions is not None]
        await self._write_invalid([each.after(ledger) for each in chosen])
        after = ledger.with_shared(chosen, self._writer)
        with self._size.attempted():
            await self._write(chosen, after, decided[-1] if decided else None)
        self._queue.drop(chosen)
        for publication in chosen:
            if (deliver := self._deliver_after.pop(publication.commit, None)) is not None:
                deliver()

    async def _write_invalid(self, chosen: Sequence[Publication]) -> None:
        """Write invalid records to the dead-letter topic; those refused are counted and skipped."""
        if self._dead_letters is None:
            return
        for record in (record for each in chosen for record in each.invalid):
            if record.position > self._sent:
                self._dead_letters.put(record, record.reason)
                if self._dead_letters.is_full:
                    await self._dead_letters.flush()
        await self._dead_letters.flush()
        self._sent = max([self._sent, *(each.reached for each in chosen if each.reached is not None)])

    async def _write(self, chosen: Sequence[Publication], after: Ledger, decisions: Decisions | None) -> None:
        ledger, state = self._ledger, self._state
        parts = [] if decisions is None else to_parts(decisions)
        if parts:
            after = msgspec.structs.replace(after, decisions=len(parts), decisions_digest=parts_digest(parts))
        publications = [each if ledger is None else each.after(ledger) for each in chosen]
        await self._transactions.write(publications, after, parts)
        self._ledger = after
        self._outcomes += sum(each.count for each in publications)
        self._events += sum(len(each.events) for each in publications)
        self._transactions_committed += 1
        if decisions is not None and state is not None and state is self._state:
            self._decisions = decisions
            state.log.decided(decisions.event, decisions.retired)

    async def _step_down(self) -> None:
        """Stop deciding and writing; decisions that were not written are left to the next holder."""
        self._was_holder = False
        self._deliver_after.clear()
        self._queue.replace(Publication.numbered)
        if self._state is not None:
            self._state.alerting.silence()
        await self._transactions.close()
        self._emit(StandbySteppedDown(self._queue.records))


class SharedPublishing:
    """Publications of the open state of one of several replicas; like `Publishing` for a daemon alone.

    Parameters
    ----------
    log
        Numbers outcomes and alarms.
    publisher
        Publisher of the process.
    alerting
        Decides on notifications while this replica is the holder.
    waiting
        Encoded publications in the state at its opening, by commit number.
    """

    def __init__(
        self,
        log: PublicationLog,
        publisher: StandbyPublisher,
        alerting: Alerting,
        waiting: Mapping[int, bytes],
    ) -> None:
        self.log = log
        self.publisher = publisher
        self.alerting = alerting
        self._waiting = waiting
        self._tenure: int | None = None
        """Tenure in which the current commit decides on notifications; None if it does not."""
        self._considered = (0, 0)
        """Numbers of the last alarm and the last retirement that were decided on."""
        self._is_new = False
        """Whether this replica has taken over and no commit has decided since."""
        self._last_decisions: Decisions | None = None

    def begin(self) -> None:
        """Hand the publications of the opened state to the publisher, to be written or compared."""
        self.publisher.begin(self, self._waiting)
        self._waiting = {}

    def take_over(self, decisions: Decisions) -> None:
        """Decide on notifications from now on, continuing after the decisions of the previous holder."""
        self._considered = (decisions.event, decisions.retired)
        self._last_decisions, self._is_new = decisions, True
        self.log.continue_from(decisions.comparisons)

    @property
    def leads(self) -> bool:
        """Return whether this replica is the holder."""
        return self.publisher.tenure is not None

    @property
    def due(self) -> bool:
        """Return whether a commit is needed to decide on alarms, as this replica has just taken over."""
        return self._is_new and self._may_decide

    @property
    def _may_decide(self) -> bool:
        """Return whether this replica is the holder and its state has all that the topics contain."""
        outcome, event = self.publisher.reached
        return self.leads and self.log.outcomes >= outcome and self.log.events >= event

    def decide(
        self,
        alarms: Sequence[Alarm],
        retired: Sequence[str],
        *,
        in_backlog: bool,
        behind: bool,
    ) -> AlertDecisions:
        """Number the alarms raised since the last commit; the holder decides on notifications."""
        self.log.note(alarms, retired)
        self._tenure = self.publisher.tenure if self._may_decide else None
        if self._tenure is None:
            return self.alerting.shown()
        due, gone = self.log.undecided(*self._considered)
        self._considered, self._is_new = (self.log.events, self.log.retired), False
        return self.alerting.decide(due, gone, in_backlog=in_backlog, behind=behind)

    def close(self, commit: int, outgoing: AlertDecisions) -> ClosedPublication:
        """Make the publication of a commit; the state stores it without decisions and notifications."""
        # The ledger may have been read again while the report was being built.
        decides = self._tenure is not None and self._tenure == self.publisher.tenure
        publication = self.log.close(commit, outgoing.announced, decides=decides)
        values: dict[int, bytes | None] = dict.fromkeys(self.publisher.take_written())
        if publication is not None and (kept := publication.numbered()).records:
            values[commit] = encoded(kept)
        if decides:
            decisions = self.alerting.decided(*self._considered, self.log.verdicts)
            if decisions != self._last_decisions:
                self._last_decisions = decisions
                publication = msgspec.structs.replace(
                    publication or self.log.nothing(commit), decisions=decisions
                )
        return ClosedPublication(publication, values, {SECTION: self.log.section()})

    def durable(self, closed: ClosedPublication, deliver: Callable[[], None]) -> None:
        """Queue the publication of a durable commit; its notifications are delivered once it is written."""
        if closed.publication is not None:
            self.publisher.add(closed.publication, self._tenure, deliver)
