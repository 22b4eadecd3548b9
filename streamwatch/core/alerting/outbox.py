"""`Outbox`: notifications still to be delivered, in order, and their changes since the last commit.

Each receiver gets the notifications of one series (a model) in order, so that no "resolved" overtakes its
"firing", and no incident an earlier one. After a failed attempt a series moves behind the others, so that no
notification blocks the rest.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import msgspec

from streamwatch.core.alerting.notification import Notification
from streamwatch.core.join.durable.packed import reading
from streamwatch.core.records.events import Name


class Entry(msgspec.Struct):
    """Notification with the receivers it is pending for; removed once there are none."""

    notification: Notification
    attempts: dict[Name, int]
    """Number of failed attempts so far, by receiver that the notification is pending for."""
    number: int
    """Ordinal of the notification, in the order of decision even if the host's clock was set back."""


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(Entry)


def _entry(name: str, entry: bytes) -> Entry:
    with reading(f"the notification {name!r} of the outbox"):
        return _DECODER.decode(entry)


def check_entries(kept: Mapping[str, bytes]) -> None:
    """Check that committed entries can be decoded, before `Outbox.restore`; raises PackedError if not."""
    for name, entry in kept.items():
        _entry(name, entry)


def _number(entry: Entry) -> int:
    return entry.number


def new_entry(notification: Notification, receivers: Sequence[str], number: int) -> bytes:
    """Encode the outbox entry of a new notification."""
    return _ENCODER.encode(Entry(notification, dict.fromkeys(receivers, 0), number))


class Outbox:
    """Queues of pending notifications, one for each of `receivers`."""

    def __init__(self, receivers: Sequence[str]) -> None:
        self._entries: dict[str, Entry] = {}
        self._queues: dict[str, OrderedDict[str, deque[str]]] = {name: OrderedDict() for name in receivers}
        """For each receiver, ids by series, oldest first; the first series is delivered next."""
        self._changed: set[str] = set()
        self.newest = 0
        """Greatest number of a notification so far."""
        self._drafts: dict[str, int] = {}
        """Numbers of the notifications that were drafted and are not added yet, by id."""

    def draft(self, notification: Notification, receivers: Sequence[str]) -> bytes:
        """Encode an entry for the next commit: of a new notification, or of a known one for more receivers.

        Call `add` once the commit is durable.
        """
        entry = self._entries.get(notification.id)
        if entry is not None:
            self._drafts[notification.id] = entry.number
            return _ENCODER.encode(
                Entry(notification, {**dict.fromkeys(receivers, 0), **entry.attempts}, entry.number)
            )
        number = notification.number or self.newest + 1
        self.newest = max(self.newest, number)
        self._drafts[notification.id] = number
        return new_entry(notification, receivers, number)

    def add(self, notification: Notification, receivers: Sequence[str]) -> None:
        """Queue a notification for receivers, once its `draft` is durable."""
        number = self._drafts.pop(notification.id, self.newest)
        entry = self._entries.get(notification.id)
        if entry is None:
            if receivers:
                self._enter(Entry(notification, dict.fromkeys(receivers, 0), number))
            return
        for receiver in receivers:
            if receiver not in entry.attempts:
                entry.attempts[receiver] = 0
                self._queue(receiver, entry)

    def restore(self, kept: Mapping[str, bytes]) -> list[tuple[str, Notification]]:
        """Replace the contents by committed entries; raises PackedError if one cannot be decoded.

        Drops and returns (receiver, notification) for receivers that no longer exist.
        """
        self._entries.clear()
        self._changed.clear()
        self._drafts.clear()
        for queue in self._queues.values():
            queue.clear()
        orphans: list[tuple[str, Notification]] = []
        entries = [_entry(name, entry) for name, entry in kept.items()]
        self.newest = max((entry.number for entry in entries), default=0)
        for entry in sorted(entries, key=_number):
            configured = {name: n for name, n in entry.attempts.items() if name in self._queues}
            orphans += [(name, entry.notification) for name in entry.attempts if name not in configured]
            if len(configured) < len(entry.attempts):
                self._changed.add(entry.notification.id)
            if configured:
                self._enter(Entry(entry.notification, configured, entry.number))
        return orphans

    def size(self, receiver: str) -> int:
        """Number of notifications pending for a receiver."""
        return sum(len(ids) for ids in self._queues[receiver].values())

    def has_pending(self, receiver: str, series: str) -> bool:
        """Tell whether a notification of a series is pending for a receiver."""
        return series in self._queues[receiver]

    def head(self, receiver: str) -> Notification | None:
        """Return the next notification for a receiver; None without any."""
        ids = next(iter(self._queues[receiver].values()), None)
        return self._entries[ids[0]].notification if ids else None

    def waiting(self, receiver: str) -> list[Notification]:
        """Return the notifications pending for a receiver, those that have waited longest first."""
        entries = (self._entries[name] for ids in self._queues[receiver].values() for name in ids)
        return [entry.notification for entry in sorted(entries, key=_number)]

    def is_pending(self, receiver: str, notification: Notification) -> bool:
        """Tell whether a notification is pending for a receiver."""
        entry = self._entries.get(notification.id)
        return entry is not None and receiver in entry.attempts

    def attempts(self, receiver: str, notification: Notification) -> int:
        """Return the number of failed attempts to deliver a notification; 0 if it is not pending."""
        entry = self._entries.get(notification.id)
        return entry.attempts.get(receiver, 0) if entry else 0

    def settle(self, receiver: str, notification: Notification) -> bool:
        """Remove a notification that is delivered or given up; returns whether it was pending."""
        entry = self._entries.get(notification.id)
        if entry is None or receiver not in entry.attempts:
            return False
        del entry.attempts[receiver]
        queue = self._queues[receiver]
        queue[notification.series].remove(notification.id)
        if queue[notification.series]:
            queue.move_to_end(notification.series)
        else:
            del queue[notification.series]
        if not entry.attempts:
            del self._entries[notification.id]
        self._changed.add(notification.id)
        return True

    def fail(self, receiver: str, notification: Notification) -> None:
        """Count a failed attempt, and move the notification's series behind the others."""
        entry = self._entries.get(notification.id)
        if entry is not None and receiver in entry.attempts:
            entry.attempts[receiver] += 1
            self._queues[receiver].move_to_end(notification.series)
            self._changed.add(notification.id)

    @property
    def changed(self) -> bool:
        """Tell whether `changes` would return any entries."""
        return bool(self._changed)

    def changes(self) -> dict[str, bytes | None]:
        """Return the entries changed since the last call, encoded, by id; None for removed ones."""
        changed = {
            name: _ENCODER.encode(entry) if (entry := self._entries.get(name)) else None
            for name in sorted(self._changed)
        }
        self._changed.clear()
        return changed

    def _enter(self, entry: Entry) -> None:
        self._entries[entry.notification.id] = entry
        for receiver in entry.attempts:
            self._queue(receiver, entry)

    def _queue(self, receiver: str, entry: Entry) -> None:
        ids = self._queues[receiver].setdefault(entry.notification.series, deque())
        ids.append(entry.notification.id)


# Receiver protocol: deliver(notification) → DeliveryResult.


@dataclass(frozen=True, slots=True)
class Delivered:
    """Result: the receiver took the notification."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Result: the attempt failed and may succeed later."""

    reason: str
    after_seconds: float | None = None
    """Wait that the receiver asked for (Retry-After), in seconds."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Result: the receiver will never take this notification, but may take others."""

    reason: str


@dataclass(frozen=True, slots=True)
class Gone:
    """Result: the receiver no longer exists (HTTP status 410)."""

    reason: str


DeliveryResult: TypeAlias = Delivered | Failed | Refused | Gone


class Receiver(Protocol):
    """One receiver of notifications.

    Its results are logged, so they must hold no secret and no part of a URL.
    """

    @property
    def name(self) -> str:
        """Name of the receiver in the settings, and in the label `receiver` of metrics."""
        ...

    @property
    def host(self) -> str:
        """Host of the receiver, for logs."""
        ...

    @property
    def repeat_interval_seconds(self) -> float | None:
        """Seconds between reminders of open incidents; None: never."""
        ...

    def wants(self, notification: Notification) -> bool:
        """Tell whether the notification is for this receiver."""
        ...

    async def open(self) -> None:
        """Prepare for deliveries; called in the event loop that will deliver."""
        ...

    async def deliver(self, notification: Notification, now_ms: int) -> DeliveryResult:
        """Deliver in bounded time; failures of the receiver are results, never exceptions."""
        ...

    async def remind(self, open_incidents: Sequence[Notification], now_ms: int) -> DeliveryResult:
        """Notify the receiver again of the incidents that are open."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
