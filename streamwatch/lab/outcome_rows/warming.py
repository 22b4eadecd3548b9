"""Compiles what reads rows, or loads what was compiled before."""

from __future__ import annotations

import numpy as np

from streamwatch.core.merge.timestamps import LOOK_AHEAD
from streamwatch.edge.decoders.scanner.inputs import Tables
from streamwatch.edge.decoders.scanner.tokens import Tokens
from streamwatch.lab.outcome_rows.json_scan import scan_lines
from streamwatch.lab.outcome_rows.line_buffer import padded
from streamwatch.lab.outcome_rows.scan import ROW, believed_times, scan_rows


def warm_up_rows() -> None:
    """Compile what reads rows, or load what was compiled before."""
    table, none = Tokens().table, np.zeros(0, np.int64)
    tables = Tables(table, table, table, table)
    nothing, rows = padded(b""), np.zeros(1, ROW)
    scan_rows(nothing, 0, 0, 0, True, none, tables, -1, 0, 1, rows)
    scan_lines(nothing, 0, 0, 0, True, table, none, tables, -1, 0, 1, nothing, rows)
    believed_times(none, np.zeros(0, np.bool_), 0, -1, 0, 0, LOOK_AHEAD, none, none)
