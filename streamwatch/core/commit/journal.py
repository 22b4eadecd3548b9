"""Outcomes as they are kept between snapshots, in order.

A snapshot of every touched model at every commit is a hundred times what the outcomes themselves take. So a
commit writes its outcomes; a model's snapshot replaces its share of them when the journal has grown long;
and a start evaluates what is left once more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from streamwatch.core.events import Outcome


class JournalPosition(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Journal position up to which a model's snapshot covers it."""

    commit: int
    position: int = 2**62
    """Outcomes of that commit's entry; by default all of them."""


COMPARISONS = ""
"""Who needs the entries that hold pairs of outcomes: all comparisons together. No model has this name."""
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Outcome])


class Journal:
    """Collects the outcomes of one commit, and knows which entries are still needed for whom.

    Parameters
    ----------
    limit
        Outcomes beyond which snapshots are asked for.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._outcomes: list[Outcome] = []
        self._since: dict[str, int] = {}  # first entry that a model needs; ascending, as entries come
        self._sizes: deque[tuple[int, int]] = deque()  # number and outcomes of every entry needed
        self._total = 0

    def __len__(self) -> int:
        """Outcomes in the entries that are needed."""
        return self._total

    @property
    def open(self) -> int:
        """Outcomes that wait for the next entry."""
        return len(self._outcomes)

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Take in what a batch evaluated."""
        self._outcomes += outcomes

    def close(self, number: int) -> bytes:
        """The entry of commit `number`, with everything added since the last; empty if that is nothing."""
        if not self._outcomes:
            return b""
        written = _ENCODER.encode(self._outcomes)
        self.note(number, self._outcomes, paired=any(outcome.pairs for outcome in self._outcomes))
        self._outcomes = []
        return written

    def note(self, number: int, outcomes: Sequence[Outcome], *, paired: bool) -> None:
        """Remember what an entry has that is in the store; `paired`: the comparisons need it."""
        for model in {outcome.model: None for outcome in outcomes}:
            self._since.setdefault(model, number)
        if paired:
            self._since.setdefault(COMPARISONS, number)
        self._sizes.append((number, len(outcomes)))
        self._total += len(outcomes)

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
    for number, written in journal:
        if number > behind.commit:
            yield number, [outcome for outcome in _DECODER.decode(written) if outcome.pairs]


def unfolded(
    journal: Sequence[tuple[int, bytes]], behind: Mapping[str, JournalPosition]
) -> Iterator[tuple[int, list[Outcome]]]:
    """Every entry's number, and its outcomes that their models do not have behind them."""
    nowhere = JournalPosition(-1, -1)
    for number, written in journal:
        entry = _DECODER.decode(written)
        places = {outcome.model: behind.get(outcome.model, nowhere) for outcome in entry}
        last = {model: place.position if place.commit == number else -1 for model, place in places.items()}
        done = {model for model, place in places.items() if place.commit > number}
        yield (
            number,
            [
                outcome
                for position, outcome in enumerate(entry)
                if outcome.model not in done and position >= last[outcome.model]
            ],
        )
