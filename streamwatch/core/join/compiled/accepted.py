"""The predictions among joined rows that were accepted, put into columns."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.join.compiled.layout import ACCEPTED, NO_TIME, PREDICTION, Records
from streamwatch.core.join.compiled.names import JoinNames
from streamwatch.core.outcomes import SEGMENTS_FROM
from streamwatch.core.predictions.batch import PREDICTED, PredictionBatch, score_of


@entry
def put_accepted(rows, scores, start, stop, predicted):
    """Write accepted predictions of rows `start` to `stop`; gives how many.

    `rows` of `ROW`, (n,); `scores` of the predicted classes, (n,), or (0,) where none has one; `predicted` of
    `PREDICTED`, with room for all.
    """
    written = 0
    for r in range(start, stop):
        row = rows[r]
        if row.side != ACCEPTED:
            continue
        p = predicted[written]
        p.record_ms = row.record_ms
        p.event_ms = row.record_ms if row.timestamp_ms == NO_TIME else row.timestamp_ms
        p.score = scores[r] if scores.shape[0] > 0 else float("nan")
        p.model = row.model
        p["class"] = row["class"]
        written += 1
    return written


def predicted_scores(rows: Records, names: JoinNames) -> NDArray[np.float64]:
    """Look up the score of the predicted class of each row that is to be joined, as `score_of` has it.

    Empty where no prediction has scores; those of predictions that are resolved are not kept.
    """
    scores, classes = names.scores, names.classes.names
    if not scores:
        return np.zeros(0)
    found = np.full(len(rows), np.nan)
    carried = rows["scores"]
    scored = np.flatnonzero((rows["side"] == PREDICTION) & (carried >= 0) & (carried < SEGMENTS_FROM))
    named, numbers = rows["class"][scored].tolist(), carried[scored].tolist()
    found[scored] = [score_of(classes[c], scores[s]) for c, s in zip(named, numbers, strict=True)]
    return found


def accepted_predictions(
    rows: Records, scores: NDArray[np.float64], start: int, stop: int, names: JoinNames
) -> PredictionBatch:
    """Put the predictions that were accepted of rows `start` to `stop` into columns."""
    records = np.empty(stop - start, PREDICTED)
    written = put_accepted(rows, scores, start, stop, records)
    return PredictionBatch(records[:written], names.models.names, names.classes.names)
