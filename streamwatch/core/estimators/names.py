"""Names of models and classes, and the small integers that stand for them in the kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.scores import NO_SCORES, Scores
from streamwatch.core.events import Outcome
from streamwatch.core.outcomes import OutcomeBatch

OTHER = "__other__"
"""Name under which classes beyond `max_classes` are reported."""


class Classes(dict[str, int]):
    """Local index of each class of a model, in order of first appearance.

    `limit` for classes beyond the limit.

    Looking up a new class adds it. Classes beyond the limit are not stored, so a stream of ever new classes
    takes no memory.
    """

    __slots__ = ("limit",)

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def __missing__(self, name: str) -> int:
        index = len(self)
        if index >= self.limit:
            return self.limit
        self[name] = index
        return index

    def score_indices(self, scores: Mapping[str, float]) -> list[tuple[int, float]]:
        """Local indices and scores of the classes within the limit; adds classes that are new."""
        indexed = [(self[name], score) for name, score in scores.items()]
        return [(index, score) for index, score in indexed if index < self.limit]

    def names(self, folded: bool) -> list[str]:  # noqa: FBT001 - one reader
        """Names of all classes by index, plus, if `folded`, an unused name for those beyond the limit."""
        names = list(self)
        if folded:
            other = OTHER
            while other in self:
                other += "_"
            names.append(other)
        return names


@dataclass(frozen=True, slots=True)
class Batch:
    """Outcomes as the kernel takes them: parallel arrays (int32, times int64), and the originals."""

    outcomes: Sequence[Outcome]
    rows: NDArray[np.int32]
    true_class: NDArray[np.int32]
    predicted_class: NDArray[np.int32]
    label_at_prediction: NDArray[np.int32]
    """Label known at prediction: `limit + 1` if no class of the model so far, -1 if none was known."""
    event_ms: NDArray[np.int64]
    delay_ms: NDArray[np.int64]
    assumed: NDArray[np.bool_]
    scores: Scores = NO_SCORES

    def only(self, chosen: NDArray[np.bool_]) -> Batch:
        """Select outcomes by mask, keeping their order and dropping their scores."""
        if chosen.all():
            return self
        outcomes = self.outcomes
        return Batch(
            outcomes.only(chosen)
            if isinstance(outcomes, OutcomeBatch)
            else [outcomes[position] for position in np.flatnonzero(chosen).tolist()],
            self.rows[chosen],
            self.true_class[chosen],
            self.predicted_class[chosen],
            self.label_at_prediction[chosen],
            self.event_ms[chosen],
            self.delay_ms[chosen],
            self.assumed[chosen],
        )

    def ordinals(self, counted: Sequence[int]) -> list[int]:
        """Compute each outcome's 1-based number within its model.

        `counted` holds, for each outcome, the number of outcomes of its model before the batch.
        """
        rows = self.rows.tolist()
        now = dict(zip(rows, counted, strict=True))
        ordinals: list[int] = []
        for row in rows:
            now[row] += 1
            ordinals.append(now[row])
        return ordinals


def score_columns(positions: Sequence[int], scored: Mapping[int, list[tuple[int, float]]]) -> Scores:
    """Build `Scores` for the outcomes at `positions`; those missing in `scored` have no scores."""
    if not scored:
        return NO_SCORES
    ragged = [scored.get(position, []) for position in positions]
    flat = [entry for entries in ragged for entry in entries]
    return Scores(
        offsets=np.cumsum([0, *map(len, ragged)], dtype=np.int64),
        classes=np.array([index for index, _ in flat], np.int32),
        values=np.array([score for _, score in flat], np.float64),
    )


def fold_overflow(batch: Batch, limit: int) -> int:
    """Give differing classes beyond the limit differing indices, in place.

    Return the number of such outcomes.

    Index `limit` stands for any class beyond the limit, as the true class or as a prediction equal to it. If
    true and predicted class are both beyond the limit and differ, the prediction gets `limit + 1`, so that
    the outcome is not a hit. A label known at prediction that equals a true class beyond the limit gets
    `limit`.
    """
    beyond = batch.true_class == limit
    for position in np.flatnonzero(beyond & (batch.label_at_prediction > limit)).tolist():
        outcome = batch.outcomes[position]
        if outcome.true_class == outcome.label_at_prediction:
            batch.label_at_prediction[position] = limit
    both = np.flatnonzero(beyond & (batch.predicted_class == limit))
    for position in both.tolist():
        outcome = batch.outcomes[position]
        if outcome.true_class != outcome.predicted_class:
            batch.predicted_class[position] = limit + 1
    return int(np.count_nonzero(beyond | (batch.predicted_class >= limit)))
