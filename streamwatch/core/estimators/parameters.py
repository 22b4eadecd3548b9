"""Parameters that several kinds of estimators share."""

from __future__ import annotations

from typing import get_args

from streamwatch.core.estimators.entries import Parameter
from streamwatch.core.specs import Direction

LEAST_ALPHA = 0.001
"""Lowest fading factor of agreement totals.

Totals are kept in a unit that grows by 1/alpha with every outcome and has to stay finite. Lower factors would
also be pointless: at this one, an outcome already keeps only a thousandth of its weight after the next.
"""

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
        help="Minimum number of outcomes on either side of a cut.",
    ),
    Parameter(
        "clock", "outcomes between checks", 1, 65_536, whole=True, help="Number of outcomes between checks."
    ),
)
DIRECTION = Parameter(
    "direction",
    "direction",
    choices=get_args(Direction),
    help="Changes that raise an alarm: up (more errors), down, or both.",
)
MIN_OUTCOMES = Parameter(
    "min_outcomes",
    "least outcomes before an alarm",
    1,
    1_000_000_000,
    whole=True,
    help="Minimum number of outcomes since the start or the last alarm before it can alarm.",
)
NEWEST_WEIGHT = Parameter(
    "weight",
    "weight of the newest loss (λ)",
    0.0,
    1.0,
    open_low=True,
    help="1 minus the fading factor of the mean. Smaller values remember longer and react later.",
)
ALARM_CONFIDENCE = Parameter(
    "delta",
    "confidence",
    0.0,
    1.0,
    open_low=True,
    open_high=True,
    help="Lower values make fewer alarms.",
)
WARNING_CONFIDENCE = Parameter(
    "warning_delta",
    "confidence of a warning",
    0.0,
    1.0,
    open_low=True,
    open_high=True,
    help="Confidence for warnings; must be larger than delta.",
)
ALARM_SIGNIFICANCE = Parameter(
    "significance",
    "significance (α)",
    0.0,
    1.0,
    open_low=True,
    open_high=True,
    help="Significance level of the test at every outcome. Lower values make fewer alarms.",
)
WARNING_SIGNIFICANCE = Parameter(
    "warning_significance",
    "significance of a warning",
    0.0,
    1.0,
    open_low=True,
    open_high=True,
    help="Significance level for warnings; must be larger than significance.",
)
