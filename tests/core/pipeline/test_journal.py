"""How many outcomes the journal leaves to be evaluated again, and how many snapshots that takes."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.core.pipeline import journal
from streamwatch.core.pipeline.journal import FEW, MOST_SHARES, ROOM, Journal
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch

LIMIT, EACH = 20_000, 1_000


def outcomes(models: np.ndarray, names: list[str]) -> OutcomeBatch:
    records = np.zeros(len(models), OUTCOME)
    records["model"], records["scores"], records["label_at_prediction"] = models, -1, -1
    return OutcomeBatch(records, names, ["a"])


class Kept:
    """A journal whose overdue models get snapshots at each commit, as a checkpoint does it."""

    def __init__(self, size: int | None = None) -> None:
        self.journal, self.entries, self.covered = Journal(LIMIT), {}, {}
        self.size = size
        self.snapshots = self.commits = 0

    def commit(self, models: np.ndarray, names: list[str]) -> None:
        self.commits += 1
        if self.size is None:
            self.journal.add(outcomes(models, names))
            assert self.journal.close(self.commits)
        else:  # an entry of another size, as one found in a store
            self._noted(self.commits, models, names)
        self.entries[self.commits] = [names[number] for number in models.tolist()]
        due = self.journal.overdue()
        self.journal.forget(due)
        self.snapshots += len(due)
        self.covered |= dict.fromkeys(due, self.commits)
        floor = self.journal.floor(self.commits)
        self.entries = {number: entry for number, entry in self.entries.items() if number >= floor}

    def _noted(self, number: int, models: np.ndarray, names: list[str]) -> None:
        left = [self.covered.get(names[each], 0) < number for each in models.tolist()]
        size = self.size or 8 * len(models)
        self.journal.note(number, outcomes(models[left], names), len(models), size, paired=False)

    def restart(self) -> None:
        """Go on with what a start finds: the entries that were needed."""
        self.journal = Journal(LIMIT)
        for number, entry in self.entries.items():
            names = sorted(set(entry))
            self._noted(number, np.array([names.index(model) for model in entry]), names)

    @property
    def again(self) -> int:
        """Outcomes that no snapshot covers."""
        entries = self.entries.items()
        return sum(self.covered.get(model, 0) < number for number, entry in entries for model in entry)

    @property
    def held(self) -> int:
        return sum(map(len, self.entries.values()))


def test_models_alike_have_a_snapshot_for_each_two_limits_of_outcomes() -> None:
    kept, models = Kept(), 400
    names = [f"m{number}" for number in range(models)]
    draw = np.random.default_rng(0)
    for commit in range(400):
        kept.commit(draw.integers(0, models, EACH), names)
        if commit % 10 == 0:
            assert kept.again == len(kept.journal) <= LIMIT
        assert kept.held < 3 * LIMIT
        if commit == 199:
            kept.snapshots = 0
    assert kept.snapshots == pytest.approx(models * 200 * EACH / (2 * LIMIT), rel=0.1)


def test_the_limit_of_more_models_is_larger_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MODELS", 100)
    kept, models = Kept(), 400
    names = [f"m{number}" for number in range(models)]
    draw = np.random.default_rng(0)
    for commit in range(400):
        kept.commit(draw.integers(0, models, EACH), names)
        assert kept.again == len(kept.journal) <= 4 * LIMIT
        assert kept.held < 3 * 4 * LIMIT
        if commit == 199:
            kept.snapshots = 0
    assert kept.again > 3.8 * LIMIT
    assert kept.snapshots == pytest.approx(models * 200 * EACH / (2 * 4 * LIMIT), rel=0.1)
    for _ in range(100):  # the others fall silent
        kept.commit(draw.integers(0, 50, EACH), names[:50])
    assert kept.again <= kept.journal.limit == LIMIT


def test_as_many_outcomes_as_the_limit_are_kept_where_entries_are_large() -> None:
    kept, models = Kept(size=2 * ROOM * EACH), 400
    names = [f"m{number}" for number in range(models)]
    draw = np.random.default_rng(0)
    for commit in range(200):
        kept.commit(draw.integers(0, models, EACH), names)
        assert kept.held <= 2 * LIMIT + EACH
        if commit == 99:
            kept.snapshots = 0
    assert kept.snapshots == pytest.approx(models * 100 * EACH / LIMIT, rel=0.1)


def test_busy_models_in_turn_do_not_let_quiet_ones_keep_every_entry() -> None:
    kept = Kept()
    names = [f"m{number}" for number in range(300)]
    kept.commit(np.arange(300), names)
    for busy in range(200):
        for _ in range(21):
            kept.commit(np.full(EACH, busy), names)
            assert len(kept.journal) < 1.25 * LIMIT + 2 * EACH
    assert kept.held * 8 < 3 * ROOM * LIMIT


def test_a_smaller_limit_is_reached_over_several_commits() -> None:
    kept, models = Kept(), 2_000
    names = [f"m{number}" for number in range(models)]
    draw = np.random.default_rng(0)
    for number in range(1, 6):
        found = outcomes(draw.integers(0, models, LIMIT), names)
        kept.journal.note(number, found, LIMIT, 8 * LIMIT, paired=False)
    kept.commits = 5
    most = FEW + MOST_SHARES * (models * EACH // LIMIT + 2)
    while len(kept.journal) > LIMIT:
        before = kept.snapshots
        kept.commit(draw.integers(0, models, EACH), names)
        assert kept.snapshots - before <= most
        assert kept.commits < 40


def test_starts_do_not_let_a_slow_model_keep_every_entry_of_those_that_retire() -> None:
    size = 7 * EACH
    kept = Kept(size=size)
    kept.commit(np.zeros(EACH, int), ["slow"])
    for day in range(1, 80):
        kept.journal.forget([f"m{day - 1}"])  # it has retired
        kept.covered[f"m{day - 1}"] = kept.commits
        for _ in range(LIMIT // 4 // EACH):
            kept.commit(np.zeros(EACH, int), [f"m{day}"])
        assert size * len(kept.entries) <= 1.1 * ROOM * LIMIT
        kept.restart()
    assert kept.snapshots > 1  # the journal was shortened


@pytest.mark.parametrize("models", [1, 30])
def test_entries_of_single_outcomes_are_not_as_many_as_the_limit(
    models: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 200
    monkeypatch.setattr(journal, "MOST_ENTRIES", most)
    kept = Kept()
    names = [f"m{number}" for number in range(models)]
    for commit in range(2_000):
        kept.commit(np.array([commit % models]), names)
        assert len(kept.entries) <= 2 * most
    assert models <= kept.snapshots < 2_000 / 4


def test_a_model_that_retires_twice_between_two_commits_is_forgotten_once() -> None:
    journal = Journal(LIMIT)
    journal.add(outcomes(np.array([0, 1, 1]), ["m", "n"]))
    journal.close(1)
    journal.forget(["n", "m", "n"])
    assert len(journal) == 0
    assert journal.floor(1) == 2
