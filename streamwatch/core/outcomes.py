"""Outcomes as columns, which look like a sequence of `Outcome` to whoever wants them one by one."""

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
"""An `Outcome` of the id with the digest (`low`, `high`).

Names are numbers, -1 where there is none; `scores` is a number, too, or -1. From `SEGMENTS_FROM` on it is
that of the segments of a prediction without scores, and so much more.
"""

SEGMENTS_FROM: Final = 1 << 30
"""Numbers of scores lie below. A prediction with scores and segments has the number of its scores."""


_NONE: Final[Mapping[int, int]] = MappingProxyType({})


class OutcomeBatch(Sequence[Outcome]):
    """Outcomes in order.

    Parameters
    ----------
    records
        Of dtype `OUTCOME`, shape (n,).
    models, classes
        Names by number.
    scores
        Scores by number; as `ScoreColumns` they are evaluated in columns, too.
    segments
        Values of segments by number, as `segments_text` writes them; another list as soon as a number stands
        for other values.
    scored_segments
        Number of the segments of predictions with scores, by that of their scores; `ScoreColumns` have it.
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
        """Tell whether nothing must be looked at outcome by outcome."""
        return isinstance(self.scores, ScoreColumns) or not self.scores

    def only(self, chosen: NDArray[np.bool_ | np.int64]) -> OutcomeBatch:
        """Take some outcomes, by mask or position."""
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
