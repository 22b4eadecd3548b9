"""Accepted predictions of joined rows, as columns."""

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
    """Write the accepted predictions of rows `start` to `stop`; return their number.

    Parameters
    ----------
    rows
        Records `ROW`, (n,).
    scores
        Scores of the predicted classes, (n,), or (0,) if no prediction has scores.
    predicted
        Records `PREDICTED`, output, with room for all.
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
    """Look up the score of the predicted class of each row before it is joined, as `score_of` gives it.

    NaN for rows without one; empty if no prediction has scores. It must be called before the join, as scores
    are dropped once their prediction is resolved.
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
    """Put the accepted predictions of rows `start` to `stop` into columns."""
    records = np.empty(stop - start, PREDICTED)
    written = put_accepted(rows, scores, start, stop, records)
    return PredictionBatch(records[:written], names.models.names, names.classes.names)
