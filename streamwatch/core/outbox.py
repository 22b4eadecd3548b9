"""Notices that some outlet has yet to be told, in order, and what of them changed since it was last asked.

Within an outlet notices of one series (a model's detector) keep their order, so that no "resolved" overtakes
its alarm; a series that fails steps behind the others, so that no notice blocks the rest.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence

import msgspec

from streamwatch.core.notices import Notice


class Entry(msgspec.Struct):
    """What is kept of one notice until nobody owes it any more."""

    notice: Notice
    attempts: dict[str, int]
    """Failed attempts so far, by outlet that still has to be told."""
    number: int = 0
    """Its place in the order in which notices were decided: the host's clock, once set back, cannot tell."""


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(Entry)


def _age(entry: Entry) -> tuple[int, int, int, str, str]:
    """The order in which notices were decided; those without a number by time, and by alarm, its end last."""
    notice = entry.notice
    outcome = notice.alarm.outcome if notice.alarm else 0
    return entry.number, notice.issued_ms, outcome, notice.kind, notice.id


def new_entry(notice: Notice, outlets: Sequence[str], number: int = 0) -> bytes:
    """What is kept of a new notice, as bytes."""
    return _ENCODER.encode(Entry(notice, dict.fromkeys(outlets, 0), number))


class Outbox:
    """What is owed to each of `outlets`."""

    def __init__(self, outlets: Sequence[str]) -> None:
        self._entries: dict[str, Entry] = {}
        self._queues: dict[str, OrderedDict[str, deque[str]]] = {name: OrderedDict() for name in outlets}
        """By outlet: series → ids, oldest first; the first series is next."""
        self._changed: set[str] = set()
        self._newest = 0
        self._drafts: dict[str, int] = {}
        """Numbers of notices that are yet to be added."""

    def draft(self, notice: Notice, outlets: Sequence[str]) -> bytes:
        """What the next commit keeps of a new notice, the newest of all."""
        self._newest += 1
        self._drafts[notice.id] = self._newest
        return new_entry(notice, outlets, self._newest)

    def add(self, notice: Notice, outlets: Sequence[str]) -> None:
        """Owe a new notice; it is already kept as its `draft`."""
        number = self._drafts.pop(notice.id, self._newest)
        if outlets and notice.id not in self._entries:
            self._enter(Entry(notice, dict.fromkeys(outlets, 0), number))

    def restore(self, kept: Mapping[str, bytes]) -> list[tuple[str, Notice]]:
        """Owe exactly what was kept; what is owed to outlets that are no more is returned and dropped."""
        self._entries.clear()
        self._changed.clear()
        self._drafts.clear()
        for queue in self._queues.values():
            queue.clear()
        orphans: list[tuple[str, Notice]] = []
        entries = [_DECODER.decode(entry) for entry in kept.values()]
        self._newest = max((entry.number for entry in entries), default=0)
        for entry in sorted(entries, key=_age):
            known = {name: n for name, n in entry.attempts.items() if name in self._queues}
            orphans += [(name, entry.notice) for name in entry.attempts if name not in known]
            if len(known) < len(entry.attempts):
                self._changed.add(entry.notice.id)
            if known:
                self._enter(Entry(entry.notice, known, entry.number))
        return orphans

    def size(self, outlet: str) -> int:
        """Notices it has yet to be told."""
        return sum(len(ids) for ids in self._queues[outlet].values())

    def owes(self, outlet: str, series: str) -> bool:
        """Whether it has yet to be told something about a series."""
        return series in self._queues[outlet]

    def head(self, outlet: str) -> Notice | None:
        """What it is to be told next."""
        ids = next(iter(self._queues[outlet].values()), None)
        return self._entries[ids[0]].notice if ids else None

    def waiting(self, outlet: str) -> list[Notice]:
        """Everything it has yet to be told, what has waited longest first."""
        entries = (self._entries[name] for ids in self._queues[outlet].values() for name in ids)
        return [entry.notice for entry in sorted(entries, key=_age)]

    def owed(self, outlet: str, notice: Notice) -> bool:
        """Whether it has yet to be told this."""
        entry = self._entries.get(notice.id)
        return entry is not None and outlet in entry.attempts

    def attempts(self, outlet: str, notice: Notice) -> int:
        """Failed attempts so far."""
        entry = self._entries.get(notice.id)
        return entry.attempts.get(outlet, 0) if entry else 0

    def settle(self, outlet: str, notice: Notice) -> bool:
        """It need not be told any more; whether it had to be."""
        entry = self._entries.get(notice.id)
        if entry is None or outlet not in entry.attempts:
            return False
        del entry.attempts[outlet]
        queue = self._queues[outlet]
        queue[notice.series].remove(notice.id)
        if queue[notice.series]:
            queue.move_to_end(notice.series)
        else:
            del queue[notice.series]
        if not entry.attempts:
            del self._entries[notice.id]
        self._changed.add(notice.id)
        return True

    def fail(self, outlet: str, notice: Notice) -> None:
        """An attempt failed: its series steps behind the others."""
        entry = self._entries.get(notice.id)
        if entry is not None and outlet in entry.attempts:
            entry.attempts[outlet] += 1
            self._queues[outlet].move_to_end(notice.series)
            self._changed.add(notice.id)

    @property
    def changed(self) -> bool:
        """Whether `changes` has something to say."""
        return bool(self._changed)

    def changes(self) -> dict[str, bytes | None]:
        """What to keep, by id, since the last call; None: nothing any more."""
        changed = {
            name: _ENCODER.encode(entry) if (entry := self._entries.get(name)) else None
            for name in sorted(self._changed)
        }
        self._changed.clear()
        return changed

    def _enter(self, entry: Entry) -> None:
        self._entries[entry.notice.id] = entry
        for outlet in entry.attempts:
            self._queues[outlet].setdefault(entry.notice.series, deque()).append(entry.notice.id)
