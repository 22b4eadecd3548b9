"""Scores of predictions outside the table: what is put last is what is there, before and after commits."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from streamwatch.core.join.cold.block import PACKED_ENTRY
from streamwatch.core.join.cold.contents import OutsideScores
from streamwatch.core.join.cold.store import ColdChanges, MemoryRuns
from streamwatch.core.join.counters import PENDING
from streamwatch.core.records.scores import ScoreLists

ARRIVAL = 7


class Scored:
    """A store, scores in it, and commits of them."""

    def __init__(self):
        self.store = MemoryRuns()
        self.scores = OutsideScores(self.store)

    def commit(self):
        changes = ColdChanges()
        self.scores.add_changes(changes)
        self.store.commit(changes)

    def read(self):
        return self.scores.read(entry())[0].values


def entry():
    """One prediction that has scores."""
    packed = np.zeros(1, PACKED_ENTRY)
    packed["state"], packed["arrival"] = PENDING, ARRIVAL
    return packed


def table(score):
    """A table whose only prediction with scores has this one."""
    lists = ScoreLists(np.array([1]), np.array([0], np.int32), np.array([score]), np.array([-1], np.int32))
    return SimpleNamespace(
        names=SimpleNamespace(
            scores=SimpleNamespace(take=lambda _: lists),
            classes=SimpleNamespace(names=["a"]),
            segments=SimpleNamespace(names=[]),
        )
    )


def bytes_of(score):
    return np.array([score], "<f8").tobytes()


def test_replaced_scores_are_the_later_ones_whenever_a_commit_comes():
    for commits in range(4):
        scored = Scored()
        scored.scores.put(entry(), table(0.25))
        if commits & 1:
            scored.commit()
        scored.scores.replace(entry(), entry(), table(0.75))
        if commits & 2:
            scored.commit()
        assert scored.read() == bytes_of(0.75)
        scored.commit()
        assert scored.read() == bytes_of(0.75)


def test_replaced_scores_leave_nothing_when_they_are_dropped_before_a_commit():
    scored = Scored()
    scored.scores.put(entry(), table(0.25))
    scored.commit()
    scored.scores.replace(entry(), entry(), table(0.75))
    scored.scores.drop(entry())
    scored.commit()
    assert scored.store.nbytes == 0
