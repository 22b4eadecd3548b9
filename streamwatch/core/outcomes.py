"""Outcomes as columns, which look like a sequence of `Outcome` to whoever wants them one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Outcome
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

Names are numbers, -1 where there is none; `scores` is a number, too, or -1.
"""


class OutcomeBatch(Sequence[Outcome]):
    """Outcomes in order.

    Parameters
    ----------
    records
        Of dtype `OUTCOME`, shape (n,).
    models, classes
        Names by number.
    scores
        Scores by number.
    """

    __slots__ = ("classes", "models", "records", "scores")

    def __init__(
        self,
        records: NDArray[np.void],
        models: Sequence[str],
        classes: Sequence[str],
        scores: Mapping[int, dict[str, float]],
    ) -> None:
        self.records = records
        self.models = models
        self.classes = classes
        self.scores = scores

    def __len__(self) -> int:
        return len(self.records)

    def only(self, chosen: NDArray[np.bool_ | np.int64]) -> OutcomeBatch:
        """Take some outcomes, by mask or position."""
        return OutcomeBatch(taken(self.records, chosen), self.models, self.classes, self.scores)

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
        )

    @overload
    def __getitem__(self, index: int) -> Outcome: ...
    @overload
    def __getitem__(self, index: slice) -> OutcomeBatch: ...
    def __getitem__(self, index: int | slice) -> Outcome | OutcomeBatch:
        if isinstance(index, slice):
            return OutcomeBatch(self.records[index], self.models, self.classes, self.scores)
        return next(iter(self.only(np.array([index]))))
