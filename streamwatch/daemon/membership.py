"""Membership in the group that elects the holder of several replicas: when to join it, and when to give way.

- A replica joins once it has caught up. If its queue is half full, it joins before: commits wait for a full
  queue to be written, and without a holder nobody writes it.
- A holder that cannot evaluate (no room on its disk, a state that cannot be opened, or one that began anew
  and reads everything again) gives way after `IMPAIRED_SECONDS`: it leaves the group, so that another replica
  is elected, and joins again as a follower. If no other takes over, it becomes the holder again, as it can
  still deliver and remind, and tries again after `GIVE_WAY_SECONDS`, also if it can evaluate for moments.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from streamwatch.core.publishing.candidacy import Candidacy
from streamwatch.core.publishing.publications import Ledger
from streamwatch.telemetry import InternalEvent, StandbyGaveWay

LOOK_SECONDS: Final = 0.2
"""Interval at which conditions are looked at that nobody signals."""
IMPAIRED_SECONDS: Final = 10.0
"""Time for which a holder may be unable to evaluate before it gives way."""
ABSENT_SECONDS: Final = 10.0
"""Time for which a replica that gave way stays out of the group, unless another takes over sooner."""
GIVE_WAY_SECONDS: Final = 1_800.0
"""Time between two attempts to give way while a replica cannot evaluate, as the others may be no better."""
RECOVERED_SECONDS: Final = 300.0
"""Time without an impediment after which a replica may give way again before `GIVE_WAY_SECONDS` are over.

Without this, a disk on which each commit takes more than `IMPAIRED_SECONDS` would make it leave the group at
every commit."""


class Election(Protocol):
    """Membership in the consumer group that elects the holder (`edge.sources.kafka.election.Election`)."""

    @property
    def problem(self) -> str | None:
        """Reason why this replica is not a member; None while it is."""
        ...

    async def run(self) -> None:
        """Be a member until cancelled, and update the candidacy."""
        ...


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions on which the membership of a replica depends."""

    may_join: Callable[[], bool]
    """Returns whether the ledger was read, and either all records were, or the queue is half full."""
    impediment: Callable[[], str | None]
    """Returns the reason why this replica cannot evaluate; None while it can."""
    others: Callable[[], Ledger | None]
    """Returns the ledger if another replica was the last to write it; else None."""


class Membership:
    """Joins the electing group, leaves it for good after a divergence, and for a moment to give way.

    Parameters
    ----------
    election
        The group.
    candidacy
        Knows whether this replica is elected or diverged.
    conditions
        Conditions of this replica.
    emit
        Receives `StandbyGaveWay`.
    clock
        Monotonic clock in seconds.
    """

    def __init__(
        self,
        election: Election,
        candidacy: Candidacy,
        conditions: Conditions,
        emit: Callable[[InternalEvent], None],
        clock: Callable[[], float],
    ) -> None:
        self._election = election
        self._candidacy = candidacy
        self._conditions = conditions
        self._emit = emit
        self._clock = clock
        self._impaired_since: float | None = None
        """Time since which it has been elected and could not evaluate; None if it is not, or can."""
        self._able_since: float | None = None
        """Time since which it could evaluate; None if it cannot."""
        self._gave_way_at: float | None = None
        """Time at which it gave way last; None if it has recovered since."""

    async def run(self) -> None:
        """Join the group, leave it and join again as conditions demand, until a divergence or cancelled."""
        while not self._conditions.may_join():  # noqa: ASYNC110 - nothing signals it
            await asyncio.sleep(LOOK_SECONDS)
        while self._candidacy.divergence is None:
            before = await self._take_part()
            until = self._clock() + ABSENT_SECONDS
            # Nothing signals that another has taken over.
            while self._clock() < until and self._conditions.others() in (None, before):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)

    async def _take_part(self) -> Ledger | None:
        """Be a member until a divergence, or to give way; return what `Conditions.others` returns then."""
        running = asyncio.create_task(self._election.run())
        try:
            while self._candidacy.divergence is None and not running.done() and not self._gives_way():
                await asyncio.wait({running}, timeout=LOOK_SECONDS)
            if running.done():
                running.result()
            return self._conditions.others()
        finally:
            running.cancel()
            await asyncio.wait({running})

    def _gives_way(self) -> bool:
        """Return whether to leave the group now, so that another replica is elected."""
        now, reason = self._clock(), self._conditions.impediment()
        if reason is None:
            self._impaired_since = None
            self._able_since = now if self._able_since is None else self._able_since
            if now - self._able_since >= RECOVERED_SECONDS:
                self._gave_way_at = None
            return False
        self._able_since = None
        if not self._candidacy.is_elected:  # a follower that is elected takes over first, as any other
            self._impaired_since = None
            return False
        if self._impaired_since is None:
            self._impaired_since = now
        if now - self._impaired_since < IMPAIRED_SECONDS:
            return False
        if self._gave_way_at is not None and now - self._gave_way_at < GIVE_WAY_SECONDS:
            return False
        self._gave_way_at = now
        self._emit(StandbyGaveWay(reason))
        return True
