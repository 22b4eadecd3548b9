"""`OutcomeBatch`: outcomes in columns, which is also a sequence of `Outcome` objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records.batch import taken
from streamwatch.core.records.events import CARRIED, Outcome, PairedAnswer, carried_values, segments_of
from streamwatch.core.records.scores import NO_LISTS, ScoreLists

OUTCOME: Final = np.dtype(
    [
        ("low", np.uint64),
        ("high", np.uint64),
        ("event_ms", np.int64),
        ("delay_ms", np.int64),
        ("resolved_ms", np.int64),
        ("waited_ms", np.int64),
        ("model", np.int32),
        ("true_class", np.int32),
        ("predicted_class", np.int32),
        ("label_at_prediction", np.int32),
        ("scores", np.int32),
        ("assumed", np.int32),
        ("last_class", np.int32),
        ("made", np.uint32),
        ("carried", np.int32, (len(CARRIED),)),
    ],
    align=True,
)
"""One `Outcome` in 88 bytes, of the id with the 128-bit digest (`low`, `high`).

`model` and the classes are numbers of names, -1 for none. `scores` is the number of the prediction's scores
and of its segments, stored with them; `SEGMENTS_FROM` plus the number of its segments if it has segments and
no scores; or -1 with neither.
`last_class` is 1 + the number of the class predicted last, while `predicted_class` is the first
(`join.conflicts: both`); 0 if the prediction was never revised. `carried` are the numbers of
`core.records.events.CARRIED`.
"""

Pairs = NDArray[np.int32]
"""Pairs of outcomes, shape (m, `PAIR_COLUMNS`): position of the outcome in its batch, ascending; number of
the partner's model; number of the class that the partner predicted; and the partner's `Outcome.made` at that
point, a uint32 of which the column holds the bits."""
PAIR_COLUMNS: Final = 4
NO_PAIRS: Final[Pairs] = np.zeros((0, PAIR_COLUMNS), np.int32)

SEGMENTS_FROM: Final = 1 << 30
"""Smallest value of the column `scores` that stands for segments; numbers of scores are smaller."""


class OutcomeBatch(Sequence[Outcome]):
    """Outcomes in the order in which they are evaluated.

    Parameters
    ----------
    records
        One row for each outcome: dtype `OUTCOME`, shape (n,).
    models, classes
        Names by number.
    scores
        Scores of predictions by number; `beside` has the numbers of their segments.
    segments
        Values of segments by number, as `segments_text` writes them. A number stands for the same values
        within one list object; a number that is used again comes with a new list.
    pairs
        Predictions of compared models on the same ids; None without any.
    """

    __slots__ = ("classes", "models", "pairs", "records", "scores", "segments")

    def __init__(
        self,
        records: NDArray[np.void],
        models: Sequence[str],
        classes: Sequence[str],
        scores: ScoreLists = NO_LISTS,
        segments: Sequence[str] = (),
        pairs: Pairs | None = None,
    ) -> None:
        self.records = records
        self.models = models
        self.classes = classes
        self.scores = scores
        self.segments = segments
        self.pairs = pairs if pairs is not None and len(pairs) else None

    def __len__(self) -> int:
        return len(self.records)

    @property
    def scored(self) -> NDArray[np.int64]:
        """Positions of the outcomes whose predictions have scores."""
        if not len(self.scores):
            return np.empty(0, np.int64)
        numbers = self.records["scores"]
        return np.flatnonzero((numbers >= 0) & (numbers < SEGMENTS_FROM))

    def own_scores(self) -> tuple[NDArray[np.int64], ScoreLists]:
        """Return the positions of the outcomes with scores, and their scores in this order."""
        scored = self.scored
        return scored, self.scores.only(self.records["scores"][scored])

    def only(self, chosen: NDArray[np.bool_ | np.int64]) -> OutcomeBatch:
        """Select outcomes by mask, bool (n,), or by positions, int64 (m,)."""
        return self._with(taken(self.records, chosen), self._pairs_of(chosen))

    def paired(self) -> OutcomeBatch:
        """Select the outcomes that have pairs."""
        positions = [] if self.pairs is None else np.unique(self.pairs[:, 0])
        return self.only(np.array(positions, np.int64))

    def _pairs_of(self, chosen: NDArray[np.bool_ | np.int64]) -> Pairs | None:
        """Select the pairs of chosen outcomes, with their positions among these."""
        return None if self.pairs is None else pairs_at(self.pairs, chosen, len(self.records))

    def _with(self, records: NDArray[np.void], pairs: Pairs | None) -> OutcomeBatch:
        return OutcomeBatch(records, self.models, self.classes, self.scores, self.segments, pairs)

    def segment_numbers(self) -> NDArray[np.int32] | None:
        """Return the number of each outcome's segments, int32 (n,), -1 without; None if none can have any."""
        if not self.segments:
            return None
        numbers = self.records["scores"]
        found = np.where(numbers >= SEGMENTS_FROM, numbers - SEGMENTS_FROM, -1).astype(np.int32)
        scored = self.scored
        found[scored] = self.scores.beside[numbers[scored]]
        return found

    def segment_values(self) -> Sequence[dict[str, str] | None] | None:
        """Values of each outcome's segments by their names; None if no outcome has any."""
        numbers = self.segment_numbers()
        if numbers is None or numbers.max(initial=-1) < 0:
            return None
        texts = self.segments
        known: dict[int, dict[str, str] | None] = {
            number: segments_of(texts[number]) for number in np.unique(numbers).tolist() if number >= 0
        }
        known[-1] = None
        return list(map(known.__getitem__, numbers.tolist()))

    def __iter__(self) -> Iterator[Outcome]:
        models, classes, records = self.models, self.classes, self.records
        scores: Iterable[dict[str, float] | None] = repeat(None)
        if len(self.scores):
            scored = self.scored
            listed: list[dict[str, float] | None] = [None] * len(records)
            named = self.scores.by_class(records["scores"][scored], classes)
            for position, each in zip(scored.tolist(), named, strict=True):
                listed[position] = each
            scores = listed
        return map(
            Outcome,
            [models[number] for number in records["model"].tolist()],
            [classes[number] for number in records["true_class"].tolist()],
            [classes[number] for number in records["predicted_class"].tolist()],
            records["event_ms"].tolist(),
            records["delay_ms"].tolist(),
            (records["assumed"] != 0).tolist(),
            scores,
            [None if number < 0 else classes[number] for number in records["label_at_prediction"].tolist()],
            repeat(None) if self.pairs is None else self._answers(self.pairs),
            self.segment_values() or repeat(None, len(records)),
            [None if number == 0 else classes[number - 1] for number in records["last_class"].tolist()],
            records["made"].tolist(),
            records["resolved_ms"].tolist(),
            records["waited_ms"].tolist(),
            *carried_values(records["carried"]),
        )

    def _answers(self, pairs: Pairs) -> Iterator[tuple[PairedAnswer, ...] | None]:
        answers: dict[int, list[PairedAnswer]] = {}
        positions: list[int] = pairs[:, 0].tolist()
        partners: list[int] = pairs[:, 1].tolist()
        classes: list[int] = pairs[:, 2].tolist()
        made: list[int] = pairs[:, 3].astype(np.uint32).tolist()
        for position, partner, answer, of_partner in zip(positions, partners, classes, made, strict=True):
            pair = PairedAnswer(self.models[partner], self.classes[answer], of_partner)
            answers.setdefault(position, []).append(pair)
        return (tuple(answers[at]) if at in answers else None for at in range(len(self.records)))

    @overload
    def __getitem__(self, index: int) -> Outcome: ...
    @overload
    def __getitem__(self, index: slice) -> OutcomeBatch: ...
    def __getitem__(self, index: int | slice) -> Outcome | OutcomeBatch:
        if isinstance(index, slice):
            if self.pairs is None:
                return self._with(self.records[index], None)
            return self.only(np.arange(len(self.records))[index])
        return next(iter(self.only(np.array([index]))))


def pairs_at(pairs: Pairs, chosen: NDArray[np.bool_ | np.int64], outcomes: int) -> Pairs:
    """Select the pairs of some outcomes of a batch, with their positions among these.

    Parameters
    ----------
    pairs
        Pairs of the batch.
    chosen
        Mask, bool (n,), or different positions, int64 (m,).
    outcomes
        Number of outcomes n of the batch.
    """
    positions = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
    index = np.full(outcomes, -1, np.int32)
    index[positions] = np.arange(len(positions), dtype=np.int32)
    found = pairs[index[pairs[:, 0]] >= 0]
    found[:, 0] = index[found[:, 0]]
    return found[np.argsort(found[:, 0], kind="stable")]


NO_OUTCOMES: Final = OutcomeBatch(np.zeros(0, OUTCOME), (), ())


def moved(pairs: Pairs, start: int) -> Pairs:
    """Add `start` to the positions of the outcomes of pairs."""
    found = pairs.copy()
    found[:, 0] += start
    return found


def joined_pairs(parts: Sequence[OutcomeBatch]) -> Pairs | None:
    """Join the pairs of consecutive batches with common names; None if no batch has any."""
    found: list[Pairs] = []
    start = 0
    for part in parts:
        if part.pairs is not None:
            found.append(moved(part.pairs, start))
        start += len(part)
    return np.concatenate(found) if found else None
