"""Cold entries beside a plain list of them: the same questions to both, after any sequence of steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from streamwatch.core.join.compiled.cold.block import PACKED_ENTRY
from streamwatch.core.join.compiled.cold.entries import DEDUP_ENTRIES, QUEUES, ColdEntries
from streamwatch.core.join.compiled.cold.memory import MemoryRuns
from streamwatch.core.join.compiled.cold.spec import ColdSpec
from streamwatch.core.join.compiled.layout import NO_TIME
from streamwatch.core.join.entry import PENDING, RESOLVED

SMALL = ColdSpec(
    block_entries=4,
    chunk_blocks=2,
    first_entries=4,
    fanout=2,
    most_entries=100,
    filter_bits=2,
    filter_bits_of_few=3,
    many_entries=20,
)
"""Everything happens with few entries: merges of several tiers, ids across blocks, filters that err."""

LOWS = [
    0,
    1,
    2**32,
    2**63 - 1,
    2**63,
    2**64 - 1,
    *(number * 0x9E3779B97F4A7C15 % 2**64 for number in range(12)),
]
IDS = [(low, high) for low in LOWS for high in (7, 2**64 - 1)]
"""Digests; each `low` belongs to two ids."""


@dataclass(frozen=True)
class Entry:
    """An entry in the oracle."""

    row: tuple[int, ...]
    queue: int

    @property
    def id(self):
        return self.row[:2]

    @property
    def record_ms(self):
        return self.row[2]

    @property
    def arrival(self):
        return self.row[4]

    @property
    def generation(self):
        return self.row[10]


@dataclass(frozen=True)
class Model:
    """All that lives, and what was dropped."""

    entries: tuple[Entry, ...] = ()
    floor: int = 0

    def living(self, queue=None):
        """Those that count, oldest first."""
        return [
            entry
            for entry in sorted(self.entries, key=lambda entry: entry.arrival)
            if queue in (None, entry.queue)
            and (entry.queue != DEDUP_ENTRIES or entry.generation >= self.floor)
        ]

    def without(self, gone):
        return replace(self, entries=tuple(entry for entry in self.entries if entry not in gone))


def array_of(entries):
    return np.array([entry.row for entry in entries], PACKED_ENTRY)


def rows_of(entries):
    return [tuple(row) for row in entries.tolist()]


class CutRuns(MemoryRuns):
    """What was written since the last commit is lost from some write on, as a log that was not flushed is."""

    def __init__(self):
        super().__init__()
        self._committed: dict[bytes, bytes] = {}
        self._since: list[tuple[str, list]] = []

    def write(self, values):
        super().write(values)
        self._since.append(("write", list(values)))

    def remove(self, ranges):
        super().remove(ranges)
        self._since.append(("remove", list(ranges)))

    def commit(self, changes):
        super().commit(changes)
        self._committed = dict(self._values)
        self._since = []

    def cut(self, kept):
        """Lose all but the first writes since the last commit."""
        self._values = dict(self._committed)
        since, self._since = self._since[:kept], []
        for what, parts in since:
            getattr(self, what)(parts)


class ColdMachine(RuleBasedStateMachine):
    """Any sequence of steps; subclasses say where runs are kept."""

    spec = SMALL

    def open_store(self):
        """Make a store, or the same again with what survives a crash."""
        raise NotImplementedError

    def commit_to_store(self, changes):
        raise NotImplementedError

    @initialize()
    def begin(self):
        self.cold = ColdEntries(self.open_store(), self.spec)
        self.model = self.committed = Model()
        self.arrivals = self.now_ms = 0
        self.generation = 1
        self.planned = None
        self.meanwhile: set[Entry] = set()

    def new_entries(self, queue, ids, steps_ms):
        made = []
        for (low, high), step_ms in zip(ids, steps_ms, strict=False):
            self.arrivals += 1
            self.now_ms += step_ms
            n = self.arrivals
            if queue == DEDUP_ENTRIES:
                row = (low, high, self.now_ms, NO_TIME, n, n % 5, 0, 1, -1, RESOLVED + n % 4, self.generation)
            else:
                row = (
                    low,
                    high,
                    self.now_ms,
                    n if n % 2 else NO_TIME,
                    n,
                    n % 5 - 1,
                    1,
                    -1,
                    n % 3,
                    PENDING,
                    0,
                )
            made.append(Entry(row, queue))
        return made

    @rule(
        queue=st.sampled_from(QUEUES),
        ids=st.lists(st.sampled_from(IDS), min_size=1, max_size=12),
        steps_ms=st.lists(st.integers(0, 3), min_size=12, max_size=12),
        backwards=st.booleans(),
    )
    def evict(self, queue, ids, steps_ms, backwards):
        if isinstance(self.planned, tuple) and self.planned[0] == queue:
            return
        made = self.new_entries(queue, ids, steps_ms)
        self.cold.evict(queue, array_of(reversed(made) if backwards else made))
        self.model = replace(self.model, entries=(*self.model.entries, *made))

    @rule(
        ids=st.lists(st.sampled_from(IDS), unique=True, max_size=10), gone=st.randoms(use_true_random=False)
    )
    def take_out(self, ids, gone):
        found = self.ask(ids)
        chosen = [gone.random() < 0.6 for _ in found.asked]
        rows = rows_of(found.entries[chosen])
        assert self.cold.take_out(found.runs[chosen], found.positions[chosen]) == len(rows)
        assert self.cold.take_out(found.runs[chosen], found.positions[chosen]) == 0
        died = {entry for entry in self.model.entries if entry.row in rows}
        self.meanwhile |= died
        self.model = self.model.without(died)

    @rule()
    def close_generation(self):
        self.generation += 1

    @precondition(lambda self: self.planned is None)
    @rule(by=st.integers(1, 2))
    def drop_generations(self, by):
        floor = min(self.generation, self.model.floor + by)
        self.model = replace(self.model, floor=floor)
        self.cold.floor = floor

    @precondition(lambda self: self.planned is None)
    @rule(queue=st.sampled_from(QUEUES[:DEDUP_ENTRIES]), count=st.integers(1, 20))
    def plan_taking(self, queue, count):
        expected = self.model.living(queue)[:count]
        taking = self.cold.taking(queue, count)
        self.planned = queue, taking, expected
        self.meanwhile = set()

    @precondition(lambda self: self.planned is None)
    @rule()
    def plan_merge(self):
        self.planned = self.cold.merging()
        self.meanwhile = set()

    @precondition(lambda self: self.planned is not None)
    @rule()
    def finish(self):
        planned, self.planned = self.planned, None
        if not isinstance(planned, tuple):
            planned.run()
            self.cold.finish_merging(planned)
            return
        _, taking, expected = planned
        taking.run()
        taken = self.cold.finish_taking(taking)
        left = [entry for entry in expected if entry not in self.meanwhile]
        assert rows_of(taken) == [entry.row for entry in left]
        self.model = self.model.without(left)

    @precondition(lambda self: self.planned is not None)
    @rule(begun=st.booleans())
    def give_up(self, begun):
        planned, self.planned = self.planned, None
        if begun:
            (planned[1] if isinstance(planned, tuple) else planned).run()
        self.cold.give_up()

    @rule()
    def commit(self):
        self.commit_to_store(self.cold.changes())
        self.committed = self.model

    @rule(begun=st.booleans())
    def crash(self, begun):
        if begun and self.planned is not None:
            (self.planned[1] if isinstance(self.planned, tuple) else self.planned).run()
        self.planned = None
        self.model = self.committed
        self.cold = ColdEntries(self.open_store(), self.spec)
        self.cold.floor = self.model.floor

    def ask(self, ids):
        low = np.array([id_[0] for id_ in ids], np.uint64)
        high = np.array([id_[1] for id_ in ids], np.uint64)
        return self.cold.look_up(low, high)

    @invariant()
    def every_id_has_what_the_list_has(self):
        if not hasattr(self, "cold"):
            return
        found = self.ask(IDS)
        living = self.model.living()
        expected = [(n, entry.row) for n, id_ in enumerate(IDS) for entry in living if entry.id == id_]
        assert list(zip(found.asked.tolist(), rows_of(found.entries), strict=True)) == expected

    @invariant()
    def queues_have_as_many_and_none_older(self):
        if not hasattr(self, "cold"):
            return
        for queue in QUEUES[:DEDUP_ENTRIES]:
            living = self.model.living(queue)
            assert self.cold.alive(queue) == len(living)
            oldest_ms = self.cold.oldest_ms(queue)
            assert (oldest_ms is None) == (not living)
            assert oldest_ms is None or oldest_ms <= living[0].record_ms
