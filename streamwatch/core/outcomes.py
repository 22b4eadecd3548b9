"""`OutcomeBatch`: outcomes in columns, usable as a sequence of `Outcome` objects, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Outcome, PairedAnswer, probability_of, requested_of, segments_of
from streamwatch.core.records import taken

# Scores of outcomes in columns, one per class, with the interface of a mapping from number to scores.


class ScoreColumns(Mapping[int, dict[str, float]]):
    """Scores by number, which is the index of their row; a row without scores is not in the mapping.

    Parameters
    ----------
    names
        Distinct class names, in the order in which a prediction lists them; shape (k,).
    table
        float64 (n, k): score of each class, NaN where a prediction has none.
    segments
        int32 (n,): number of the segments of the prediction, -1 without any; None if no prediction has any.
    """

    __slots__ = ("names", "present", "scored", "segments", "table")

    def __init__(
        self, names: Sequence[str], table: NDArray[np.float64], segments: NDArray[np.int32] | None = None
    ) -> None:
        self.names = tuple(names)
        self.table = table
        self.segments = np.full(len(table), -1, np.int32) if segments is None else segments
        self.present: NDArray[np.bool_] = ~np.isnan(table)
        """Shape (n, k): whether a row has a score for a class."""
        self.scored: NDArray[np.bool_] = np.asarray(self.present.any(axis=1))
        """Shape (n,): whether a row has any score."""

    def __getitem__(self, number: int) -> dict[str, float]:
        if not 0 <= number < len(self.scored) or not self.scored[number]:
            raise KeyError(number)
        row, there = self.table[number].tolist(), self.present[number].tolist()
        return {name: score for name, score, given in zip(self.names, row, there, strict=True) if given}

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.scored).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.scored))


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
        ("sampling", np.int32),
    ],
    align=True,
)
"""One `Outcome` in 88 bytes, of the id with the 128-bit digest (`low`, `high`).

`model` and the classes are numbers of names, -1 for none. `scores` is the number of the prediction's scores;
`SEGMENTS_FROM` plus the number of its segments if it has segments and no scores; or -1 with neither.
`last_class` is 1 + the number of the class that was predicted last, beside `predicted_class`, the first
(`join.conflicts: both`); 0 if the prediction was never revised. `sampling` is the number of
`core.label_sampling`, 0 without a probability.
"""

Pairs = NDArray[np.int32]
"""Pairs of outcomes, shape (m, 3): position of the outcome in its batch, ascending; number of the partner's
model; number of the class that the partner predicted."""

SEGMENTS_FROM: Final = 1 << 30
"""Least value of the column `scores` that stands for segments; numbers of scores are smaller."""


_NONE: Final[Mapping[int, int]] = MappingProxyType({})


class OutcomeBatch(Sequence[Outcome]):
    """Outcomes in the order in which they are evaluated.

    Parameters
    ----------
    records
        One row for each outcome: dtype `OUTCOME`, shape (n,).
    models, classes
        Names by number.
    scores
        Scores by number. Given as `ScoreColumns`, they are evaluated without making objects.
    segments
        Values of segments by number, as `segments_text` writes them. A number never changes its meaning
        within one list object: when it is used anew, there is a new list.
    scored_segments
        Number of segments by number of scores, for predictions that have both; not needed with
        `ScoreColumns`, which carry it.
    pairs
        Predictions of compared models on the same ids; None without any.
    """

    __slots__ = ("classes", "models", "pairs", "records", "scored_segments", "scores", "segments")

    def __init__(
        self,
        records: NDArray[np.void],
        models: Sequence[str],
        classes: Sequence[str],
        scores: Mapping[int, dict[str, float]],
        segments: Sequence[str] = (),
        scored_segments: Mapping[int, int] = _NONE,
        pairs: Pairs | None = None,
    ) -> None:
        self.records = records
        self.models = models
        self.classes = classes
        self.scores = scores
        self.segments = segments
        self.scored_segments = scored_segments
        self.pairs = pairs if pairs is not None and len(pairs) else None

    def __len__(self) -> int:
        return len(self.records)

    @property
    def in_columns(self) -> bool:
        """Tell whether the batch can be evaluated in columns, without an object for each outcome."""
        return isinstance(self.scores, ScoreColumns) or not self.scores

    def only(self, chosen: NDArray[np.bool_ | np.int64]) -> OutcomeBatch:
        """Select outcomes by mask, bool (n,), or by positions, int64 (m,)."""
        return self._with(taken(self.records, chosen), self._pairs_of(chosen))

    def paired(self) -> OutcomeBatch:
        """Select the outcomes that have pairs."""
        positions = [] if self.pairs is None else np.unique(self.pairs[:, 0])
        return self.only(np.array(positions, np.int64))

    def _pairs_of(self, chosen: NDArray[np.bool_ | np.int64]) -> Pairs | None:
        """Pairs of chosen outcomes, with their positions among these."""
        return None if self.pairs is None else pairs_at(self.pairs, chosen, len(self.records))

    def _with(self, records: NDArray[np.void], pairs: Pairs | None) -> OutcomeBatch:
        return OutcomeBatch(
            records, self.models, self.classes, self.scores, self.segments, self.scored_segments, pairs
        )

    def segment_numbers(self) -> NDArray[np.int32] | None:
        """Number of each outcome's segments, shape (n,), -1 without any; None if no outcome can have some."""
        if not self.segments:
            return None
        numbers = self.records["scores"]
        found = np.where(numbers >= SEGMENTS_FROM, numbers - SEGMENTS_FROM, -1).astype(np.int32)
        columns = self.scores if isinstance(self.scores, ScoreColumns) else None
        if columns is None and not self.scored_segments:
            return found
        scored = np.flatnonzero((numbers >= 0) & (numbers < SEGMENTS_FROM))
        if columns is not None:
            found[scored] = columns.segments[numbers[scored]]
        else:
            get = self.scored_segments.get
            found[scored] = [get(number, -1) for number in numbers[scored].tolist()]
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
        scores = map(self.scores.get, records["scores"].tolist()) if self.scores else repeat(None)
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
            *_sampling(records["sampling"]),
        )

    def _answers(self, pairs: Pairs) -> Iterator[tuple[PairedAnswer, ...] | None]:
        answers: dict[int, list[PairedAnswer]] = {}
        positions: list[int] = pairs[:, 0].tolist()
        partners: list[int] = pairs[:, 1].tolist()
        classes: list[int] = pairs[:, 2].tolist()
        for position, partner, answer in zip(positions, partners, classes, strict=True):
            pair = PairedAnswer(self.models[partner], self.classes[answer])
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


def _sampling(column: NDArray[np.int32]) -> tuple[Iterable[float | None], Iterable[bool | None]]:
    """Probabilities with which labels were asked for, and whether they were."""
    if not column.any():
        return repeat(None), repeat(None)
    numbers: list[int] = column.tolist()
    return map(probability_of, numbers), map(requested_of, numbers)


def pairs_at(pairs: Pairs, chosen: NDArray[np.bool_ | np.int64], outcomes: int) -> Pairs:
    """Pairs of some outcomes of a batch, with their positions among these.

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
    place = np.full(outcomes, -1, np.int32)
    place[positions] = np.arange(len(positions), dtype=np.int32)
    found = pairs[place[pairs[:, 0]] >= 0]
    found[:, 0] = place[found[:, 0]]
    return found[np.argsort(found[:, 0], kind="stable")]


def joined_pairs(parts: Sequence[OutcomeBatch]) -> Pairs | None:
    """Join the pairs of consecutive batches with common names."""
    found: list[Pairs] = []
    start = 0
    for part in parts:
        if part.pairs is not None:
            found.append(part.pairs + np.array([start, 0, 0], np.int32))
        start += len(part)
    return np.concatenate(found) if found else None
