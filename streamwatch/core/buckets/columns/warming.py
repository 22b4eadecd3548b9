"""Compilation of the functions that only buckets in columns use, or their loading."""

from __future__ import annotations

import numpy as np

from streamwatch.core.buckets.columns.histories import ColumnHistories
from streamwatch.core.buckets.columns.id_join import RESOLUTION
from streamwatch.core.buckets.columns.prediction_places import PLACE_COLUMNS


def warm_up_buckets() -> None:
    """Look up a label; join, commits and estimators have warm-ups of their own."""
    accepted, resolved = np.zeros((1, len(PLACE_COLUMNS)), np.int64), np.zeros((1, len(RESOLUTION)), np.int64)
    ColumnHistories().look_up("warm-up", accepted, resolved, np.zeros(1, np.int64))
