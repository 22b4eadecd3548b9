"""Names of models and classes, and the small integers that stand for them in the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.admission import NO_SCORES, Scores
from streamwatch.core.estimators.kernel.shadow import FADING_FACTOR
from streamwatch.core.metrics.series import ClassNames, ModelKeys
from streamwatch.core.records.events import OTHER, Alarm
from streamwatch.core.records.outcomes import OutcomeBatch
from streamwatch.core.specs import FadingSpec


class Classes(dict[str, int]):
    """Local index of each class of a model, in order of first appearance.

    The index of every class beyond the limit is `limit`. Looking up a new class adds it. Classes beyond the
    limit are not stored, so a stream of ever new classes takes no memory.
    """

    __slots__ = ("_names", "limit")

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self._names: dict[bool, tuple[str, ...]] = {}

    def __missing__(self, name: str) -> int:
        index = len(self)
        if index >= self.limit:
            return self.limit
        self[name] = index
        return index

    def names(self, folded: bool) -> tuple[str, ...]:  # noqa: FBT001 - few readers
        """Names of all classes by index, plus, if `folded`, an unused name for those beyond the limit.

        The same object until there is a new class, so that reports do not build up to a million names anew.
        """
        names = self._names.get(folded, ())
        if len(names) != len(self) + folded:
            other = OTHER
            while other in self:
                other += "_"
            names = self._names[folded] = (*self, *((other,) if folded else ()))
        return names


@dataclass(frozen=True, slots=True)
class Batch:
    """Outcomes as the kernel takes them: parallel arrays, and the originals."""

    outcomes: OutcomeBatch
    rows: NDArray[np.int32]
    true_class: NDArray[np.int32]
    predicted_class: NDArray[np.int32]
    label_at_prediction: NDArray[np.int32]
    """Label known at prediction: `limit + 1` if it is no class of the model yet, -1 if none was known."""
    event_ms: NDArray[np.int64]
    delay_ms: NDArray[np.int64]
    assumed: NDArray[np.bool_]
    made: NDArray[np.uint32]
    """Predictions of the model accepted so far (`Outcome.made`), modulo 2³²."""
    resolved_ms: NDArray[np.int64]
    waited_ms: NDArray[np.int64]
    scores: Scores = NO_SCORES

    def only(self, chosen: NDArray[np.bool_]) -> Batch:
        """Select outcomes by mask, keeping their order; scores are dropped unless all are selected."""
        if chosen.all():
            return self
        return Batch(
            self.outcomes.only(chosen),
            self.rows[chosen],
            self.true_class[chosen],
            self.predicted_class[chosen],
            self.label_at_prediction[chosen],
            self.event_ms[chosen],
            self.delay_ms[chosen],
            self.assumed[chosen],
            self.made[chosen],
            self.resolved_ms[chosen],
            self.waited_ms[chosen],
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


def fold_overflow(batch: Batch, limit: int) -> int:
    """Give differing classes beyond the limit differing indices, in place.

    Return the number of outcomes with a class beyond the limit.

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


# Types used in reporting series of models: the model to report, and the labels of a sample.


Key: TypeAlias = tuple[str, ...]
"""Label values, in the order in which the metric lists its labels."""


Details: TypeAlias = Callable[[int], Mapping[str, object]]
"""Function from a model's index among some models to its details for the API, read beforehand."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One model of a slice, a group of models that are reported at once: its name, row and classes."""

    model: str
    row: int
    classes: Classes


class SliceKeys:
    """Label values of the series of some models."""

    def __init__(self, models: Sequence[str]) -> None:
        self.models = models
        self.classes: tuple[tuple[bool, list[int], list[int]], list[ClassNames]] | None = None
        """What the class names depend on, and the names of each model's classes; None if not built yet."""

    def of(self, *before: str, after: tuple[str, ...] = ()) -> ModelKeys:
        """Label values of one series per model; `before` are those that sort before `model`."""
        return ModelKeys(self.models, before, after)


class ReportKeys:
    """Label values of the last report, by the models of each slice, so that class names are built once."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, ...], SliceKeys] = {}
        self._next: dict[tuple[str, ...], SliceKeys] = {}

    def begin(self) -> None:
        """Begin a report: drop the label values that the last report did not use."""
        self._last, self._next = self._next, {}

    def of(self, models: Sequence[str]) -> SliceKeys:
        """Label values of a slice."""
        names = tuple(models)
        found = self._next.get(names) or self._last.get(names) or SliceKeys(names)
        self._next[names] = found
        return found


# Confusion matrix of a model with class names: faded counts of (true, predicted).


def joined_confusion(documents: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Add up the confusion matrices of several folds, by class name."""
    names = list(dict.fromkeys(name for document in documents for name in document["classes"]))
    counts = np.zeros((len(names), len(names)))
    for document in documents:
        at = [names.index(name) for name in document["classes"]]
        counts[np.ix_(at, at)] += np.array(document["counts"])
    return {"forgetting": documents[0]["forgetting"], "classes": names, "counts": counts.tolist()}


def confusion_document(counts: NDArray[np.float64], classes: Classes) -> dict[str, object]:
    """Build the confusion matrix with class names as the API serves it.

    Parameters
    ----------
    counts
        float64 (K, K) by local class index; rows are true classes. An outcome of age a counts .999^a. All
        indices from `classes.limit` on stand for classes beyond `max_classes`. They are merged into one
        class, `__other__`, in which a mistake between two such classes counts as a hit.
    classes
        Classes of the model.

    Returns
    -------
    dict
        `forgetting`: name of the fading mechanism; `classes`: class names; `counts`: one row per true class,
        with one number per predicted class.
    """
    size = min(len(counts), classes.limit + 1)
    folded = counts[:size, :size].copy()
    if len(counts) > size:
        folded[-1] += counts[size:, :size].sum(axis=0)
        folded[:, -1] += counts[:size, size:].sum(axis=1)
        folded[-1, -1] += counts[size:, size:].sum()
    return {
        "forgetting": FadingSpec(FADING_FACTOR).name,
        "classes": classes.names(folded=size > classes.limit)[:size],
        "counts": folded.tolist(),
    }


# Rows of a trace: of models after every outcome, or of pairs of models.


Cell: TypeAlias = str | float | int | None


def cells(values: NDArray[np.float64]) -> list[Cell]:
    """Convert values to Python floats, None where undefined."""
    return [v if v == v else None for v in values.tolist()]  # noqa: PLR0124 - false for NaN


@dataclass(frozen=True, slots=True)
class TraceChunk:
    """Consecutive rows of a trace, and the alarms raised in them."""

    columns: list[str]
    rows: list[list[Cell]]
    alarms: list[Alarm]
