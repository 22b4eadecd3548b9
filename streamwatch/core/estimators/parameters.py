"""Parameters that several kinds of estimators share."""

from __future__ import annotations

from typing import get_args

from streamwatch.core.estimators.entries import Parameter
from streamwatch.core.specs import Direction

DELTA = Parameter(
    "delta",
    "confidence",
    0.0,
    1.0,
    open_low=True,
    open_high=True,
    help="Lower values make fewer cuts and fewer alarms.",
)
ADWIN = (
    DELTA,
    Parameter(
        "min_subwindow",
        "smallest sub-window",
        5,
        1_000_000,
        whole=True,
        help="Outcomes on either side of a cut, at least.",
    ),
    Parameter(
        "clock", "outcomes between checks", 1, 65_536, whole=True, help="How often it looks for a cut."
    ),
)
DIRECTION = Parameter(
    "direction",
    "direction",
    choices=get_args(Direction),
    help="Which change alarms: up (more errors), down, both.",
)
