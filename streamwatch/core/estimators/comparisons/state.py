"""State of a comparison of two models: records of scalars, all zero at first."""

from __future__ import annotations

import numpy as np

VERSION = 1
"""Incremented when the meaning of the state changes."""

TALLY = np.dtype(
    [
        ("pairs", "i8"),  # number of pairs of outcomes: all, or those in a window
        ("champion", "i8"),  # of these, pairs with the champion wrong
        ("challenger", "i8"),  # … with the challenger wrong
        ("n01", "i8"),  # … with the champion wrong and the challenger right
        ("n10", "i8"),  # … with the champion right and the challenger wrong
    ]
)
LATEST = np.dtype(
    [
        ("head", "i8"),  # position of the next pair in the ring
        ("event_ms", "i8"),  # event time of the last pair
    ]
)
FADED = np.dtype(
    [
        ("weight", "f8"),  # Σw of the pairs
        ("squares", "f8"),  # Σw²
        ("champion", "f8"),  # S_A ← αS_A + x_A
        ("challenger", "f8"),  # S_B
        ("n01", "f8"),
        ("n10", "f8"),
        ("variance", "f8"),  # V ← α²V + 1[one was wrong and the other right]
    ]
)
BALANCED = np.dtype(
    [
        ("counted", "i8"),  # whether labels are counted, which only the balanced utility needs
        ("classes", "i8"),  # number of classes counted so far, by local index
        ("unit", "f8"),  # amount that the newest label counted; 0 stands for 1
    ]
)
"""Label counts of the balanced utility; the faded counts by class are in a separate array, in this unit."""

CHAMPION_WRONG, CHALLENGER_WRONG = 1, 2
"""Bits of a pair in the ring."""
