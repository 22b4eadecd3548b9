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
MIN_OUTCOMES = Parameter(
    "min_outcomes",
    "least outcomes before an alarm",
    1,
    1_000_000_000,
    whole=True,
    help="Outcomes since the start or the last alarm before it alarms.",
)
NEWEST_WEIGHT = Parameter(
    "weight",
    "weight of the newest loss (λ)",
    0.0,
    1.0,
    open_low=True,
    help="Of its faded mean: 1 minus the fading factor; smaller remembers longer and is slower.",
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
    help="The same of its warnings; larger than delta.",
)
ALARM_SIGNIFICANCE = Parameter(
    "significance",
    "significance (α)",
    0.0,
    1.0,
    open_low=True,
    open_high=True,
    help="Of the test that is made at every outcome; lower values make fewer alarms.",
)
WARNING_SIGNIFICANCE = Parameter(
    "warning_significance",
    "significance of a warning",
    0.0,
    1.0,
    open_low=True,
    open_high=True,
    help="The same of its warnings; larger than significance.",
)
