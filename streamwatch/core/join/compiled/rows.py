"""Conversion of event objects to rows of the compiled join, in which names and ids are numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np

from streamwatch.core.events import Event, Invalid, Label, NullRecord, Prediction, Skipped, WrongFold
from streamwatch.core.join.compiled.layout import (
    LABEL,
    NO_TIME,
    NOTHING,
    PREDICTION,
    ROW,
    WITHDRAWAL,
    Records,
)
from streamwatch.core.join.compiled.names import JoinNames
from streamwatch.core.outcomes import SEGMENTS_FROM

Digests: TypeAlias = Callable[[Sequence[str]], bytes]
"""Function from ids to 128-bit digests, 16 bytes each, upper half first; equal digests mean equal ids."""

_SIDES: Final[dict[type[object], int]] = {
    Prediction: PREDICTION,
    Label: LABEL,
    NullRecord: NOTHING,
    Skipped: NOTHING,
    Invalid: NOTHING,
    WrongFold: NOTHING,
}


class RowBuilder:
    """Builds rows from events.

    Parameters
    ----------
    digests
        Function that computes the ids' digests.
    names
        Names and scores of the join; new ones get numbers.
    """

    __slots__ = ("_digests", "_names")

    def __init__(self, digests: Digests, names: JoinNames) -> None:
        self._digests = digests
        self._names = names

    def rows(self, events: Sequence[Event]) -> Records:
        """Build the rows of events, in order.

        Those of invalid records and of ignored null records are only a time.
        """
        rows = np.zeros(len(events), ROW)
        sides = np.array([_SIDES[type(event)] for event in events], np.int32)
        rows["side"] = sides
        rows["record_ms"] = [event.record_ms for event in events]
        predictions = [event for event in events if type(event) is Prediction]
        labels = [event for event in events if type(event) is Label]
        if predictions:
            self._add_predictions(rows, sides == PREDICTION, predictions)
        if labels:
            self._add_labels(rows, sides == LABEL, labels)
        if len(predictions) + len(labels) < len(events):
            self._add_withdrawals(rows, events)
        return rows

    def _add_predictions(self, rows: Records, chosen: np.ndarray, predictions: list[Prediction]) -> None:
        models, classes = self._names.models, self._names.classes
        self._add_ids(rows, chosen, [event.id for event in predictions])
        rows["timestamp_ms"][chosen] = _times([event.timestamp_ms for event in predictions])
        rows["model"][chosen] = [models[event.model] for event in predictions]
        rows["class"][chosen] = [classes[event.predicted_class] for event in predictions]
        rows["topic"][chosen] = [self._names.topics[event.topic] for event in predictions]
        scores = [event.scores for event in predictions]
        segments = [event.segments for event in predictions]
        if scores.count(None) == segments.count(None) == len(scores):
            rows["scores"][chosen] = -1
        else:
            rows["scores"][chosen] = list(map(self._carried, scores, segments))

    def _carried(self, scores: dict[str, float] | None, segments: dict[str, str] | None) -> int:
        """Value of the row's field `scores`: number of the scores, or of the segments, or -1."""
        number = self._names.segments.number(segments) if segments else -1
        if scores is not None:
            return self._names.scores.add(scores, number)
        return SEGMENTS_FROM + number if number >= 0 else -1

    def _add_labels(self, rows: Records, chosen: np.ndarray, labels: list[Label]) -> None:
        models, classes = self._names.models, self._names.classes
        self._add_ids(rows, chosen, [event.id for event in labels])
        rows["timestamp_ms"][chosen] = _times([event.timestamp_ms for event in labels])
        named = [event.model for event in labels]
        nameless = named.count(None) == len(named)
        rows["model"][chosen] = -1 if nameless else [-1 if name is None else models[name] for name in named]
        rows["class"][chosen] = [classes[event.true_class] for event in labels]
        rows["topic"][chosen] = [self._names.topics[event.topic] for event in labels]

    def _add_withdrawals(self, rows: Records, events: Sequence[Event]) -> None:
        for position, event in enumerate(events):
            if type(event) is NullRecord and event.withdraws and event.id is not None:
                rows["side"][position] = WITHDRAWAL
                rows["model"][position] = -1 if event.model is None else self._names.models[event.model]
                self._add_ids(rows, np.array([position]), [event.id])

    def _add_ids(self, rows: Records, chosen: np.ndarray, ids: list[str]) -> None:
        halves = np.frombuffer(self._digests(ids), ">u8").reshape(-1, 2)
        rows["high"][chosen] = halves[:, 0]
        rows["low"][chosen] = halves[:, 1]


def _times(timestamps_ms: Sequence[int | None]) -> list[int]:
    return [NO_TIME if timestamp_ms is None else timestamp_ms for timestamp_ms in timestamps_ms]
