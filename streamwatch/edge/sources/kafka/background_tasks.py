"""Background tasks of a source: listing topics and committing positions, so that neither delays a poll."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from aiokafka.errors import CommitFailedError

from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka.connection import BrokerHealth, Connection
from streamwatch.edge.sources.kafka.data_loss import DataLossTracker
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.wire import CONNECTION_ERRORS, Listing, worded
from streamwatch.telemetry import InternalEvent, OffsetsNotCommitted, OffsetsNotRead

# Comparison of the state with the consumer group: whether another state or consumer uses the group.
#
# Offsets committed to the group have the mark of the state that committed them as metadata. A daemon reads
# them before it commits: if another state's mark has replaced its own, another daemon commits to the same
# group. If consumers subscribe with the group, they are its members, and brokers refuse commits of this
# daemon, which is none.
#
# Without a group, nothing outside the state directory shows that the directory was lost or restored.


_SHOWN: Final = 3
_MARK = re.compile(r"state=(\S+) commit=(\d+)")


class Foreign(NamedTuple):
    """Finding that the group's offsets are not those of this state, with a remedy."""

    cause: Literal["state_lost", "state_restored", "state_replaced", "group_shared"]
    what: str
    remedy: str


def foreign(group: str, own: str, theirs: Iterable[str], *, begun: bool) -> Foreign | None:
    """Compare this state's mark with those in the group; None if they agree, or any is unknown.

    Parameters
    ----------
    group
        Name of the consumer group.
    own
        `state=<identity> commit=<number>` of the state as opened; empty if it is not durable.
    theirs
        Texts committed with the group's offsets; those of other programs are ignored.
    begun
        Whether this state has positions.
    """
    mine = _MARK.fullmatch(own)
    marks: dict[str, int] = {}
    for found in filter(None, map(_MARK.fullmatch, theirs)):
        marks[found[1]] = max(marks.get(found[1], 0), int(found[2]))
    if mine is None or not marks:
        return None
    identity, number = mine[1], int(mine[2])
    if identity in marks:
        if marks[identity] <= number:
            return None
        return Foreign(
            "state_restored",
            f"consumer group {group} was last used at commit {marks[identity]} of this state,"
            f" which is at commit {number}",
            "put the newer state directory back",
        )
    other, commit = max(marks.items(), key=lambda mark: mark[1])
    if begun:
        return Foreign(
            "state_replaced",
            f"consumer group {group} was last used by state {other}, and this is state {identity}",
            "put that state's directory back, or choose another kafka.group_id",
        )
    return Foreign(
        "state_lost",
        f"consumer group {group} was last used at commit {commit} of state {other}, and this state is empty",
        "put that state's directory back, or choose another kafka.group_id to start afresh",
    )


OWN_NAME: Final = "give each of them a kafka.group_id of its own"


def shared(group: str, own: str, theirs: Iterable[str]) -> Foreign | None:
    """Report another state that has committed to the group since this one did; None without one.

    Parameters
    ----------
    group
        Name of the consumer group.
    own
        Mark of this state, which has committed to the group before.
    theirs
        Metadata texts of the group's offsets.
    """
    mine = _MARK.fullmatch(own)
    if mine is None:
        return None
    found = [(mark[1], int(mark[2])) for mark in filter(None, map(_MARK.fullmatch, theirs))]
    others = {name for name, _ in found if name != mine[1]}
    if any(name == mine[1] and number > int(mine[2]) for name, number in found):
        what = f"consumer group {group} is used by another daemon at the same time, on a copy of this state"
        return Foreign("group_shared", what, "end one of them: both evaluate the same records")
    if not others:
        return None
    return Foreign(
        "group_shared",
        f"consumer group {group} is used by another daemon at the same time, whose state is "
        f"{', '.join(sorted(others))}: tools show the lag of either in turn, and a lost state is not noticed",
        OWN_NAME,
    )


def of_members(group: str, members: Sequence[str] = ()) -> Foreign:
    """Describe a group whose members subscribe, so that no position can be committed to it."""
    named = f" ({', '.join(members[:_SHOWN])})" if members else ""
    return Foreign(
        "group_shared",
        f"consumer group {group} has members{named}, which subscribe: no position can be committed to it",
        "choose a kafka.group_id that no other program uses",
    )


class Group:
    """Commits positions to the consumer group, and checks that no other state or consumer uses it.

    Parameters
    ----------
    spec
        Settings, with the name of the group.
    mark
        Returns this state's mark: its identity and last commit.
    losses
        Counts findings, and raises LogLost for them with `on_data_loss: fail`.
    emit
        Receives internal events.
    monotonic
        Monotonic clock in seconds.
    """

    def __init__(
        self,
        spec: KafkaSpec,
        mark: Callable[[], str],
        losses: DataLossTracker,
        emit: Callable[[InternalEvent], None],
        monotonic: Callable[[], float],
    ) -> None:
        self._spec = spec
        self._monotonic = monotonic
        self._offset_metadata = mark
        self._losses = losses
        self._emit = emit
        self._asked = False
        self._committed = False
        self._look_at = 0.0
        self._reported: set[str] = set()

    async def commit(self, connection: Connection, positions: Mapping[Partition, int], text: str) -> None:
        """Commit positions with this state's mark (`text`), and check that no other state or consumer does.

        Raises
        ------
        LogLost
            Another state or consumer uses the group, and `on_data_loss` is `fail`.
        """
        if self._committed and self._monotonic() >= self._look_at:
            self._look_at = self._monotonic() + self._spec.metadata_refresh_ms / 1_000
            self._report(shared(str(self._spec.group_id), text, await connection.texts(positions)))
        try:
            await connection.commit(positions, text)
        except CommitFailedError:  # the group has members, and this daemon is none
            self._report(of_members(str(self._spec.group_id)))
            raise
        self._committed = True

    def _report(self, found: Foreign | None) -> None:
        if found is not None and found.what not in self._reported:
            self._reported.add(found.what)
            self._losses.foreign(*found)

    async def ask(self, connection: Connection, partitions: Iterable[Partition], *, begun: bool) -> None:
        """Compare the state with the group's offsets, once; raises errors only with `on_data_loss: fail`."""
        group, own = self._spec.group_id, self._offset_metadata()
        if group is None or not own or self._asked:
            return
        try:
            texts = await connection.texts(partitions)
        except CONNECTION_ERRORS as error:
            if self._spec.on_data_loss == "fail":
                raise
            self._emit(OffsetsNotRead(worded(error)))
            texts = []
        self._asked = True
        if found := foreign(group, own, texts, begun=begun):
            self._losses.foreign(*found)


class Fresh(NamedTuple):
    """A listing, and the number of the latest change signal at its request."""

    listing: Listing
    change_signals: int


class BackgroundTasks:
    """Lists topics at intervals, to detect changes and silent brokers, and commits positions for lag tools.

    Parameters
    ----------
    spec
        Intervals and timeouts.
    health
        Hears of every answered listing.
    group
        Consumer group to which positions are committed.
    emit
        Receives internal events.
    monotonic
        Monotonic clock in seconds.
    """

    def __init__(
        self,
        spec: KafkaSpec,
        health: BrokerHealth,
        group: Group,
        emit: Callable[[InternalEvent], None],
        monotonic: Callable[[], float],
    ) -> None:
        self._spec = spec
        self._health = health
        self._group = group
        self._emit = emit
        self._monotonic = monotonic
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._due = {"list": 0.0, "commit": 0.0}
        self._fresh: Fresh | None = None
        self._durable: tuple[Mapping[Partition, int], str] | None = None

    def begin(self) -> None:
        """Reset for a new connection, which has just listed topics; drops a listing of the previous one."""
        if not self._idle("list"):
            self._tasks.pop("list").cancel()
        self._fresh = None
        self._due["list"] = self._monotonic() + self._spec.metadata_refresh_ms / 1_000

    def durable(self, positions: Mapping[Partition, int], text: str) -> None:
        """Set the positions to commit next, and their metadata text."""
        self._durable = positions, text

    def start_due(self, connection: Connection, *, suspect: bool) -> Fresh | None:
        """Start the tasks that are due; return the listing that arrived since the last call, or None.

        With `suspect`, after signals of a change, a listing is due at once.
        """
        now, spec = self._monotonic(), self._spec
        if now >= self._due["list"] or suspect:
            self._begin_listing(connection)
        if self._durable is not None and now >= self._due["commit"] and self._idle("commit"):
            self._due["commit"] = now + spec.commit_interval_ms / 1_000
            self._begin("commit", self._commit(connection))
        fresh, self._fresh = self._fresh, None
        return fresh

    def listen(self, connection: Connection) -> None:
        """List topics if brokers have been silent for half of `alive_ms`, to learn whether they answer.

        Brokers are also silent while all partitions are paused.
        """
        if self._health.silent_ms > self._spec.alive_ms / 2:
            self._begin_listing(connection)

    async def listed(self, timeout_seconds: float) -> None:
        """Wait for a listing under way, at most `timeout_seconds`."""
        if (task := self._tasks.get("list")) is not None:
            await asyncio.wait({task}, timeout=timeout_seconds)

    async def finish(self, connection: Connection | None, timeout_seconds: float) -> None:
        """Cancel all tasks, then commit positions that are not yet committed, if brokers answer.

        Takes at most `timeout_seconds`, of which half is kept for the commit.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:  # a commit that is cancelled leaves its positions to the last one
            await asyncio.wait(self._tasks.values(), timeout=timeout_seconds / 2)
        if connection is not None and self._durable is not None and self._health.alive:
            self._begin("commit", self._commit(connection))
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=deadline - loop.time())
        for task in self._tasks.values():
            task.cancel()

    async def _list(self, connection: Connection) -> None:
        change_signals = connection.change_signals.latest
        try:
            listing = await connection.listing()
        except CONNECTION_ERRORS:
            # A failed listing only delays the next one.
            await asyncio.sleep(self._spec.alive_ms / 4_000)
            return
        self._fresh = Fresh(listing, change_signals)
        self._health.answered()

    async def _commit(self, connection: Connection) -> None:
        durable, self._durable = self._durable, None
        if durable is None:
            return
        try:
            await self._group.commit(connection, *durable)
        except asyncio.CancelledError:
            self._durable = self._durable or durable
            raise
        except CONNECTION_ERRORS as error:
            self._durable = self._durable or durable
            self._emit(OffsetsNotCommitted(worded(error)))

    def _begin_listing(self, connection: Connection) -> None:
        if self._idle("list"):
            self._due["list"] = self._monotonic() + self._spec.metadata_refresh_ms / 1_000
            self._begin("list", self._list(connection))

    def _idle(self, name: str) -> bool:
        task = self._tasks.get(name)
        if task is None or not task.done():
            return task is None
        if not task.cancelled():
            task.result()  # raises the exception of a bug, which ends the process
        return True

    def _begin(self, name: str, work: Coroutine[None, None, None]) -> None:
        self._tasks[name] = asyncio.create_task(work)
