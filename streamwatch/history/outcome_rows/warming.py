"""Compilation of the readers of rows, or loading them from the cache."""

from __future__ import annotations

import numpy as np

from streamwatch.core.merge.timestamps import LOOK_AHEAD
from streamwatch.edge.decoders.scanner.contents import no_score_room
from streamwatch.edge.decoders.scanner.plan import ContentTree, Tables, fields_of
from streamwatch.edge.decoders.scanner.shape import new_template, new_trace
from streamwatch.edge.decoders.scanner.tokens import Tokens
from streamwatch.history.outcome_rows.lines import padded
from streamwatch.history.outcome_rows.scan import ROW, believed_times, scan_lines, scan_rows


def warm_up_rows() -> None:
    """Compile or load the readers of rows, by calling each on empty input."""
    table, none = Tokens().table, np.zeros(0, np.int64)
    tables = Tables(*[table] * 5)
    nothing, rows = padded(b""), np.zeros(1, ROW)
    scan_rows(nothing, 0, 0, 0, True, none, tables, -1, 0, 1, rows)
    fields = fields_of(ContentTree())
    assert fields is not None  # noqa: S101 - it has none
    found = new_template(0), new_trace(0, 0, 0), no_score_room()
    scan_lines(nothing, 0, 0, 0, True, fields, none, tables, -1, 0, 1, *found, rows)
    believed_times(none, np.zeros(0, np.bool_), 0, -1, 0, 0, LOOK_AHEAD, none, none)
