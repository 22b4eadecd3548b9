"""The predictions among joined rows that were accepted, put into columns."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.jit import entry
from streamwatch.core.join.compiled.layout import ACCEPTED, NO_TIME


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
