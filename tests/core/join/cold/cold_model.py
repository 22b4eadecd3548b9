"""Cold entries beside a plain list of them: the same questions to both, after any sequence of steps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from streamwatch.core.join.cold.block import PACKED_ENTRY
from streamwatch.core.join.cold.contents import DEDUP_ENTRIES, QUEUES, ColdEntries
from streamwatch.core.join.cold.merging import Merge, OldestSearch
from streamwatch.core.join.cold.store import ColdSpec, MemoryRuns
from streamwatch.core.join.counters import PENDING, RESOLVED
from streamwatch.core.join.layout import NO_TIME, PREDICTIONS, side_columns
from streamwatch.core.specs import JoinSpec

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
    last_class: int = 0
    """Its side column, of a prediction."""

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


STEPS = {
    "evict": 5,
    "take_out": 6,
    "close_generation": 1,
    "drop_generations": 1,
    "plan_taking": 2,
    "plan_merge": 5,
    "finish": 6,
    "give_up": 1,
    "commit": 3,
    "crash": 1,
}
"""Steps and how often they are drawn."""


class ColdSteps:
    """Any sequence of steps; subclasses say where runs are kept.

    `seen` counts what has happened, so that a test can tell that it tried what it is about.
    """

    spec = SMALL

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.seen: Counter[str] = Counter()
        self.model = self.committed = Model()
        self.arrivals = self.now_ms = 0
        self.generation = 1
        self.planned = None
        self.meanwhile: set[Entry] = set()
        self.open()

    def open(self):
        """Open with some settings: a side column that they do not use is carried out."""
        join = JoinSpec(conflicts=self.chance.choice(("first", "last", "both", "both")))
        self.columns = side_columns(join)
        self.cold = ColdEntries(self.open_store(), self.spec)
        self.cold.keep_side(self.columns, join)
        if join.conflicts == "both":
            return
        entries = []
        for entry in self.model.entries:
            row = entry.row
            if join.conflicts == "last" and entry.last_class:
                row = (*row[:6], entry.last_class - 1, *row[7:])
                self.seen["last classes that count"] += 1
            self.seen["last classes dropped"] += join.conflicts == "first" and entry.last_class > 0
            entries.append(replace(entry, row=row, last_class=0))
        self.model = replace(self.model, entries=tuple(entries))

    def open_store(self):
        """Make a store, or the same again with what survives a crash."""
        raise NotImplementedError

    def commit_to_store(self, changes):
        raise NotImplementedError

    def walk(self, steps, *, checked=True):
        for _ in range(steps):
            name = self.chance.choices(list(STEPS), list(STEPS.values()))[0]
            getattr(self, name)()
            if checked:
                self.check()

    def new_entries(self, queue, count):
        made = []
        for low, high in self.chance.choices(IDS, k=count):
            self.arrivals += 1
            self.now_ms += self.chance.choice((0, 0, 1, 3))
            n, now_ms = self.arrivals, self.now_ms
            if queue == DEDUP_ENTRIES:
                row = (low, high, now_ms, NO_TIME, n, n % 5, 0, 1, -1, RESOLVED + n % 4, self.generation)
            else:
                own_ms = n if n % 2 else NO_TIME
                row = (low, high, now_ms, own_ms, n, n % 5 - 1, 1, -1, n % 3, PENDING, 0)
            revised = self.columns and queue == PREDICTIONS and n % 3
            made.append(Entry(row, queue, n % 5 + 1 if revised else 0))
        return made

    def evict(self):
        queue = self.chance.choice(QUEUES[:1] * 3 + QUEUES[1:])
        if isinstance(self.planned, OldestSearch) and self.planned.queue == queue:
            return
        made = self.new_entries(queue, self.chance.randint(1, 14))
        self.model = replace(self.model, entries=(*self.model.entries, *made))
        self.chance.shuffle(made)
        side = np.array([[entry.last_class] for entry in made], np.int32)
        self.cold.evict(queue, array_of(made), side if self.columns and queue == PREDICTIONS else None)

    def take_out(self):
        found = self.ask(self.chance.sample(IDS, self.chance.randint(1, len(IDS))))
        share = self.chance.random()
        chosen = np.array([self.chance.random() < share for _ in found.id_indices], np.bool_)
        rows = set(rows_of(found.entries[chosen]))
        assert self.cold.mark_dead(found.runs[chosen], found.positions[chosen]) == len(rows)
        assert self.cold.mark_dead(found.runs[chosen], found.positions[chosen]) == 0
        died = {entry for entry in self.model.entries if entry.row in rows}
        self.meanwhile |= died
        self.model = self.model.without(died)

    def close_generation(self):
        self.generation += 1

    def drop_generations(self):
        floor = min(self.generation, self.model.floor + self.chance.randint(1, 2))
        self.model = replace(self.model, floor=floor)
        self.cold.floor = floor

    def plan_taking(self):
        if self.planned is None:
            queue, count = self.chance.choice((0, 0, 1, 2)), self.chance.randint(1, 20)
            self.expected = self.model.living(queue)[:count]
            self.planned = self.cold.plan_oldest_search(queue, count)
            self.meanwhile = set()

    def plan_merge(self):
        if self.planned is None:
            self.planned = self.cold.plan_merge()
            self.meanwhile = set()

    def finish(self):
        planned, self.planned = self.planned, None
        if planned is None:
            return
        planned.run()
        self.seen["died meanwhile"] += len(self.meanwhile)
        if isinstance(planned, Merge):
            self.seen[f"merges of {'several' if len(planned.runs) > 1 else 'one'}"] += 1
            self.cold.finish_merge(planned)
            return
        taken = self.cold.finish_oldest_search(planned)
        left = [entry for entry in self.expected if entry not in self.meanwhile]
        assert rows_of(taken.entries) == [entry.row for entry in left]
        columns = len(self.columns) if planned.queue == PREDICTIONS else 0
        assert taken.side.tolist() == [[entry.last_class] * columns for entry in left]
        self.model = self.model.without(left)
        self.seen["taken"] += len(left)

    def give_up(self):
        planned, self.planned = self.planned, None
        if planned is not None and self.chance.random() < 0.5:
            planned.run()
        self.cold.discard_plans()

    def commit(self):
        self.commit_to_store(self.cold.changes())
        self.committed = self.model
        self.seen["commits"] += 1

    def crash(self):
        if self.planned is not None and self.chance.random() < 0.5:
            self.planned.run()
        self.planned = None
        self.seen["entries lost"] += len(set(self.model.entries) ^ set(self.committed.entries))
        self.model = self.committed
        self.open()
        self.cold.floor = self.model.floor

    def ask(self, ids):
        low = np.array([id_[0] for id_ in ids], np.uint64)
        high = np.array([id_[1] for id_ in ids], np.uint64)
        found = self.cold.look_up(low, high)
        assert self.cold.may_have(low, high)[found.id_indices].all()
        return found

    def check(self):
        """Every id has what the list has; queues have as many, and none older than they say."""
        found = self.ask(IDS)
        living = self.model.living()
        expected = [(n, entry.row) for n, id_ in enumerate(IDS) for entry in living if entry.id == id_]
        assert list(zip(found.id_indices.tolist(), rows_of(found.entries), strict=True)) == expected
        revised = [entry.last_class for id_ in IDS for entry in living if entry.id == id_]
        assert found.side.tolist() == [[last_class] * len(self.columns) for last_class in revised]
        for number, entry in zip(found.runs.tolist(), found.entries, strict=True):
            run = self.cold._runs[number]
            assert run.oldest_arrival <= entry["arrival"]
            assert run.oldest_ms <= entry["record_ms"]
        for queue in QUEUES[:DEDUP_ENTRIES]:
            waiting = self.model.living(queue)
            assert self.cold.alive(queue) == len(waiting)
            oldest_ms = self.cold.oldest_ms(queue)
            assert (oldest_ms is None) == (not waiting)
            assert oldest_ms is None or oldest_ms <= waiting[0].record_ms
