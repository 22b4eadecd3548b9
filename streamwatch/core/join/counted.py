"""Counters of a compiled join, and of records that are neither prediction nor label."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.counters import JoinCounters, LabelCounters, PredictionCounters
from streamwatch.core.join.layout import (
    LABEL,
    LABEL_COLUMNS,
    PLAIN_COUNTERS,
    PREDICTIONS_ACCEPTED,
    PREDICTIONS_JOINED,
    WITH_MODEL,
    WITHOUT_MODEL,
    Records,
)
from streamwatch.core.join.models import JoinModels
from streamwatch.core.join.names import JoinNames, NumberedTopics
from streamwatch.core.records.events import Event, Invalid, NullRecord, WrongFold, model_of

# Records that are neither prediction nor label; each is counted when the join reaches its row.


class OtherRecords:
    """Counters of null and invalid records, as in `JoinCounters`.

    Parameters
    ----------
    join_models
        Models that are admitted.
    folds
        Whether models may predict in folds.
    """

    __slots__ = (
        "_folds",
        "_join_models",
        "_uncounted",
        "invalid",
        "invalid_by_model",
        "null",
        "wrong_folds",
    )

    def __init__(self, join_models: JoinModels, *, folds: bool) -> None:
        self._join_models = join_models
        self._folds = folds
        self._uncounted: deque[tuple[int, NullRecord | Invalid | WrongFold]] = deque()
        self.wrong_folds = 0
        self.null: dict[str, int] = {}
        self.invalid: dict[str, dict[str, int]] = {}
        self.invalid_by_model: dict[str, int] = {}

    def restore(self, counters: JoinCounters) -> None:
        """Continue from these counters."""
        self.null = dict(counters.null_records)
        self.invalid = {topic: dict(reasons) for topic, reasons in counters.records_invalid.items()}
        self.invalid_by_model = dict(counters.model_records_invalid)
        self.wrong_folds = counters.predictions_wrong_fold

    def forget(self, idle: Sequence[str]) -> None:
        """Drop the counts of models that retired, unless a fold of them is left."""
        alive = {model_of(name) for name in self._join_models.models} if idle else set[str]()
        for name in idle:
            if model_of(name) not in alive:
                self.invalid_by_model.pop(model_of(name), None)

    def note(self, rows: Records, indices: Sequence[int], events: Sequence[Event]) -> None:
        """Store null and invalid events, and those of wrong folds, until `count_up_to` reaches their rows.

        `rows` are the events' rows, and `indices` their indices in the batch.
        """
        for number in np.flatnonzero(rows["side"] > LABEL).tolist():
            event = events[number]
            if isinstance(event, NullRecord | Invalid | WrongFold):
                self._uncounted.append((indices[number], event))

    def count_up_to(self, stop: int) -> None:
        """Count those before row `stop`; whether a model is admitted can change from row to row."""
        uncounted = self._uncounted
        while uncounted and uncounted[0][0] < stop:
            _, event = uncounted.popleft()
            if type(event) is NullRecord:
                self.null[event.topic] = self.null.get(event.topic, 0) + 1
            elif type(event) is WrongFold:
                self.wrong_folds += 1
            elif type(event) is Invalid:
                invalid = self.invalid.setdefault(event.topic, {})
                invalid[event.reason] = invalid.get(event.reason, 0) + 1
                if event.model is not None:
                    self._count_by_model(event.model)

    def _count_by_model(self, model: str) -> None:
        """Count an invalid record by its model, if that is admitted to the join or there is room for it."""
        counts, admitted = self.invalid_by_model, self._join_models
        if model in counts or len(counts) < admitted.maximum or self._is_admitted(model):
            counts[model] = counts.get(model, 0) + 1

    def _is_admitted(self, model: str) -> bool:
        """Return whether a model, or a fold of it, is admitted to the join."""
        models = self._join_models.models
        return model in models or (self._folds and any(model_of(name) == model for name in models))


# Conversion between the counters in the compiled join's arrays and `JoinCounters`.


_ELSEWHERE: Final = ("predictions_segments_over_limit", "predictions_wrong_fold")
"""Counters that are kept in other objects; those of these names in the arrays are not read."""


def counters_of(counted: NDArray[np.void], names: JoinNames, others: OtherRecords) -> JoinCounters:
    """Read the counters from the arrays.

    Parameters
    ----------
    counted
        Record `COUNTERS`, (1,).
    names
        Names of the join.
    others
        Counters of null and invalid records.
    """
    row = counted[0]
    forms = [
        LabelCounters(**dict(zip(LABEL_COLUMNS, row["labels"][form].tolist(), strict=True)))
        for form in (WITH_MODEL, WITHOUT_MODEL)
    ]
    return JoinCounters(
        **{name: int(row[name]) for name in PLAIN_COUNTERS if name not in _ELSEWHERE},
        with_model=forms[0],
        without_model=forms[1],
        null_records=dict(others.null),
        records_invalid={topic: dict(reasons) for topic, reasons in others.invalid.items()},
        model_records_invalid=dict(others.invalid_by_model),
        predictions_segments_over_limit=names.segments.over_limit,
        predictions_wrong_fold=others.wrong_folds,
        **_topic_counters(row["topics"], names.topics.names),
    )


def restore_counters(counted: NDArray[np.void], names: JoinNames, counters: JoinCounters) -> None:
    """Set the counters of the arrays; arguments as for `counters_of`."""
    names.segments.over_limit = counters.predictions_segments_over_limit
    for name in PLAIN_COUNTERS:
        counted[name] = getattr(counters, name)
    for form, labels in ((WITH_MODEL, counters.with_model), (WITHOUT_MODEL, counters.without_model)):
        counted["labels"][0, form] = [getattr(labels, name) for name in LABEL_COLUMNS]
    _restore_topics(counted["topics"][0], names.topics, counters)


class _TopicCounters(TypedDict):
    """Counters by topic, as in `JoinCounters`."""

    topic_predictions: dict[str, PredictionCounters]
    topic_labels: dict[str, LabelCounters]


def _topic_counters(counted: NDArray[np.int64], topics: Sequence[str]) -> _TopicCounters:
    """Read the counters of each topic with any; number 0, for an unknown topic, is skipped.

    Parameters
    ----------
    counted
        Shape (topics, columns), as in `COUNTERS`.
    topics
        Topic names by number.
    """
    found = _TopicCounters(topic_predictions={}, topic_labels={})
    for number in np.flatnonzero(counted[1 : len(topics)].any(axis=1)) + 1:
        topic, row = topics[int(number)], counted[number].tolist()
        if any(row[PREDICTIONS_ACCEPTED:]):
            found["topic_predictions"][topic] = PredictionCounters(
                row[PREDICTIONS_ACCEPTED], row[PREDICTIONS_JOINED]
            )
        if any(row[:PREDICTIONS_ACCEPTED]):
            found["topic_labels"][topic] = LabelCounters(**dict(zip(LABEL_COLUMNS, row, strict=False)))
    return found


def _restore_topics(counted: NDArray[np.int64], topics: NumberedTopics, counters: JoinCounters) -> None:
    """Set the counters by topic; arguments as for `_topic_counters`."""
    counted[:] = 0
    for topic, predictions in counters.topic_predictions.items():
        of_topic = counted[topics[topic]]
        of_topic[PREDICTIONS_ACCEPTED] = predictions.accepted
        of_topic[PREDICTIONS_JOINED] = predictions.joined
    for topic, labels in counters.topic_labels.items():
        counted[topics[topic], :PREDICTIONS_ACCEPTED] = [getattr(labels, name) for name in LABEL_COLUMNS]
