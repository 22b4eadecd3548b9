"""`Pacing`: limits how many notifications a receiver gets; those beyond the limit become one digest.

The first notification waits for others for `group_wait`. If all that wait then are within the limit of the
last minute, each is issued as it is; otherwise one digest is issued in their place, as soon as the limit
allows one more. Until then, further notifications join it.

No notification overtakes another about its model: a digest waits until all notifications issued before it are
delivered or given up, and later ones wait until the digest is. What is issued and not delivered counts for
the limit, too, and for a minute when it is delivered late: the outage of a receiver ends in one digest, not
in all that came meanwhile.

Some receivers keep open what they are sent until they are sent its end (`closing`). An end that was only a
line of a digest would leave it open for ever, so theirs are issued by themselves, and beyond the limit: they
disturb nobody.

The state is committed together with the notifications that are issued: a restart neither loses a waiting
notification nor issues it twice. Times are the host's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from streamwatch.core.alerting.notification import (
    SEVERITIES,
    Gathered,
    Notification,
    identify,
    worst,
)
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.packed import reading
from streamwatch.core.metrics import family
from streamwatch.core.metrics.series import Family
from streamwatch.core.records.events import Name
from streamwatch.core.specs import MINUTE_MS

VERSION = 1


@dataclass(frozen=True, slots=True)
class PacingSpec:
    """Limits on the notifications of one receiver."""

    group_wait_ms: int = 10_000
    """Host time for which a notification waits for others; 0: it does not wait."""
    max_per_minute: int = 5
    """Most notifications within a minute, at least 1; a digest counts as one."""
    listed: int = 20
    """Most notifications listed in a digest; all are counted."""


class PacedReceiver(msgspec.Struct):
    """Notifications that wait for one receiver."""

    receiver: Name
    issued_ms: list[int]
    """Host times of the notifications issued within the last minute, or delivered only then."""
    since_ms: int
    """Host time at which the first waiting notification was taken."""
    waiting: list[Notification]
    """Waiting notifications in order; at most as many as can be issued or listed, and ends of these."""
    more: int
    """Number of further waiting notifications, of which only counts are kept."""
    more_firing: int
    more_resolved: int
    models: set[Name]
    """Models that the waiting notifications are about."""
    digests: int
    """Number of digests issued so far."""
    gathered: int
    """Number of notifications in the digests issued so far."""

    @classmethod
    def new(cls, receiver: str) -> PacedReceiver:
        """Make the state of a receiver for which nothing was ever taken."""
        return cls(receiver, [], 0, [], 0, 0, 0, set(), 0, 0)

    def empty(self) -> None:
        """Remove all waiting notifications."""
        self.waiting, self.models = [], set()
        self.more = self.more_firing = self.more_resolved = 0


@dataclass(frozen=True, slots=True)
class Orphans:
    """Notifications that waited for a receiver that no longer exists."""

    receiver: str
    waiting: list[Notification]
    more: int
    """Number of further ones, of which only counts were kept."""


class _State(msgspec.Struct, frozen=True):
    receivers: list[PacedReceiver]
    version: int = VERSION


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(_State)


class Pacing:
    """Decides when notifications are issued to which receiver, and which become a digest.

    Parameters
    ----------
    spec
        Limits.
    receivers
        Names of the receivers with limits; all others get every notification at once.
    identity
        Unique name of the state, so that ids of digests of two states differ.
    closing
        Names of the receivers that keep open what they are sent until they are sent its end.
    """

    def __init__(
        self, spec: PacingSpec, receivers: Iterable[str], identity: str, closing: Collection[str] = ()
    ) -> None:
        self._spec = spec
        self._closing = closing
        self._identity = identity
        self._queues = {name: PacedReceiver.new(name) for name in receivers}
        self._late = dict.fromkeys(self._queues, 0)
        """Notifications that were issued more than a minute ago and not delivered when last looked."""
        self._orphans: list[Orphans] = []
        self._most = max(spec.listed, spec.max_per_minute)

    @property
    def receivers(self) -> Collection[str]:
        """Names of the receivers with limits."""
        return self._queues.keys()

    @property
    def newest(self) -> int:
        """Greatest number of a notification that waits; 0 without any."""
        return max((each.number for queue in self._queues.values() for each in queue.waiting), default=0)

    def paces(self, receiver: str, notification: Notification) -> bool:
        """Tell whether a notification waits for others of its receiver; otherwise it is issued at once.

        Receivers that retrain need every announcement, and a list of worse models is a digest already.
        """
        if receiver not in self._queues or not _counts(notification):
            return False
        if not self._is_end(receiver, notification):
            return True
        return any(each.incident == notification.incident for each in self._queues[receiver].waiting)

    def closes(self, receiver: str) -> bool:
        """Tell whether a receiver keeps open what it is sent until it is sent its end."""
        return receiver in self._closing

    def has_nothing_open(self, receiver: str, notification: Notification) -> bool:
        """Tell whether a notification ends what its receiver was not sent, or only as a line of a digest."""
        told = notification.told
        return self._is_end(receiver, notification) and told is not None and receiver not in told

    def take(self, receiver: str, notification: Notification, now_ms: int) -> None:
        """Add a notification to those waiting for a receiver."""
        queue = self._queues[receiver]
        if not queue.waiting:
            queue.since_ms = now_ms
        if notification.model:
            queue.models.add(notification.model)
        others = [at for at, each in enumerate(queue.waiting) if not self._is_end(receiver, each)]
        if len(others) >= self._most and not self._is_end(receiver, notification):
            least = min(others, key=lambda at: (SEVERITIES.index(queue.waiting[at].severity), -at))
            if SEVERITIES.index(queue.waiting[least].severity) < SEVERITIES.index(notification.severity):
                queue.waiting.append(notification)
                notification = queue.waiting.pop(least)
            queue.more += 1
            queue.more_firing += notification.kind == "firing"
            queue.more_resolved += notification.kind == "resolved"
            return
        queue.waiting.append(notification)

    def release(self, receiver: str, now_ms: int, pending: Sequence[Notification]) -> list[Notification]:
        """Issue the notifications that are due for a receiver.

        Parameters
        ----------
        receiver
            Name.
        now_ms
            Host time.
        pending
            Notifications that were issued to it and are neither delivered nor given up.
        """
        queue = self._queues[receiver]
        recent, late = _recent(queue, now_ms), self._late[receiver]
        self._late[receiver] = max(0, sum(map(_counts, pending)) - len(recent))
        queue.issued_ms = [*recent, *[now_ms] * (late - self._late[receiver])]  # what was late came only now
        if not self._is_due(queue, now_ms, pending):
            return []
        if self._fit(queue, now_ms, pending):
            issued = queue.waiting
        else:
            issued = [*self._ends(receiver, queue), self._digest(receiver, queue, now_ms)]
            queue.digests += 1
            queue.gathered += len(queue.waiting) + queue.more
        number = sum(not self._is_end(receiver, each) for each in issued)
        queue.issued_ms += [now_ms] * number
        queue.empty()
        return issued

    def due(self, now_ms: int, pending: Callable[[str], Sequence[Notification]]) -> bool:
        """Tell whether `release` would issue something because of the time, so that a commit is needed."""
        return any(
            queue.waiting and self._is_due(queue, now_ms, pending(name))
            for name, queue in self._queues.items()
        )

    def _is_due(self, queue: PacedReceiver, now_ms: int, pending: Sequence[Notification]) -> bool:
        if not queue.waiting or 0 <= now_ms - queue.since_ms < self._spec.group_wait_ms:
            return False
        if self._fit(queue, now_ms, pending):
            return not any(each.gathered is not None for each in pending)
        return not pending and len(_recent(queue, now_ms)) < self._spec.max_per_minute

    def _fit(self, queue: PacedReceiver, now_ms: int, pending: Sequence[Notification]) -> bool:
        """Tell whether the waiting notifications can be issued one by one.

        Not if some are only counted: `max_per_minute` was lower when they came.
        """
        issued = max(len(_recent(queue, now_ms)), sum(map(_counts, pending)))
        return not queue.more and len(queue.waiting) + issued <= self._spec.max_per_minute

    def _ends(self, receiver: str, queue: PacedReceiver) -> list[Notification]:
        """Return the waiting ends of what a closing receiver was sent before, which a digest leaves open."""
        return [
            each
            for each in queue.waiting
            if self._is_end(receiver, each) and not self.has_nothing_open(receiver, each)
        ]

    def _is_end(self, receiver: str, notification: Notification) -> bool:
        """Tell whether a notification ends what its receiver keeps open until then."""
        return notification.kind == "resolved" and receiver in self._closing

    def _digest(self, receiver: str, queue: PacedReceiver, now_ms: int) -> Notification:
        newest = {each.incident: each for each in queue.waiting}
        order = {name: at for at, name in enumerate(newest)}
        listed = sorted(
            newest.values(), key=lambda each: (-SEVERITIES.index(each.severity), order[each.incident])
        )
        # A receiver that was removed and added again counts from 0: the time distinguishes its digests.
        name = identify("digest", self._identity, receiver, queue.digests, queue.since_ms)
        return Notification(
            id=name,
            kind="digest",
            severity=worst(each.severity for each in queue.waiting),
            issued_ms=now_ms,
            incident=name,
            gathered=Gathered(
                notifications=len(queue.waiting) + queue.more,
                models=len(queue.models),
                firing=sum(each.kind == "firing" for each in queue.waiting) + queue.more_firing,
                resolved=sum(each.kind == "resolved" for each in queue.waiting) + queue.more_resolved,
                listed=tuple(listed[: self._spec.listed]),
            ),
        )

    def state(self) -> bytes:
        """Encode the state; equal states give equal bytes."""
        return _ENCODER.encode(_State([queue for _, queue in sorted(self._queues.items())]))

    def restore(self, state: bytes) -> None:
        """Continue from a `state`; raises PackedError for other bytes, or those of another version."""
        with reading("the section 'pacing'"):
            read = _DECODER.decode(state)
            if read.version != VERSION:
                raise PackedError(f"expected pacing of version {VERSION}, got {read.version}")
        for kept in read.receivers:
            if kept.receiver in self._queues:
                self._queues[kept.receiver], self._late[kept.receiver] = kept, 0
            elif kept.waiting:
                self._orphans.append(Orphans(kept.receiver, kept.waiting, kept.more))

    def take_orphans(self) -> list[Orphans]:
        """Remove and return the notifications waiting for receivers that no longer exist."""
        orphans, self._orphans = self._orphans, []
        return orphans

    def families(self) -> list[Family]:
        """Series of the notifications that wait, and of those gathered in digests, by receiver."""
        queues = sorted(self._queues.items())
        return [
            family(
                "notifications_waiting",
                [((name,), float(len(queue.waiting) + queue.more)) for name, queue in queues],
            ),
            family(
                "notifications_gathered_total", [((name,), float(queue.gathered)) for name, queue in queues]
            ),
        ]


def _counts(notification: Notification) -> bool:
    """Tell whether a notification is one that limits are for."""
    return notification.kind != "retraining" and notification.fleet is None


def _recent(queue: PacedReceiver, now_ms: int) -> list[int]:
    """Times of issue within the last minute; times in the future (the clock was set back) are ignored."""
    return [at_ms for at_ms in queue.issued_ms if 0 <= now_ms - at_ms < MINUTE_MS]
