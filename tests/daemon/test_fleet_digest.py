"""Digests of worse models through commits: sent at once however receivers are paced, by the holder alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.pacing import Pacing, PacingSpec
from streamwatch.core.alerting.rules import AlarmsSpec, FleetDigestSpec
from streamwatch.core.estimators.registers.fleet import WorseList
from streamwatch.daemon.alerting import Alerting
from tests.core.alerting.test_fleet_digest import DAY_MS, MIDNIGHT_MS, NOON_MS, worse
from tests.daemon.fake_alerting import FakeDaemon, FakeModels

SPEC = AlarmsSpec(fleet_digest=FleetDigestSpec())


@dataclass
class Replica:
    """One of several replicas, or a process alone, that decides about digests."""

    alone: bool = False
    now_ms: int = NOON_MS
    worse_now: WorseList = field(default_factory=lambda: worse("a"))

    def __post_init__(self) -> None:
        fake_daemon = FakeDaemon()
        deliveries, self.receiver = fake_daemon.deliveries, fake_daemon.receiver.name
        models: Any = FakeModels()
        self.alerting = Alerting(
            *self._anew()[:1],
            deliveries,
            lambda: models,
            lambda: self.now_ms,
            {},
            list_worse=lambda _: self.worse_now,
            pacing=self._anew()[1],
            anew=None if self.alone else self._anew,
        )

    def _anew(self) -> tuple[AlarmBook, Pacing]:
        return AlarmBook(SPEC, "fraud"), Pacing(PacingSpec(), [self.receiver], "fraud")

    def due_at(self, now_ms: int) -> bool:
        self.now_ms = now_ms
        return self.alerting.due(behind=False)

    def commits(self) -> list[Notification]:
        """What a commit issues to receivers."""
        return list(self.alerting.decide([], [], in_backlog=False, behind=False).notifications)


def test_an_idle_stream_commits_at_the_time_and_the_digest_waits_for_nobody() -> None:
    process = Replica(alone=True)
    assert process.due_at(NOON_MS)
    assert process.commits() == []
    assert not process.due_at(MIDNIGHT_MS + DAY_MS - 1)
    assert process.due_at(MIDNIGHT_MS + DAY_MS)
    (digest,) = process.commits()
    assert digest.fleet is not None
    assert not process.due_at(MIDNIGHT_MS + DAY_MS + 60_000)


def test_replicas_send_a_digest_once_and_the_next_holder_goes_on_from_it() -> None:
    holder, follower = Replica(), Replica()
    holder.alerting.take_over(follower.alerting.decided(0, 0, []))
    assert holder.commits() == []
    follower.alerting.follow(holder.alerting.decided(0, 0, []))
    assert holder.due_at(MIDNIGHT_MS + DAY_MS)
    (first,) = holder.commits()
    assert not follower.due_at(MIDNIGHT_MS + DAY_MS), "the holder alone decides"
    follower.alerting.take_over(holder.alerting.decided(0, 0, []))
    holder.alerting.silence()
    assert not holder.due_at(MIDNIGHT_MS + 2 * DAY_MS)
    assert not follower.due_at(MIDNIGHT_MS + DAY_MS + 5)
    follower.worse_now = worse("b")
    assert follower.due_at(MIDNIGHT_MS + 2 * DAY_MS)
    (second,) = follower.commits()
    assert first.fleet is not None
    assert second.fleet is not None
    assert (second.fleet.before_ms, second.id != first.id) == (first.fleet.at_ms, True)
    assert [pair.model for pair in second.fleet.left] == ["a"]
