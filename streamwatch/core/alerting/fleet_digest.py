"""`FleetDigest`: when receivers are sent the list of models that are worse by the fleet's rule.

The rule (`core.estimators.registers.fleet`) limits the false entries of a list made at a time fixed in
advance. So lists are made on a grid of times, the multiples of `every` since 1970 by the host's clock, and
not when something happens. A process that was stopped or reading a backlog at such times makes one list for
all of them as soon as it can: that moment depends on outages and volumes, not on evidence.

Each digest states which pairs were added since the previous list, and which were removed. If the list is
empty and nothing was removed, nothing is sent unless settings ask for it. The first list is made at the first
grid time after digests were turned on. When they are turned off, all state is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from streamwatch.core.alerting.notification import Notification, NotifiedFleet, RivalPair, identify
from streamwatch.core.alerting.rules import FleetDigestSpec
from streamwatch.core.estimators.registers.fleet import SHARE, WorseList

ListWorse: TypeAlias = Callable[[float], WorseList]
"""Lists the models that are worse, given the share that may be listed falsely."""


class KeptFleet(msgspec.Struct, frozen=True):
    """Time and contents of the last list."""

    made_ms: int | None = None
    """Time of the grid that the last list was made for; before any list, that at which the grid began.

    None before digests are turned on.
    """
    sent: bool = False
    """Whether a list was made since digests were turned on."""
    listed: tuple[RivalPair, ...] = ()
    """Pairs of the last list, in order of names."""


class FleetDigest:
    """Digests of the models that are worse, on a grid of times.

    Parameters
    ----------
    spec
        Interval of the grid and size of a digest; None if no receiver wants digests.
    identity
        Unique name of the state, so that notification ids of two states differ.
    """

    def __init__(self, spec: FleetDigestSpec | None, identity: str) -> None:
        self._spec = spec
        self._identity = identity
        self._kept = KeptFleet()

    def due(self, now_ms: int, *, behind: bool) -> bool:
        """Tell whether `review` must make a list or start the grid; false while a backlog is read."""
        if self._spec is None or behind:
            return False
        made_ms = self._kept.made_ms
        return made_ms is None or now_ms // self._spec.every_ms * self._spec.every_ms > made_ms

    def review(self, list_worse: ListWorse | None, now_ms: int, *, behind: bool) -> list[Notification]:
        """Make the list if it is due, and return the digest that is to be sent; once before each commit."""
        spec = self._spec
        if spec is None:
            self._kept = KeptFleet()
            return []
        time_ms, made_ms = now_ms // spec.every_ms * spec.every_ms, self._kept.made_ms
        if made_ms is None or made_ms > time_ms + spec.every_ms:
            # Digests begin, or the clock was set back by far, and would be silent until that time.
            self._kept = msgspec.structs.replace(self._kept, made_ms=time_ms)
        if not self.due(now_ms, behind=behind):
            return []
        assert list_worse is not None, "given where digests are wanted"  # noqa: S101
        before, found = self._kept, list_worse(SHARE)
        now = {RivalPair(pair.model, pair.opponent): pair for pair in found.pairs}
        old = set(before.listed)
        self._kept = KeptFleet(time_ms, sent=True, listed=tuple(sorted(now)))
        added = [pair for pair in now if pair not in old]
        left = [pair for pair in before.listed if pair not in now]
        if not (now or left or spec.send_empty):
            return []
        name = identify("digest", self._identity, "fleet", time_ms)
        notified = NotifiedFleet(
            at_ms=time_ms,
            before_ms=before.made_ms if before.sent else None,
            share=SHARE,
            pairs=found.number,
            models=len({pair.model for pair in now}),
            number=len(now),
            listed=found.pairs[: spec.size],
            number_added=len(added),
            added=tuple(added[: spec.size]),
            number_left=len(left),
            left=tuple(left[: spec.size]),
        )
        return [
            Notification(
                id=name, kind="digest", severity="info", issued_ms=now_ms, incident=name, fleet=notified
            )
        ]

    def state(self) -> KeptFleet:
        """State that `restore` continues from."""
        return self._kept

    def restore(self, kept: KeptFleet) -> None:
        """Continue from a `state`."""
        self._kept = kept
