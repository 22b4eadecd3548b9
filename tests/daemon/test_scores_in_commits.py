"""Scores take longer to write than all else of a record: a commit holds so many, whatever else is in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence

import pytest

from streamwatch.core.join.join import SCORES_AT_ONCE
from streamwatch.core.ports import CommitBatch
from streamwatch.core.records.batch import RecordBatch
from streamwatch.core.records.events import Event, Outcome, Prediction
from streamwatch.daemon import CommitSpec
from streamwatch.daemon import batch_processor as evaluating
from streamwatch.daemon.turns import (
    COLUMN_SCORES_PER_TURN,
    RECORDS_PER_TURN,
    SCORES_PER_COMMIT,
    scores_in_columns,
    scores_of,
)
from tests.cpu_budget import until
from tests.daemon import test_durability
from tests.daemon.fake_daemon import (
    NOW_MS,
    Record,
    label,
    poll,
)
from tests.daemon.test_durability import Disk, DiskStore, durable_fake_daemon

MOST = 4_096
"""Scores of a record, at most."""
SELDOM = CommitSpec(interval_seconds=3_600.0)
"""What fills a commit is not its time."""


class Counting(DiskStore):
    """Counts the scores of every commit, and those of every turn."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk)
        self.turns: list[int] = []
        self.turns_before: list[list[int]] = []
        """By commit."""

    def commit(self, changes: CommitBatch) -> None:
        self.turns_before.append(self.turns)
        self.turns = []
        super().commit(changes)


def scored(offset: int, scores: int) -> Record:
    shares = {f"c{number}": 1 / scores for number in range(scores)}
    value = {"id": str(offset), "model": "m", "prediction": "c0", "scores": shares}
    return Record("predictions", 0, offset, NOW_MS - 1, json.dumps(value).encode())


async def commits_of(
    monkeypatch: pytest.MonkeyPatch, scores: int, *polls: Sequence[Record]
) -> list[list[int]]:
    """Scores by turn and commit that a daemon makes of these polls, once it has seen so many."""
    stores: list[Counting] = []

    def opened(disk: Disk) -> Counting:
        stores.append(Counting(disk))
        return stores[-1]

    def of_objects(events: Iterable[Event], outcomes: Iterable[Outcome]) -> int:
        stores[0].turns.append(count := scores_of(events, outcomes))
        return count

    def of_columns(records: RecordBatch) -> int:
        count = scores_in_columns(records)
        stores[0].turns[-1] += count
        return count

    monkeypatch.setattr(test_durability, "DiskStore", opened)
    monkeypatch.setattr(evaluating, "scores_of", of_objects)
    monkeypatch.setattr(evaluating, "scores_in_columns", of_columns)
    daemon = durable_fake_daemon(Disk(), *(poll(*records) for records in polls), commits=SELDOM)
    running = asyncio.create_task(daemon.daemon.run())
    await until(
        lambda: bool(stores) and sum(map(sum, stores[0].turns_before)) + sum(stores[0].turns) >= scores
    )
    daemon.daemon.stop()
    await running
    (store,) = stores
    assert not any(store.turns), "a stop commits what is left"
    return store.turns_before


@pytest.mark.slow
async def test_no_commit_holds_more_scores_than_two_and_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is due waits for the flush of the one before until there is enough for two."""
    records, scores = 180, MOST
    commits = await commits_of(monkeypatch, records * scores, [scored(i, scores) for i in range(records)])
    assert sum(map(sum, commits)) == records * scores
    assert max(map(sum, commits)) <= 2 * SCORES_PER_COMMIT + COLUMN_SCORES_PER_TURN
    assert len(commits) > 2


@pytest.mark.slow
async def test_labels_of_predictions_with_many_scores_are_taken_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """How many scores a label meets is known when it has met them: a turn takes as many as fit on average."""
    records, scores = 2 * RECORDS_PER_TURN, 256
    predictions = [scored(i, scores) for i in range(records)]
    labels = [label(i, "c0") for i in range(records)]
    commits = await commits_of(monkeypatch, 2 * records * scores, predictions, labels)
    turns = [turn for commit in commits for turn in commit]
    assert sum(turns) == 2 * records * scores
    assert max(turns) <= SCORES_AT_ONCE


def test_records_without_scores_fill_no_commit_by_scores() -> None:
    plain = [Prediction("i", "m", "a", 0)] * RECORDS_PER_TURN
    assert scores_of(plain, []) == 0
