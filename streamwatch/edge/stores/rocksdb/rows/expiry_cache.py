"""The part of an index of deadlines that is in memory: everything due up to some second.

On disk an entry names, for one kind of waiting and one deadline, the records that were made since the commit
before and still waited when it was written; entries are never rewritten. What was settled meanwhile is
skipped when its entry is read, and an entry is removed when nothing it names waits any more.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

from rocksdict import WriteBatch

from streamwatch.core.join.entry import EARLY, PENDING, RETAINED, UNMATCHED, UNSTORED, JoinEntry
from streamwatch.core.join.expiry import Deadlines
from streamwatch.core.join.working_set import ENDLESS
from streamwatch.edge.stores.rocksdb.keys import expiry_key
from streamwatch.edge.stores.rocksdb.rows.codec import deadline_of, tag

_SPARE: Final = 32
"""Candidates beyond what is asked for, so that they are not looked for anew in every batch."""
PENDING_KIND: Final = 0
EARLY_KIND: Final = 1
RETAINED_KIND: Final = 2
STATES: Final = ((PENDING, PENDING), (EARLY, EARLY), (UNMATCHED, RETAINED))
"""First and last state of what waits, by kind."""
KIND_OF: Final = (PENDING_KIND, EARLY_KIND, RETAINED_KIND, RETAINED_KIND)
"""By state."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the index on disk."""

    deadline_s: int
    number: int
    ids: Sequence[str]


class EntryReader(Protocol):
    """Reader of the entries that follow a cache."""

    def entries(self, kind: int, since_s: int, least: int) -> tuple[Sequence[Entry], bool]:
        """In order, whole deadlines, at least so many records if there are; and whether these are all."""
        ...

    def chains(self, ids: Sequence[str]) -> Mapping[str, JoinEntry]:
        """Chains of these ids."""
        ...

    def adopt(self, first: JoinEntry) -> None:
        """Keep this chain in memory."""
        ...


class ExpiryCache:
    """Cache of what falls due next of one kind of waiting, lent to the core as its index.

    What the core adds with a later deadline stays until the next commit has written it.
    """

    __slots__ = (
        "_candidates",
        "_count",
        "_due_at_once",
        "_first_state",
        "_last_state",
        "_limit_s",
        "_most",
        "_numbers",
        "index",
        "kind",
        "until_s",
    )

    def __init__(self, kind: int, most: int, since_s: int | None, due_at_once: int) -> None:
        """`most`: how many records stay that nothing needs yet; `since_s`: None if nothing is on disk.

        `due_at_once`: about how many are lent of what is due, where time may pass in parts.
        """
        self.kind = kind
        self._most = most
        self._due_at_once = due_at_once
        self._first_state, self._last_state = STATES[kind]
        self.index = Deadlines(self._first_state, self._last_state)
        self.until_s = ENDLESS if since_s is None else since_s - 1
        """All that falls due up to this second is in memory."""
        self._numbers: dict[int, list[int]] = {}  # entries on disk, by deadline, of what is in memory
        self._candidates: list[tuple[int, JoinEntry]] = []
        self._limit_s = -1
        self._count = 0

    def cover(self, limit_s: int, count: int, spoken: Container[str | None], reader: EntryReader) -> None:
        """Reach past `limit_s`, and to `count` later records that wait and whose ids are not `spoken` of.

        Or only as far as there are enough that will fall due, beside those that may be evicted.
        """
        self._limit_s = limit_s
        self._count = count
        enough = max(1, self._due_at_once) + 2 * count
        while self.until_s != ENDLESS and (self.until_s < limit_s or not self._holds(limit_s, count, spoken)):
            if self.until_s < limit_s and self._waiting(spoken) >= enough:
                return
            self._load(reader, max(1, min(self._most // 2, self._due_at_once), count))

    def _waiting(self, spoken: Container[str | None]) -> int:
        """How many are in memory that no event speaks of."""
        first_state, last_state, until_s = self._first_state, self._last_state, self.until_s
        return sum(
            first_state <= record.state <= last_state and record.id not in spoken
            for deadline_s, bucket in self.index.buckets.items()
            if deadline_s <= until_s
            for record in bucket
        )

    def _holds(self, limit_s: int, count: int, spoken: Container[str | None]) -> bool:
        """Whether so many are there: those seen last time, else, from the last one backwards, others."""
        first_state, last_state = self._first_state, self._last_state
        held = [
            (deadline_s, record)
            for deadline_s, record in self._candidates
            if first_state <= record.state <= last_state and deadline_s > limit_s and record.id not in spoken
        ]
        if len(held) < count:
            buckets = self.index.buckets
            latest_first = sorted((d for d in buckets if limit_s < d <= self.until_s), reverse=True)
            others = (
                (deadline_s, record)
                for deadline_s in latest_first
                for record in buckets[deadline_s]
                if first_state <= record.state <= last_state and record.id not in spoken
            )
            held = list(islice(others, 2 * count + _SPARE))
        self._candidates = held
        return len(held) >= count

    def _load(self, reader: EntryReader, least: int) -> None:
        entries, complete = reader.entries(self.kind, self.until_s + 1, least)
        chains = reader.chains([id for entry in entries for id in entry.ids])  # noqa: A001 - the events' own word
        loaded: dict[int, list[JoinEntry]] = {}
        first_state, last_state = self._first_state, self._last_state
        for entry in entries:
            mark = tag(entry.deadline_s, entry.number)
            found = loaded.setdefault(entry.deadline_s, [])
            self._numbers.setdefault(entry.deadline_s, []).append(entry.number)
            for key in entry.ids:
                record = first = chains.get(key)
                while record is not None and not (
                    record.generation == mark and first_state <= record.state <= last_state
                ):
                    record = record.next
                if first is not None and record is not None:
                    found.append(record)
                    reader.adopt(first)
        for deadline_s, bucket in self.index.buckets.items():
            loaded.setdefault(deadline_s, []).extend(bucket)
        self._replace(loaded)
        self.until_s = ENDLESS if complete else entries[-1].deadline_s

    def _replace(self, buckets: Mapping[int, list[JoinEntry]]) -> None:
        index = Deadlines(self._first_state, self._last_state)
        for deadline_s, bucket in buckets.items():
            if bucket:
                index.add(deadline_s, bucket[0])
                index.buckets[deadline_s] = bucket
                index.entries += len(bucket)
        index.live = index.entries
        self.index = index

    def write(self, batch: WriteBatch, number: int) -> int:
        """Write what is new and waits, as entries from `number` on; remove entries that are used up.

        Returns the next number. Then only what falls due next stays in memory.
        """
        first_state, last_state, until_s = self._first_state, self._last_state, self.until_s
        numbers = self._numbers
        kept: dict[int, list[JoinEntry]] = {}
        for deadline_s, bucket in self.index.buckets.items():
            waiting = [record for record in bucket if first_state <= record.state <= last_state]
            new = [record for record in waiting if record.generation == UNSTORED]
            for records in distinct(new) if new else ():
                mark = tag(deadline_s, number)
                for record in records:
                    record.generation = mark
                ids = "".join([record.id for record in records]).encode("latin-1")
                batch[expiry_key(self.kind, deadline_s, number)] = ids
                if deadline_s <= until_s:
                    numbers.setdefault(deadline_s, []).append(number)
                number += 1
            if waiting and deadline_s <= until_s:
                kept[deadline_s] = waiting
        for deadline_s in [deadline_s for deadline_s in numbers if deadline_s not in kept]:
            for used in numbers.pop(deadline_s):
                del batch[expiry_key(self.kind, deadline_s, used)]
        self._trim(kept)
        self._replace(kept)
        self._candidates = []
        return number

    def _trim(self, kept: dict[int, list[JoinEntry]]) -> None:
        """Let go of what falls due last, when it is much more than anything needed lately."""
        excess = sum(map(len, kept.values())) - max(self._most, 2 * self._count)
        if excess <= 0:
            return
        least = max(self._most // 2, self._count)
        until_s = self._limit_s
        for deadline_s in sorted(kept):
            if least > 0:
                least -= len(kept[deadline_s])
                until_s = max(until_s, deadline_s)
            elif deadline_s > until_s:
                del kept[deadline_s]
                del self._numbers[deadline_s]
                self.until_s = until_s

    def since_s(self) -> int:
        """Nothing on disk is due earlier; after `write`."""
        return min(self.index.buckets, default=0 if self.until_s == ENDLESS else self.until_s + 1)

    def has(self, record: JoinEntry) -> bool:
        """Tell whether a written record that waits is in the index lent to the core."""
        return deadline_of(record.generation) <= self.until_s


def distinct(records: list[JoinEntry]) -> list[list[JoinEntry]]:
    """Cut into runs that have no id twice, so that an entry and an id name one record."""
    if len({record.id for record in records}) == len(records):
        return [records]
    runs: list[list[JoinEntry]] = [[]]
    seen: set[str] = set()
    for record in records:
        if record.id in seen:
            runs.append([])
            seen.clear()
        seen.add(record.id)
        runs[-1].append(record)
    return runs
