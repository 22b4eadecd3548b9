"""`OutcomeBatch`: outcomes in columns, usable as a sequence of `Outcome` objects, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Outcome
from streamwatch.core.score_columns import ScoreColumns
from streamwatch.core.segments import segments_of
from streamwatch.core.words import taken

OUTCOME: Final = np.dtype(
    [
        ("low", np.uint64),
        ("high", np.uint64),
        ("event_ms", np.int64),
        ("delay_ms", np.int64),
        ("model", np.int32),
        ("true_class", np.int32),
        ("predicted_class", np.int32),
        ("label_at_prediction", np.int32),
        ("scores", np.int32),
        ("assumed", np.int32),
    ],
    align=True,
)
"""One `Outcome`, of the id with the 128-bit digest (`low`, `high`).

`model` and the classes are numbers of names, -1 for none. `scores` is the number of the prediction's scores;
`SEGMENTS_FROM` plus the number of its segments if it has segments and no scores; or -1 with neither.
"""

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
    """

    __slots__ = ("classes", "models", "records", "scored_segments", "scores", "segments")

    def __init__(
        self,
        records: NDArray[np.void],
        models: Sequence[str],
        classes: Sequence[str],
        scores: Mapping[int, dict[str, float]],
        segments: Sequence[str] = (),
        scored_segments: Mapping[int, int] = _NONE,
    ) -> None:
        self.records = records
        self.models = models
        self.classes = classes
        self.scores = scores
        self.segments = segments
        self.scored_segments = scored_segments

    def __len__(self) -> int:
        return len(self.records)

    @property
    def in_columns(self) -> bool:
        """Tell whether the batch can be evaluated in columns, without an object for each outcome."""
        return isinstance(self.scores, ScoreColumns) or not self.scores

    def only(self, chosen: NDArray[np.bool_ | np.int64]) -> OutcomeBatch:
        """Select outcomes by mask, bool (n,), or by positions, int64 (m,)."""
        return self._with(taken(self.records, chosen))

    def _with(self, records: NDArray[np.void]) -> OutcomeBatch:
        return OutcomeBatch(
            records, self.models, self.classes, self.scores, self.segments, self.scored_segments
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
            repeat(None),
            self.segment_values() or repeat(None, len(records)),
        )

    @overload
    def __getitem__(self, index: int) -> Outcome: ...
    @overload
    def __getitem__(self, index: slice) -> OutcomeBatch: ...
    def __getitem__(self, index: int | slice) -> Outcome | OutcomeBatch:
        if isinstance(index, slice):
            return self._with(self.records[index])
        return next(iter(self.only(np.array([index]))))
