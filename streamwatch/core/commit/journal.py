"""`Journal`: the outcomes since the models' last snapshots, in order, one entry per commit.

Snapshots of all touched models at every commit would take a hundred times the bytes of the outcomes. So a
commit writes its outcomes as a journal entry. When the journal has grown long, snapshots of some models
replace their outcomes in it; a start evaluates the outcomes that are left once more.
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
    """Collects the outcomes of the next commit, and tracks which entries each model still needs.

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
        """Outcomes for the next entry."""
        return self._open

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Add the outcomes that a batch evaluated to the next entry."""
        if len(outcomes):
            self._parts.append(outcomes if isinstance(outcomes, OutcomeBatch) else list(outcomes))
            self._open += len(outcomes)

    def close(self, number: int) -> bytes:
        """Return the entry of commit `number`: all outcomes added since the last call; empty without any."""
        parts, self._parts, self._open = self._parts, [], 0
        if not parts:
            return b""
        paired = any(map(has_pairs, parts))
        models = {model: None for part in parts for model in models_of(part)}
        self._note(number, list(models), sum(map(len, parts)), paired=paired)
        return written(parts)

    def note(self, number: int, outcomes: Sequence[Outcome], *, paired: bool) -> None:
        """Register an entry found in the store; `paired` tells that comparisons of models need it."""
        self._note(number, models_of(outcomes), len(outcomes), paired=paired)

    def _note(self, number: int, models: Sequence[str], outcomes: int, *, paired: bool) -> None:
        for model in models:
            self._since.setdefault(model, number)
        if paired:
            self._since.setdefault(COMPARISONS, number)
        self._sizes.append((number, outcomes))
        self._total += outcomes

    def forget(self, model: str) -> None:
        """Note that a model needs none of the present entries: it has a new snapshot, or has retired."""
        self._since.pop(model, None)

    def overdue(self) -> list[str]:
        """Models to be snapshot so that the journal gets shorter, those that need its oldest entries first.

        `COMPARISONS` among them stands for all comparisons.
        Their number keeps the journal near its limit: it is in proportion to what the last entry added.
        """
        if self._total <= self._limit:
            return []
        added = self._sizes[-1][1]
        number = -(-len(self._since) * added // self._limit) + 1
        return [model for model, _ in zip(self._since, range(number), strict=False)]

    def floor(self, number: int) -> int:
        """Return the first entry still needed after commit `number`, and forget all entries before it."""
        floor = next(iter(self._since.values()), number + 1)
        while self._sizes and self._sizes[0][0] < floor:
            self._total -= self._sizes.popleft()[1]
        return floor


def unfolded_pairs(
    journal: Sequence[tuple[int, bytes]], behind: JournalPosition
) -> Iterator[tuple[int, Sequence[Outcome]]]:
    """Yield number and paired outcomes of every entry that the comparisons' snapshot does not cover."""
    for number, value in journal:
        if number > behind.commit:
            entry = read(value)
            in_columns = isinstance(entry, OutcomeBatch)
            yield number, entry.paired() if in_columns else [outcome for outcome in entry if outcome.pairs]


def has_pairs(outcomes: Sequence[Outcome]) -> bool:
    """Tell whether comparisons of models need any of these outcomes."""
    if isinstance(outcomes, OutcomeBatch):
        return outcomes.pairs is not None
    return any(outcome.pairs for outcome in outcomes)


def unfolded(
    journal: Sequence[tuple[int, bytes]], behind: Mapping[str, JournalPosition]
) -> Iterator[tuple[int, Sequence[Outcome]]]:
    """Yield every entry's number, with its outcomes that are newer than the snapshots of their models."""
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
