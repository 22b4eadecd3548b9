"""Test for dedup entries whose generation has been dropped."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Final

import numpy as np

from streamwatch.core.jit import hot
from streamwatch.core.join.compiled.cold.block import STATE_AND_GENERATION
from streamwatch.core.join.compiled.waiting import NUMBERS
from streamwatch.core.join.entry import RESOLVED

NEGATIVE_FROM: Final = 2**30
"""Difference of generation numbers, modulo 2³¹, from which on it counts as negative; live ones are close."""
_LOWER: Final = np.uint64(0xFFFFFFFF)


@hot
def is_dropped(words, i, floor):
    """Tell whether entry i is a dedup entry of a generation before `floor`."""
    both = words[i, STATE_AND_GENERATION]
    generation = np.int64(both >> np.uint64(32))
    return np.int64(both & _LOWER) >= RESOLVED and (generation - floor) & NUMBERS >= NEGATIVE_FROM
