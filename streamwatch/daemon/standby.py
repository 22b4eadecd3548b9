"""One of several replicas: all evaluate, one publishes and notifies, and the next goes on where it stopped.

Each replica reads everything into a state of its own and numbers the same outcomes and alarms in the same
way. Only the holder writes them, and decides what is announced. The ledger, written in the same transactions,
has what the others need: the last numbers, digests up to them, and the holder's decisions.

- A replica that follows keeps its outcomes and alarms until the ledger has their numbers. It compares the
  digests, and takes no part in elections any more where they differ.
- The one elected opens a producer, which fences the one before, and then reads the ledger to its end. It
  writes what it has beyond the last numbers, and decides on alarms beyond those that were considered.
- A notification is sent only after a transaction has its decision: the next holder knows it by the same id.
  It knows that it was delivered with a later transaction; in between it is sent again.
- Decisions that were not written are dropped by a replica that loses the election; the next holder decides.
- Invalid records are part of publications, too. The holder writes them to their topic just before the
  transaction whose ledger has their position: those between the two are written again by the next holder.

`Candidacy` decides whether it may notify; brokers decide whether it may write.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from streamwatch.core.events import Alarm
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.metrics import family, single
from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import DeadLetters
from streamwatch.core.publishing.decisions import Decisions, parts_digest, to_parts
from streamwatch.core.publishing.digests import Digests
from streamwatch.core.publishing.kept_records import BEGINNING
from streamwatch.core.publishing.publications import (
    SECTION,
    Ledger,
    Publication,
    PublicationLog,
    decoded,
    encoded,
)
from streamwatch.core.standby.candidacy import ROLES, Candidacy, Role
from streamwatch.daemon.alerting import AlertDecisions, Alerting
from streamwatch.daemon.publisher import ClosedPublication
from streamwatch.daemon.waiting_publications import (
    MOST_BYTES,
    TRANSACTION_BYTES,
    Attempts,
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
"""Between attempts while brokers cannot be reached, or refuse; the last one repeats.

Shorter than those of a publisher alone, as a takeover must not wait for them."""
LOOK_SECONDS: Final = 0.2
"""How often a follower looks at the ledger, and a candidate at whether it is eligible."""
MOST_POINTS: Final = 10_000
"""Numbers of the ledger that a replica which is behind remembers for comparison."""


class SharedTransactions(Protocol):
    """Topics of results that replicas write in turn (`KafkaTransactions`, which follows)."""

    async def prepare(self) -> None:
        """Look at the topics without fencing anybody."""
        ...

    async def open(self) -> Ledger | None:
        """Fence older producers and read the ledger to its end; None where nothing was written yet."""
        ...

    async def write(
        self, publications: Sequence[Publication], ledger: Ledger, parts: Sequence[bytes] = ()
    ) -> None:
        """Write publications, the ledger and decisions, all or nothing."""
        ...

    async def read(self) -> Ledger | None:
        """Read the ledger to its end without fencing anybody."""
        ...

    async def follow(self, seconds: float) -> Ledger | None:
        """Read what is added to the ledger within so long; the latest record."""
        ...

    def decisions(self) -> Decisions | None:
        """Decisions beside the ledger as it was read last."""
        ...

    async def close(self) -> None:
        """Close the producer in bounded time."""
        ...

    async def leave(self) -> None:
        """Leave for good, in bounded time."""
        ...


class Election(Protocol):
    """Member of the group that elects (`edge.sources.kafka.election.Election`)."""

    @property
    def problem(self) -> str | None:
        """Reason for which it is no member; None while it is one."""
        ...

    async def run(self) -> None:
        """Be a member until cancelled, and update the candidacy."""
        ...


class Comparison:
    """Compares the digests of a ledger with those of the own state, once it has come so far.

    Parameters
    ----------
    what
        `outcomes` or `alarms and verdicts`, for messages.
    digest
        Finds the digest up to a number in a publication.
    """

    def __init__(self, what: str, digest: Callable[[Publication, int], int | None]) -> None:
        self._what = what
        self._digest = digest
        self._points: deque[tuple[int, int]] = deque(maxlen=MOST_POINTS)
        self._reached = (0, 0)

    def restart(self, number: int, digest: int) -> None:
        """Go on at a number, up to which the state that was opened has this digest."""
        self._reached = (number, digest)
        self._points.clear()

    def reach(self, number: int, digest: int) -> None:
        """Note the newest number of the state, and the digest up to it."""
        self._reached = (number, digest)

    def add(self, number: int, digest: int) -> None:
        """Remember a digest of the ledger."""
        if not self._points or self._points[-1] != (number, digest):
            self._points.append((number, digest))

    def difference(self, publications: Sequence[Publication]) -> str | None:
        """Compare what can be compared by now; None where nothing differs.

        A number before the first publication that waits was compared when it was reached, if ever.
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


class StandbyPublisher:
    """Publishes while this replica is the holder, and follows the ledger while another is.

    Parameters
    ----------
    transactions
        The topics.
    names
        What is written, for messages.
    emit
        Receives internal events.
    candidacy
        Whether this replica is the holder.
    election
        Makes the member of the group, which calls the function it is given after each change.
    clock
        Seconds that never go back, be the process stopped.
    most_bytes
        Bytes that may wait.
    dead_letters
        Topic of invalid records, which the holder writes; None where there is none.
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
        most_bytes: int = MOST_BYTES,
        dead_letters: DeadLetters | None = None,
    ) -> None:
        self._transactions = transactions
        self._dead_letters = dead_letters
        self._sent = BEGINNING
        """Position of the last invalid record that this process has written; the ledger may be behind."""
        self._names = names
        self._emit = emit
        self._clock = clock
        self.candidacy = candidacy
        self._queue = WaitingPublications(most_bytes)
        self._election = election(self._queue.wake)
        self._writer = str(uuid.uuid4())
        self.caught_up: Callable[[], bool] = lambda: False
        """Returns whether everything was read: before that, a replica takes no part in elections."""
        self._state: SharedPublishing | None = None
        self._ledger: Ledger | None = None
        """As it was last read or written; None where nothing was written yet."""
        self._decisions: Decisions | None = None
        self._is_read = self._was_holder = False
        self._tenures = 0
        """Times that it has read the ledger as the holder: what was decided before one is void."""
        self._deliver_after: dict[int, Callable[[], None]] = {}
        """Called for a commit once it is written, to deliver its notifications."""
        self._outcomes_compared = Comparison("outcomes", Publication.outcome_digest)
        self._events_compared = Comparison("alarms and verdicts", Publication.event_digest)
        self._attempts = Attempts(names, emit, RETRY_SECONDS)
        self._outcomes = self._events = self._transactions_committed = 0
        self._takeovers = self._in_doubt = 0

    # What commits need.

    def begin(self, state: SharedPublishing, waiting: Mapping[int, bytes]) -> None:
        """Go on with a state that was opened, instead of any before.

        Parameters
        ----------
        state
            Its outcomes and alarms.
        waiting
            Publications in it by commit number, ascending.

        Raises
        ------
        PublicationError
            If one is none of this version.
        """
        log = state.log
        self._state = state
        self._deliver_after.clear()
        self._outcomes_compared.restart(log.outcomes, log.digests.outcomes)
        self._events_compared.restart(log.events, log.digests.events)
        self._queue.restart(map(decoded, waiting.values()))
        self._sent = BEGINNING
        self._is_read = False
        self.candidacy.close()
        self._queue.wake()

    def add(self, publication: Publication, tenure: int | None, deliver: Callable[[], None]) -> None:
        """Write a publication that is durable now, or keep it until the holder has written its own.

        Parameters
        ----------
        publication
            Contains what was decided in a tenure.
        tenure
            The tenure; None where nothing was decided.
        deliver
            Called once it is written, to deliver its notifications.
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
        """Hand over the commits whose publications are in their topics, once."""
        return self._queue.take_written()

    async def room(self) -> None:
        """Wait until no more waits than may."""
        await self._queue.room()

    async def drain(self, seconds: float) -> None:
        """Wait, at most so long, until nothing waits to be written by this replica."""
        if self.tenure is not None:
            await self._queue.drain(seconds)

    @property
    def problem(self) -> str | None:
        """Reason for which publications wait; None while they are being written, by whichever replica."""
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
        """Return whether publications are to have invalid records, as there is a topic for them."""
        return self._dead_letters is not None

    @property
    def reached(self) -> tuple[int, int]:
        """Numbers of the last outcome and event in the topics."""
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
                return [f"it cannot be a standby: {self.candidacy.divergence}"]
            case "catching_up":
                problem = self._election.problem or self._attempts.error
                why = "it has not caught up" if problem is None else problem
                return [f"it takes no part in the election of the holder yet: {why}"]
            case _:
                return []

    def families(self) -> Sequence[Family]:
        """Part of this replica, and what it has written while it was the holder."""
        role = self.role
        return [
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

    # What it does by itself.

    async def run(self) -> None:
        """Take part in elections, write and follow, until cancelled.

        Raises
        ------
        PublishingRefused
            The topics cannot be used.
        """
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._stand())
                group.create_task(self._work())
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None
        finally:
            await self._transactions.leave()
            if self._dead_letters is not None:
                await self._dead_letters.stop()

    async def _stand(self) -> None:
        """Be a candidate from when everything was read, until something is found to differ.

        Where so much waits that commits will, somebody has to write it, caught up or not.
        """
        while not (  # noqa: ASYNC110 - what it waits for is of others
            self._is_read and (self.caught_up() or self._queue.is_half_full)
        ):
            await asyncio.sleep(LOOK_SECONDS)
        if self.candidacy.divergence is not None:
            return
        running = asyncio.create_task(self._election.run())
        try:
            while self.candidacy.divergence is None and not running.done():
                await asyncio.wait({running}, timeout=LOOK_SECONDS)
            if running.done():
                running.result()
        finally:
            running.cancel()
            await asyncio.wait({running})

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
        """Compare with a ledger that was read, drop what it has, and show its decisions."""
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
        self._drop_written(ledger)
        decisions = self._transactions.decisions()
        if decisions is not None and (decisions != self._decisions or not self._is_read):
            self._decisions = decisions
            state.log.decided(decisions.event, decisions.retired)
            self._with_decisions(decisions, state.alerting.follow)

    def _drop_written(self, ledger: Ledger) -> None:
        """Drop the first publications that wait, as far as the topics have all of them."""
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

    def _diverge(self, what: str) -> None:
        if self.candidacy.divergence is None:
            self.candidacy.diverge(what)
            self._emit(StandbyDiverged(what))
            self._queue.wake()

    async def _take_over(self) -> None:
        """Fence the previous holder, and go on where the ledger ends."""
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
        if self._decisions is None:  # nobody has decided anything: all replicas go on from this state
            begun = state.alerting.decided(0, 0, state.log.verdicts)
        written = ledger.invalid or BEGINNING if self.writes_invalid else None
        await self._write(
            [], msgspec.structs.replace(ledger, commit=0, writer=self._writer, invalid=written), begun
        )
        decisions = self._decisions
        if decisions is None or not self._is_elected(state, term):
            await self._transactions.close()
            return
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

    def _is_elected(self, state: SharedPublishing, term: int) -> bool:
        """Return whether it is the holder still, in the same term and with the same state."""
        return state is self._state and self.candidacy.is_elected and self.candidacy.terms == term

    async def _hold(self) -> None:
        """Write what waits, or wait for it."""
        ledger = self._ledger
        assert ledger is not None  # noqa: S101 - `_take_over` has set it
        self._drop_written(ledger)
        chosen = self._queue.first(TRANSACTION_BYTES)
        if not chosen:
            await self._queue.change()
            return
        decided = [each.decisions for each in chosen if each.decisions is not None]
        await self._write_invalid([each.after(ledger) for each in chosen])
        await self._write(chosen, ledger.with_shared(chosen, self._writer), decided[-1] if decided else None)
        self._queue.drop(chosen)
        for publication in chosen:
            if (deliver := self._deliver_after.pop(publication.commit, None)) is not None:
                deliver()

    async def _write_invalid(self, chosen: Sequence[Publication]) -> None:
        """Write invalid records to their topic; those that brokers do not take are counted and skipped."""
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
        """Decide and write nothing more; what was decided and not written, the next holder decides."""
        self._was_holder = False
        self._deliver_after.clear()
        self._queue.replace(Publication.numbered)
        if self._state is not None:
            self._state.alerting.silence()
        await self._transactions.close()
        self._emit(StandbySteppedDown(self._queue.records))


class SharedPublishing:
    """Outcomes, alarms and notifications of one life of a replica's state.

    Parameters
    ----------
    log
        Numbers outcomes and alarms.
    publisher
        That of the process.
    alerting
        Decides on notifications while this replica is the holder.
    waiting
        Publications in the state when it was opened.
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
        """Tenure in which the commit at hand is decided; None where it is not."""
        self._considered = (0, 0)
        self._is_new = False
        """Whether it has taken over and decided nothing since."""
        self._last_decisions: Decisions | None = None

    def begin(self) -> None:
        """Write or follow from now on, beginning with what the state has."""
        self.publisher.begin(self, self._waiting)
        self._waiting = {}

    def take_over(self, decisions: Decisions) -> None:
        """Decide from now on, beginning behind what the holder before has considered."""
        self._considered = (decisions.event, decisions.retired)
        self._last_decisions, self._is_new = decisions, True
        self.log.continue_from(decisions.comparisons)

    @property
    def leads(self) -> bool:
        """Return whether this replica is the holder."""
        return self.publisher.tenure is not None

    @property
    def due(self) -> bool:
        """Return whether it has taken over, and has yet to decide on what happened before."""
        return self._is_new and self._may_decide

    @property
    def _may_decide(self) -> bool:
        """The holder decides once its state has come as far as that of the holder before."""
        outcome, event = self.publisher.reached
        return self.leads and self.log.outcomes >= outcome and self.log.events >= event

    def decide(
        self,
        _alerting: Alerting | None,
        alarms: Sequence[Alarm],
        retired: Sequence[str],
        *,
        in_backlog: bool,
        behind: bool,
    ) -> AlertDecisions:
        """Number what was raised since the last commit; the holder decides on notifications."""
        self.log.note(alarms, retired)
        self._tenure = self.publisher.tenure if self._may_decide else None
        if self._tenure is None:
            return self.alerting.shown()
        due, gone = self.log.undecided(*self._considered)
        self._considered, self._is_new = (self.log.events, self.log.retired), False
        return self.alerting.decide(due, gone, in_backlog=in_backlog, behind=behind)

    def close(self, commit: int, outgoing: AlertDecisions) -> ClosedPublication:
        """Make the publication of a commit; the state keeps of it what does not depend on who is holder."""
        # The ledger may have been read again while the report was being built.
        decides = self._tenure is not None and self._tenure == self.publisher.tenure
        publication = self.log.close(commit, outgoing.notifications, decides=decides)
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
        """Have the publication of a durable commit written, and its notifications delivered afterwards."""
        if closed.publication is not None:
            self.publisher.add(closed.publication, self._tenure, deliver)
