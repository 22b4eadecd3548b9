"""Conversion of outcomes in arrays or columns of frames to batches for the estimators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch
from streamwatch.history.columns import Numbers, scores_of, segments_of, times_of

# `Outcome.made` of outcomes without a join: as many predictions were made as there are outcomes.


_MADE_BITS: Final = 2**32 - 1


class OutcomeCounts:
    """Counts the outcomes of each model."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def next(self, model: str) -> int:
        """Count a model's next outcome, and return its number, from 1, modulo 2³²."""
        self._counts[model] = number = self._counts.get(model, 0) + 1
        return number & _MADE_BITS

    def following(self, models: NDArray[np.int32], names: Sequence[str]) -> NDArray[np.uint32]:
        """Count the next outcomes, whose models are indices in `names`; return their numbers, shape (n,)."""
        numbers = np.empty(len(models), np.uint32)
        order = np.argsort(models, kind="stable")
        counts = np.bincount(models, minlength=1)
        start = 0
        for model in np.flatnonzero(counts).tolist():
            before, count = self._counts.get(names[model], 0), int(counts[model])
            running = before + 1 + np.arange(count)
            numbers[order[start : start + count]] = running & _MADE_BITS
            self._counts[names[model]] = before + count
            start += count
        return numbers


class OutcomeArrays:
    """Builds consecutive batches, in which models and classes keep their numbers.

    Parameters
    ----------
    by_segment
        Whether outcomes may have segments.
    """

    def __init__(self, *, by_segment: bool) -> None:
        self._by_segment = by_segment
        self._models = Numbers()
        self._classes = Numbers()
        self._counts = OutcomeCounts()
        self._clock_ms = 0
        self.outcomes = 0
        """Number of outcomes in all batches so far."""

    def batch(
        self,
        y_true: Iterable[Any],
        y_pred: Iterable[Any],
        *,
        model: str | Iterable[Any],
        event_ms: Iterable[Any] | None,
        scores: Any,
        segments: Any,
    ) -> OutcomeBatch:
        """Build the next batch; arguments are those of `Evaluator.update`.

        Raises
        ------
        ValueError
            If lengths differ, a class or model is no text, whole number or boolean, a score is no
            probability, or outcomes have segments although `by_segment` is false.
        """
        true, predicted = self._classes.of(y_true, "y_true"), self._classes.of(y_pred, "y_pred")
        count = len(true)
        if len(predicted) != count:
            raise ValueError(f"y_true and y_pred must be equally long, got {count} and {len(predicted)}")
        names = [model] if isinstance(model, str) else model
        models = self._models.of(names, "model")
        if not isinstance(model, str) and len(models) != count:
            raise ValueError(f"model must be a name, or one per outcome ({count}), got {len(models)}")
        records = np.zeros(count, OUTCOME)
        records["true_class"], records["predicted_class"], records["model"] = true, predicted, models
        records["label_at_prediction"] = -1
        records["event_ms"] = times_of(event_ms, count, self.outcomes)
        batch = self._with_scores(records, scores, segments)
        # Counted last, so that a batch that is refused leaves no trace in later ones.
        records["made"] = self._counts.following(records["model"], self._models.names)
        if count:
            clock_ms = np.maximum.accumulate(np.maximum(records["event_ms"], self._clock_ms))
            records["resolved_ms"], self._clock_ms = clock_ms, int(clock_ms[-1])
        self.outcomes += count
        return batch

    def _with_scores(self, records: NDArray[np.void], scores: Any, segments: Any) -> OutcomeBatch:
        """Add scores and segments to outcomes."""
        numbers, texts = segments_of(segments, len(records))
        if texts and not self._by_segment:
            raise ValueError("segments need a SegmentsSpec in spec.registers, got a spec without")
        scored, lists = scores_of(scores, len(records), numbers, self._classes)
        records["scores"] = np.where(numbers < 0, -1, SEGMENTS_FROM + numbers)
        records["scores"][scored] = np.arange(len(scored))
        return OutcomeBatch(records, self._models.names, self._classes.names, lists, texts)
