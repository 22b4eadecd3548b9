"""Outcomes as they are kept between snapshots, in order.

A snapshot of every touched model at every commit is a hundred times what the outcomes themselves take. So a
commit writes its outcomes; a model's snapshot replaces its share of them when the journal has grown long;
and a start evaluates what is left once more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from streamwatch.core.commit.outcome_columns import models_of, read, written
from streamwatch.core.events import Outcome
from streamwatch.core.outcomes import OutcomeBatch

_ALL = 2**62
"""More outcomes than one entry has."""


class JournalPosition(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Journal position up to which a model's snapshot covers it."""

    commit: int
    position: int = _ALL
    """Outcomes of that commit's entry; by default all of them."""


COMPARISONS = ""
"""Who needs the entries that hold pairs of outcomes: all comparisons together. No model has this name."""


class Journal:
    """Collects the outcomes of one commit, and knows which entries are still needed for whom.

    Parameters
    ----------
    limit
        Outcomes beyond which snapshots are asked for.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[Sequence[Outcome]] = []
        self._open = 0
        self._since: dict[str, int] = {}  # first entry that a model needs; ascending, as entries come
        self._sizes: deque[tuple[int, int]] = deque()  # number and outcomes of every entry needed
        self._total = 0

    def __len__(self) -> int:
        """Outcomes in the entries that are needed."""
        return self._total

    @property
    def open(self) -> int:
        """Outcomes that wait for the next entry."""
        return self._open

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Take in what a batch evaluated."""
        if len(outcomes):
            self._parts.append(outcomes if isinstance(outcomes, OutcomeBatch) else list(outcomes))
            self._open += len(outcomes)

    def close(self, number: int) -> bytes:
        """The entry of commit `number`, with everything added since the last; empty if that is nothing."""
        parts, self._parts, self._open = self._parts, [], 0
        if not parts:
            return b""
        paired = any(
            outcome.pairs for part in parts if not isinstance(part, OutcomeBatch) for outcome in part
        )
        models = {model: None for part in parts for model in models_of(part)}
        self._note(number, list(models), sum(map(len, parts)), paired=paired)
        return written(parts)

    def note(self, number: int, outcomes: Sequence[Outcome], *, paired: bool) -> None:
        """Remember what an entry has that is in the store; `paired`: the comparisons need it."""
        self._note(number, models_of(outcomes), len(outcomes), paired=paired)

    def _note(self, number: int, models: Sequence[str], outcomes: int, *, paired: bool) -> None:
        for model in models:
            self._since.setdefault(model, number)
        if paired:
            self._since.setdefault(COMPARISONS, number)
        self._sizes.append((number, outcomes))
        self._total += outcomes

    def forget(self, model: str) -> None:
        """The model needs no entry up to now: it has a snapshot, or has retired."""
        self._since.pop(model, None)

    def overdue(self) -> list[str]:
        """Models whose snapshots would shorten the journal, those that need its oldest entries first.

        `COMPARISONS` among them stands for all comparisons.
        As many per call as keep the length near its limit, in the proportion of what the last entry added.
        """
        if self._total <= self._limit:
            return []
        added = self._sizes[-1][1]
        number = -(-len(self._since) * added // self._limit) + 1
        return [model for model, _ in zip(self._since, range(number), strict=False)]

    def floor(self, number: int) -> int:
        """First entry that is needed, after commit `number`; what lies before it is let go."""
        floor = next(iter(self._since.values()), number + 1)
        while self._sizes and self._sizes[0][0] < floor:
            self._total -= self._sizes.popleft()[1]
        return floor


def unfolded_pairs(
    journal: Sequence[tuple[int, bytes]], behind: JournalPosition
) -> Iterator[tuple[int, list[Outcome]]]:
    """Every later entry's number and its outcomes that are paired."""
    for number, value in journal:
        if number > behind.commit:
            entry = read(value)
            several = () if isinstance(entry, OutcomeBatch) else entry
            yield number, [outcome for outcome in several if outcome.pairs]


def unfolded(
    journal: Sequence[tuple[int, bytes]], behind: Mapping[str, JournalPosition]
) -> Iterator[tuple[int, Sequence[Outcome]]]:
    """Every entry's number, and its outcomes that their models do not have behind them."""
    nowhere = JournalPosition(-1, -1)
    for number, value in journal:
        entry = read(value)
        places = {model: behind.get(model, nowhere) for model in models_of(entry)}
        first = {
            model: _ALL if place.commit > number else place.position if place.commit == number else -1
            for model, place in places.items()
        }
        if isinstance(entry, OutcomeBatch):
            wanted = np.array([first.get(model, -1) for model in entry.models], np.int64)
            chosen = np.arange(len(entry)) >= wanted[entry.records["model"]]
            yield number, entry if chosen.all() else entry.only(chosen)
        else:
            yield (
                number,
                [outcome for position, outcome in enumerate(entry) if position >= first[outcome.model]],
            )
