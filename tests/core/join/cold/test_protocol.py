"""A small table with cold entries behind it resolves and expires what one table does, in the same order.

The table is a dictionary here; it and the cold entries are used as the package's docstring says.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from streamwatch.core.join.cold.block import PACKED_ENTRY
from streamwatch.core.join.cold.contents import ColdEntries
from streamwatch.core.join.cold.store import MemoryRuns
from streamwatch.core.join.layout import PREDICTIONS
from tests.core.join.cold.cold_model import SMALL
from tests.tiers import by_tier

SEEDS = by_tier(fast=4, default=20, everything=500)
TURNS, HORIZON_MS, MODELS = 120, 60, 3
ROOM = 10
"""Predictions the table holds between two batches."""
TAKEN = 6


def prediction(number, digest, model, now_ms):
    row = np.zeros(1, PACKED_ENTRY)
    row["low"], row["high"], row["arrival"] = digest * 2**60, digest, number
    row["model"], row["record_ms"], row["predicted_class"] = model, now_ms, number % 2
    return tuple(row[0].item())


ID, RECORD_MS, ARRIVAL, MODEL = slice(0, 2), 2, 4, 5


class OneTable:
    """Everything waits in one dictionary, by arrival."""

    def __init__(self):
        self.waiting = {}

    def turn(self, predictions, labels, now_ms):
        """What expires before the batch, and what its labels resolve; then its predictions wait."""
        expired = [row for row in self.waiting.values() if row[RECORD_MS] + HORIZON_MS <= now_ms]
        for row in expired:
            del self.waiting[row[ARRIVAL]]
        resolved = []
        for id_ in labels:
            resolved += [row for row in self.waiting.values() if row[ID] == id_]
            for row in resolved:
                self.waiting.pop(row[ARRIVAL], None)
        self.waiting.update((row[ARRIVAL], row) for row in predictions)
        return expired, resolved

    def pending(self):
        return Counter(row[MODEL] for row in self.waiting.values())


class TwoTables:
    """A table, and cold entries behind it; counts of models are the table's."""

    def __init__(self, chance):
        self.chance = chance
        self.store = MemoryRuns()
        self.cold = ColdEntries(self.store, SMALL)
        self.taken_before = {}
        self.waiting = {}
        self.by_model = Counter()
        self.planned = None

    def turn(self, predictions, labels, now_ms):
        self.bring_in(now_ms)
        expired = []
        for part in (self.taken_before, self.waiting):
            due = [row for row in part.values() if row[RECORD_MS] + HORIZON_MS <= now_ms]
            expired += [part.pop(row[ARRIVAL]) for row in due]
        resolved = self.resolve(labels)
        self.by_model.subtract(row[MODEL] for row in expired + resolved)
        self.by_model.update(row[MODEL] for row in predictions)
        self.waiting.update((row[ARRIVAL], row) for row in predictions)
        self.evict()
        self.merge()
        return expired, resolved

    def bring_in(self, now_ms):
        """What may fall due by now comes back, and stands before the rest of the table."""
        while True:
            oldest_ms = self.cold.oldest_ms(PREDICTIONS)
            if oldest_ms is None or oldest_ms + HORIZON_MS > now_ms:
                return
            if self.planned is not None:
                self.planned = None
                self.cold.discard_plans()
            search = self.cold.plan_oldest_search(PREDICTIONS, TAKEN)
            search.run()
            for row in self.cold.finish_oldest_search(search).entries.tolist():
                self.taken_before[row[ARRIVAL]] = row

    def resolve(self, labels):
        resolved = []
        if not labels:
            return resolved
        low, high = np.array(labels, np.uint64).T.copy()
        found = self.cold.look_up(low, high)
        for index, id_ in enumerate(labels):
            cold = found.id_indices == index
            resolved += self.settle(self.taken_before, id_)
            resolved += found.entries[cold].tolist()
            self.cold.mark_dead(found.runs[cold], found.positions[cold])
            resolved += self.settle(self.waiting, id_)
        return resolved

    @staticmethod
    def settle(part, id_):
        return [part.pop(row[ARRIVAL]) for row in list(part.values()) if row[ID] == id_]

    def evict(self):
        over = len(self.waiting) - ROOM
        if over > 0 and not self.taken_before:
            oldest = [self.waiting.pop(arrival) for arrival in list(self.waiting)[:over]]
            self.cold.evict(PREDICTIONS, np.array(oldest, PACKED_ENTRY))

    def merge(self):
        """A merge takes some turns; commits and starts come in between."""
        if self.planned is None:
            self.planned = self.cold.plan_merge()
        elif self.chance.random() < 0.5:
            planned, self.planned = self.planned, None
            planned.run()
            self.cold.finish_merge(planned)
        self.store.commit(self.cold.changes())
        if self.chance.random() < 0.1:
            self.planned = None
            self.cold = ColdEntries(self.store, SMALL)

    def pending(self):
        return +self.by_model


@pytest.mark.parametrize("seed", range(SEEDS))
def test_two_tables_give_what_one_gives(seed):
    chance = Random(seed)
    one, two = OneTable(), TwoTables(chance)
    now_ms = number = 0
    came_back = 0
    for _ in range(TURNS):
        now_ms += chance.choice((0, 1, 5, 5, 100))
        predictions = []
        for _ in range(chance.randint(0, 5)):
            digest = chance.randint(0, 15)
            for model in range(chance.randint(1, MODELS)):
                number += 1
                predictions.append(prediction(number, digest, model, now_ms))
        labels = [(digest * 2**60, digest) for digest in chance.sample(range(16), chance.randint(0, 2))]
        expected = one.turn(predictions, labels, now_ms)
        assert two.turn(predictions, labels, now_ms) == expected
        assert two.pending() == one.pending()
        came_back = max(came_back, two.cold.alive(PREDICTIONS))
    assert came_back > ROOM
