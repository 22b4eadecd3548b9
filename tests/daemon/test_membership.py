"""When a replica takes part in the election, and when it gives way to another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from streamwatch.core.publishing.candidacy import Candidacy, SessionSpec
from streamwatch.core.publishing.publications import Ledger
from streamwatch.daemon import membership as module
from streamwatch.daemon.membership import (
    ABSENT_SECONDS,
    GIVE_WAY_SECONDS,
    IMPAIRED_SECONDS,
    RECOVERED_SECONDS,
    Conditions,
    Membership,
)
from streamwatch.telemetry import InternalEvent, StandbyGaveWay
from tests.cpu_budget import until


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)


class Replica:
    """A membership in a group whose other member, if there is one, takes over as soon as it may."""

    problem: str | None = None

    def __init__(self, *, has_another: bool) -> None:
        self.candidacy = Candidacy(SessionSpec())
        self.now = 0.0
        self.may_join = True
        self.impediment: str | None = None
        self.holds = True
        """Whether the group elects it when it joins."""
        self.others: Ledger | None = None
        self.joined = 0
        self.events: list[InternalEvent] = []
        self._has_another = has_another
        conditions = Conditions(lambda: self.may_join, lambda: self.impediment, lambda: self.others)
        self.membership = Membership(self, self.candidacy, conditions, self.events.append, lambda: self.now)

    async def run(self) -> None:
        """Implements `Election`."""
        self.joined += 1
        self.candidacy.join()
        if self.holds:
            self.candidacy.win(self.now)
        try:
            await asyncio.Event().wait()
        finally:
            self.candidacy.leave()
            if self._has_another:
                self.holds, self.others = False, Ledger.begun("state.0", "another")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.membership.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for _ in range(40):
            await asyncio.sleep(0)


async def test_a_replica_takes_part_once_it_may() -> None:
    replica = Replica(has_another=False)
    replica.may_join = False
    async with replica.running():
        await replica.pass_time(60.0)
        assert replica.joined == 0
        replica.may_join = True
        await until(lambda: replica.candidacy.is_elected)


async def test_a_holder_that_cannot_evaluate_gives_way_and_follows() -> None:
    replica = Replica(has_another=True)
    async with replica.running():
        await until(lambda: replica.candidacy.is_elected)
        replica.impediment = "its disk is full"
        await replica.pass_time(0.0)
        await replica.pass_time(IMPAIRED_SECONDS - 1.0)
        assert replica.candidacy.is_elected
        await replica.pass_time(1.0)
        await until(lambda: replica.joined == 2)
        assert not replica.candidacy.is_elected
        await replica.pass_time(GIVE_WAY_SECONDS)
        assert replica.joined == 2  # a follower stays, so that somebody is there if the other one is lost
    assert replica.events == [StandbyGaveWay("its disk is full")]


async def test_a_moment_is_no_reason_to_give_way() -> None:
    replica = Replica(has_another=True)
    async with replica.running():
        await until(lambda: replica.candidacy.is_elected)
        for _ in range(5):
            replica.impediment = "its disk is full"
            await replica.pass_time(IMPAIRED_SECONDS - 1.0)
            replica.impediment = None
            await replica.pass_time(1.0)
        assert replica.candidacy.is_elected
    assert replica.events == []


async def test_a_holder_for_which_nobody_stands_in_goes_on_and_tries_again_later() -> None:
    replica = Replica(has_another=False)
    async with replica.running():
        await until(lambda: replica.candidacy.is_elected)
        replica.impediment = "its disk is full"
        await replica.pass_time(0.0)
        await replica.pass_time(IMPAIRED_SECONDS)
        assert not replica.candidacy.is_elected
        await replica.pass_time(ABSENT_SECONDS)
        await until(lambda: replica.candidacy.is_elected)
        await replica.pass_time(GIVE_WAY_SECONDS - ABSENT_SECONDS - 1.0)
        assert len(replica.events) == 1
        await replica.pass_time(1.0)
        assert len(replica.events) == 2


async def test_a_holder_that_can_evaluate_for_moments_tries_again_as_rarely() -> None:
    replica = Replica(has_another=False)
    async with replica.running():
        await until(lambda: replica.candidacy.is_elected)
        for _ in range(10):
            replica.impediment = "its disk has not taken a commit"
            await replica.pass_time(0.0)
            await replica.pass_time(IMPAIRED_SECONDS)
            replica.impediment = None
            await replica.pass_time(ABSENT_SECONDS)
        assert len(replica.events) == 1
        await replica.pass_time(RECOVERED_SECONDS)
        replica.impediment = "its disk is full"
        await replica.pass_time(0.0)
        await replica.pass_time(IMPAIRED_SECONDS)
        assert len(replica.events) == 2


async def test_a_follower_that_cannot_evaluate_and_is_elected_takes_over_first() -> None:
    replica = Replica(has_another=True)
    replica.holds, replica.impediment = False, "its disk is full"
    replica.others = Ledger.begun("state.0", "killed")
    async with replica.running():
        await replica.pass_time(60.0)
        replica.candidacy.win(replica.now)
        await replica.pass_time(0.0)
        await replica.pass_time(IMPAIRED_SECONDS - 1.0)
        assert replica.candidacy.is_elected
        assert replica.events == []
        await replica.pass_time(1.0)
        assert not replica.candidacy.is_elected


async def test_a_holder_that_has_written_nothing_leaves_the_others_their_time() -> None:
    replica = Replica(has_another=False)
    replica.others, replica.impediment = Ledger.begun("state.0", "killed"), "its disk is full"
    async with replica.running():
        await until(lambda: replica.candidacy.is_elected)
        await replica.pass_time(0.0)
        await replica.pass_time(IMPAIRED_SECONDS)
        await replica.pass_time(ABSENT_SECONDS - 1.0)
        assert not replica.candidacy.is_elected
        assert replica.joined == 1
        replica.others = Ledger.begun("state.0", "another")
        await until(lambda: replica.joined == 2)


async def test_a_diverged_replica_leaves_for_good() -> None:
    replica = Replica(has_another=False)
    async with replica.running():
        await until(lambda: replica.candidacy.is_elected)
        replica.candidacy.diverge("other numbers")
        await replica.pass_time(ABSENT_SECONDS)
        await replica.pass_time(GIVE_WAY_SECONDS)
    assert replica.joined == 1
