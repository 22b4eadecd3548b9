"""Counters of predictions and labels by their topic, out of the compiled join's arrays and into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.layout import LABEL_COLUMNS, PREDICTIONS_ACCEPTED, PREDICTIONS_JOINED
from streamwatch.core.join.compiled.names import NumberedTopics
from streamwatch.core.join.counters import JoinCounters, LabelCounters, PredictionCounters


class TopicCounters(TypedDict):
    """Counters by topic, as `JoinCounters` has them."""

    topic_predictions: dict[str, PredictionCounters]
    topic_labels: dict[str, LabelCounters]


def topic_counters(counted: NDArray[np.int64], topics: Sequence[str]) -> TopicCounters:
    """Counters of each topic that has any; of records whose topic nobody says (0) there are none.

    Parameters
    ----------
    counted
        Shape (topics, columns), as in `COUNTERS`.
    topics
        Names by number.
    """
    found = TopicCounters(topic_predictions={}, topic_labels={})
    for number in np.flatnonzero(counted[1 : len(topics)].any(axis=1)) + 1:
        topic, row = topics[int(number)], counted[number].tolist()
        if any(row[PREDICTIONS_ACCEPTED:]):
            found["topic_predictions"][topic] = PredictionCounters(
                row[PREDICTIONS_ACCEPTED], row[PREDICTIONS_JOINED]
            )
        if any(row[:PREDICTIONS_ACCEPTED]):
            found["topic_labels"][topic] = LabelCounters(**dict(zip(LABEL_COLUMNS, row, strict=False)))
    return found


def restore_topics(counted: NDArray[np.int64], topics: NumberedTopics, counters: JoinCounters) -> None:
    """Go on counting from these; arguments as of `topic_counters`."""
    counted[:] = 0
    for topic, predictions in counters.topic_predictions.items():
        of_topic = counted[topics[topic]]
        of_topic[PREDICTIONS_ACCEPTED] = predictions.accepted
        of_topic[PREDICTIONS_JOINED] = predictions.joined
    for topic, labels in counters.topic_labels.items():
        counted[topics[topic], :PREDICTIONS_ACCEPTED] = [getattr(labels, name) for name in LABEL_COLUMNS]
