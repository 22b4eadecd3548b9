"""Protocol of a prediction register, and its kind: specification and constructor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.metrics.series import Family
from streamwatch.core.records.events import CARRIED, Name, Outcome, Prediction, carried_by_all
from streamwatch.core.records.scores import ScoreLists

# Predictions as columns, in the order in which the join accepted them.


PREDICTED: Final = np.dtype(
    [
        ("record_ms", np.int64),
        ("event_ms", np.int64),
        ("score", np.float64),
        ("model", np.int32),
        ("class", np.int32),
        ("carried", np.int32, (len(CARRIED),)),
    ],
    align=True,
)
"""Accepted prediction.

`record_ms`: time of the record. `event_ms`: the prediction's own time, else that of the record. `score`: that
of the predicted class (`score_of`), NaN without one. `model`, `class`: numbers of the names. `carried`: as
`core.records.events.CARRIED`.
"""


@dataclass(frozen=True, slots=True)
class PredictionBatch:
    """Accepted predictions in order: no duplicates, no conflicts, none over a limit."""

    records: NDArray[np.void]
    """Dtype `PREDICTED`, shape (n,)."""
    models: Sequence[str]
    """Names of models by number; a new list object whenever a number gets another name."""
    classes: Sequence[str]
    """Names of classes by number; a new list object whenever a number gets another name."""

    def __len__(self) -> int:
        return len(self.records)


def batch_of(events: Sequence[Prediction]) -> PredictionBatch:
    """Put predictions into columns; names are numbered in order of occurrence."""
    models: dict[str, int] = {}
    classes: dict[str, int] = {}
    records = np.zeros(len(events), PREDICTED)
    records["model"] = [models.setdefault(event.model, len(models)) for event in events]
    records["class"] = [classes.setdefault(event.predicted_class, len(classes)) for event in events]
    records["score"] = [score_of(event.predicted_class, event.scores) for event in events]
    records["record_ms"] = [event.record_ms for event in events]
    records["event_ms"] = [
        event.record_ms if event.timestamp_ms is None else event.timestamp_ms for event in events
    ]
    records["carried"] = carried_by_all(events)
    return PredictionBatch(records, list(models), list(classes))


def score_of(name: str, scores: Mapping[str, float] | None) -> float:
    """Score of a class divided by the sum of all; NaN without one, or if a score is invalid.

    Scores that are negative or not finite, and those with sum 0, are invalid.
    """
    score = None if not scores else scores.get(name)
    if scores is None or score is None:
        return math.nan
    total = 0.0
    for each in scores.values():  # one after the other, as `shares_of`; `sum` rounds otherwise
        total += each
    if not 0.0 < total < math.inf or min(scores.values()) < 0.0:  # a NaN makes the sum NaN
        return math.nan
    return min(1.0, score / total)


def scores_of_classes(
    lists: ScoreLists, numbers: NDArray[np.integer], classes: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Compute the score of one class of each of the predictions with these numbers, as `score_of` does."""
    found = np.empty(len(numbers))
    if not len(numbers):
        return found
    wanted = np.ascontiguousarray(numbers, np.int64), np.ascontiguousarray(classes, np.int64)
    shares_of(lists.ends, lists.classes, lists.values, *wanted, found)
    return found


@entry
def shares_of(ends: Any, classes: Any, values: Any, numbers: Any, wanted: Any, found: Any) -> None:
    """Write the score of one class of each prediction, as `score_of` computes it.

    Parameters
    ----------
    ends, classes, values
        Attributes of `ScoreLists`.
    numbers, wanted
        int64 (n,): numbers of predictions, and for each the number of a class.
    found
        float64 (n,), output.
    """
    for i in range(numbers.shape[0]):
        number = numbers[i]
        score, total, least = math.nan, 0.0, 0.0
        for k in range(ends[number - 1] if number > 0 else 0, ends[number]):
            total += values[k]
            least = min(least, values[k])
            if classes[k] == wanted[i]:
                score = values[k]
        found[i] = math.nan
        if 0.0 < total < math.inf and least == 0.0 and score >= 0.0:  # false for NaN
            found[i] = min(1.0, score / total)


# Active hint: the change among a model's predictions that notifications report.


class ActiveHint(msgspec.Struct, frozen=True):
    """Hint that was given and has not ended: predictions differ from earlier ones, whatever their labels."""

    ordinal: int
    """Number of the hint among the model's, from 1."""
    given_ms: int
    """Record time at which it was given."""
    predicted_class: Name | None
    """Class whose share changed most significantly; None if it is the mean score of the predicted class."""
    more: bool
    """Whether the share, or the score, has increased."""
    before: float
    """Share of the class among earlier predictions, or their mean score; NaN if undefined."""
    now: float
    """Share or mean score among the latest predictions."""


class PredictionRegister(Protocol):
    """State of models from their predictions as the join accepts them, and from their outcomes.

    It must depend only on the order of a model's predictions, on the order of its outcomes, and on which of
    them came before the model retired. It must not depend on how predictions and outcomes are cut into
    batches, or on how they are interleaved.
    """

    @property
    def section(self) -> str:
        """Name of its state: kind, parameters that change the state's meaning, and version.

        If there is no state of this name, the register starts empty.
        """
        ...

    def observe(self, predictions: PredictionBatch) -> None:
        """Process predictions of several models, in order."""
        ...

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Process outcomes of several models, in order; assumed ones are included."""
        ...

    def forget(self, model: str) -> None:
        """Remove a model that has retired; does nothing for a model without state."""
        ...

    def snapshot(self) -> bytes:
        """Encode the state of all models; equal states give equal bytes; empty if there is none."""
        ...

    def restore(self, state: bytes) -> None:
        """Set an empty register to a snapshot; raises ValueError for bytes that are not one."""
        ...

    def families(self) -> Sequence[Family]:
        """Series, each of a metric in `core.metrics`; undefined values have no sample."""
        ...

    def details(self) -> Mapping[str, Mapping[str, object]]:
        """Details by model for the API that are not single numbers: JSON values by key."""
        ...

    def active_hints(self) -> Mapping[str, ActiveHint]:
        """Active hints by model; empty for a register without hints."""
        ...

    def unrepresentative(self) -> AbstractSet[str]:
        """Models known to have outcomes that are no fair sample of their predictions."""
        ...


@dataclass(frozen=True, slots=True)
class PredictionRegisterKind:
    """Kind of prediction register; everything else is derived from its line in `predictions.KINDS`."""

    name: str
    """Unique among kinds."""
    spec: type[Any]
    """Frozen dataclass of the parameters.

    An instance in `JoinSpec.prediction_registers` requests a register.
    """
    build: Callable[[Any], PredictionRegister]
    """Build an empty register from a specification."""
