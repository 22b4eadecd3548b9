"""What is kept of two models that are compared: records of scalars, all zero at first."""

from __future__ import annotations

import numpy as np

VERSION = 1
"""Raised when the meaning of the state changes."""

TALLY = np.dtype(
    [
        ("pairs", "i8"),  # outcomes paired: all, or those in a window
        ("champion", "i8"),  # of these, the champion was wrong
        ("challenger", "i8"),  # … the challenger was wrong
        ("n01", "i8"),  # … the champion was wrong and the challenger right
        ("n10", "i8"),  # … the other way round
    ]
)
LATEST = np.dtype(
    [
        ("head", "i8"),  # where the next pair goes in the ring
        ("event_ms", "i8"),  # of the last pair
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
        ("counted", "i8"),  # whether labels are counted at all, for the balanced utility
        ("classes", "i8"),  # labels seen, by local index
        ("unit", "f8"),  # what the newest label counts; 0 stands for 1
    ]
)
"""Beside it stands a row of faded counts by class, in that unit."""

CHAMPION_WRONG, CHALLENGER_WRONG = 1, 2
"""Bits of a pair in the ring."""
