"""Whether what a closed state says in one place agrees with what it says in another.

What waits must be named by the index of deadlines, what is settled by a dedup key: compared as sets of 64-bit
hashes, a range of ids at a time, so that memory stays bounded however much there is.

Reading everything compares every block with its checksum, except filters: RocksDB does without one that is
damaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from streamwatch.core.join.entry import RESOLVED, JoinEntry
from streamwatch.edge.stores.rocksdb.keys import DIGEST_BYTES, dedup_parts, expiry_parts
from streamwatch.edge.stores.rocksdb.reading.id_hashes import (
    PREFIXES,
    IdHashes,
    Words,
    hashes,
    joined,
    repeated,
    within,
)
from streamwatch.edge.stores.rocksdb.reading.inspect import Inspection
from streamwatch.edge.stores.rocksdb.rows.codec import deadline_of, tag
from streamwatch.edge.stores.rocksdb.rows.expiry_cache import KIND_OF, STATES

RECORDS_AT_ONCE: Final = 1_500_000
"""Takes about 400 MB, the program included."""
_TOLD_EVERY: Final = 10_000


class Faults:
    """Faults: the first finds in words, and how many there are."""

    SHOWN: Final = 5

    def __init__(self) -> None:
        self.named: list[str] = []
        self.count = 0

    def add(self, what: str) -> None:
        """One more."""
        self.count += 1
        if self.count <= self.SHOWN:
            self.named.append(what)


@dataclass(slots=True)
class Census:
    """Result of a scan of everything."""

    ids: int = 0
    waiting: Counter[tuple[int, str]] = field(default_factory=Counter[tuple[int, str]])
    """By state and model; no model: for all of them."""
    dedup_entries: Counter[int] = field(default_factory=Counter[int])
    """By generation."""
    dead: int = 0
    """Ids of which only dead dedup entries are left, to be cleared away."""
    entries: int = 0
    named: int = 0
    """Ids named by the index of deadlines."""
    settled: int = 0
    """Of these, what waits no longer."""
    dedup: int = 0
    records: Faults = field(default_factory=Faults)
    index: Faults = field(default_factory=Faults)
    dedup_faults: Faults = field(default_factory=Faults)


def survey(
    state: Inspection, told: Callable[[int], None] = lambda _: None, at_once: int = RECORDS_AT_ONCE
) -> Census:
    """Read every record, every entry of the index and every dedup key.

    Parameters
    ----------
    state
        A closed one.
    told
        Called now and then with how many ids have been read.
    at_once
        Ids compared at once.
    """
    census = Census()
    parts = min(PREFIXES, state.estimate("entries") // at_once + 1)
    bounds = [PREFIXES * part // parts for part in range(parts + 1)]
    for number, (since, until) in enumerate(pairwise(bounds)):
        last = number == parts - 1
        waiting, dedup_entries = _records(state, since, None if last else until, census, told)
        _compare_index(state, waiting, (since, until), census, count=number == 0)
        _compare_dedup(state, dedup_entries, (since, until), census, count=number == 0)
    return census


def faults(state: Inspection) -> Iterator[str]:
    """The first contradictions, in words; none when everything that waits will fall due, once."""
    census = survey(state)
    for found in (census.records, census.index, census.dedup_faults):
        yield from found.named


def _records(
    state: Inspection, since: int, until: int | None, census: Census, told: Callable[[int], None]
) -> tuple[IdHashes, IdHashes]:
    """Scan the ids from one prefix to another: what waits and what is settled."""
    waiting, dedup_entries = IdHashes(), IdHashes()
    end = None if until is None else until.to_bytes(2, "big")
    for key, value in state.items("entries", since.to_bytes(2, "big") if since else b""):
        if end is not None and key >= end:
            break
        census.ids += 1
        if census.ids % _TOLD_EVERY == 0:
            told(census.ids)
        if len(key) != DIGEST_BYTES:
            census.records.add(f"id {key.hex()} has {len(key)} bytes, expected {DIGEST_BYTES}")
            continue
        try:
            chain = state.chain(key, value)
        except (ValueError, LookupError, TypeError) as error:
            census.records.add(f"the record of id {key.hex()} cannot be decoded: {error}")
            continue
        census.dead += not chain
        for record in chain:
            if record.state >= RESOLVED:
                census.dedup_entries[record.generation] += 1
                dedup_entries.add(key, record.generation)
            elif _waits(state, key, record, census):
                waiting.add(key, _mark(KIND_OF[record.state], record.generation))
    told(census.ids)
    return waiting, dedup_entries


def _waits(state: Inspection, key: bytes, record: JoinEntry, census: Census) -> bool:
    if not 0 <= record.state < RESOLVED:
        census.records.add(f"id {key.hex()} is in a state {record.state} that there is not")
        return False
    census.waiting[record.state, record.model or ""] += 1
    due_s, since_s = deadline_of(record.generation), state.manifest.since_s[KIND_OF[record.state]]
    if due_s < since_s:
        census.index.add(f"id {key.hex()} waits until {due_s}, and the index begins at {since_s}")
    return True


def _mark(kind: int, generation: int) -> int:
    """What an entry of the index and the record it names have in common, as one number."""
    return kind << 60 | (-2 - generation)


def _compare_index(
    state: Inspection, waiting: IdHashes, between: tuple[int, int], census: Census, *, count: bool
) -> None:
    named: list[Words] = []
    for key, value in state.items("expiry"):
        try:
            kind, deadline_s, number = expiry_parts(key)
        except ValueError:
            kind, deadline_s, number = -1, 0, 0
        if not 0 <= kind < len(STATES) or number >= state.manifest.entries or len(value) % DIGEST_BYTES:
            if count:
                census.index.add(f"entry {key.hex()} of the index is none that was written")
            continue
        if count:
            census.entries += 1
            census.named += len(value) // DIGEST_BYTES
        ids = within(value, between)
        mark = np.array([_mark(kind, tag(deadline_s, number))], np.uint64)
        named.append(hashes(ids, mark))
    found, wanted = joined(named), waiting.hashes()
    live = found[np.isin(found, wanted)]
    census.settled += len(found) - len(live)
    for position in np.flatnonzero(~np.isin(wanted, live)).tolist():
        key, mark = waiting.at(position)
        due_s = deadline_of(-2 - (mark & (1 << 60) - 1))
        census.index.add(f"id {key} waits until {due_s}, and no entry of the index names it")
    for position in repeated(wanted, wanted):
        census.index.add(f"id {waiting.at(position)[0]} waits twice under one entry of the index")
    for position in repeated(live, wanted):
        census.index.add(f"id {waiting.at(position)[0]} is named twice by the index")


def _compare_dedup(
    state: Inspection, dedup_entries: IdHashes, between: tuple[int, int], census: Census, *, count: bool
) -> None:
    named: list[Words] = []
    for key, value in state.items("dedup"):
        try:
            generation, commit = dedup_parts(key)
        except ValueError:
            generation, commit = 0, -1
        if not 0 <= commit <= state.manifest.commits or len(value) % DIGEST_BYTES:
            if count:
                census.dedup_faults.add(
                    f"dedup key {key.hex()} is of no commit up to {state.manifest.commits}"
                )
            continue
        census.dedup += count
        named.append(hashes(within(value, between), np.array([generation], np.uint64)))
    for position in np.flatnonzero(~np.isin(dedup_entries.hashes(), joined(named))).tolist():
        key, generation = dedup_entries.at(position)
        census.dedup_faults.add(
            f"id {key} has a dedup entry of generation {generation}, and lies in no dedup key of it"
        )
