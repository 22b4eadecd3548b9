"""Conversion between the counters in the compiled join's arrays and `JoinCounters`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.layout import (
    LABEL_COLUMNS,
    PLAIN_COUNTERS,
    PREDICTIONS_ACCEPTED,
    PREDICTIONS_JOINED,
    WITH_MODEL,
    WITHOUT_MODEL,
)
from streamwatch.core.join.compiled.names import JoinNames, NumberedTopics
from streamwatch.core.join.compiled.other_records import OtherRecords
from streamwatch.core.join.counters import JoinCounters, LabelCounters, PredictionCounters

_ELSEWHERE: Final = ("predictions_segments_over_limit", "predictions_wrong_fold")
"""Counters that are not in the arrays."""


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
