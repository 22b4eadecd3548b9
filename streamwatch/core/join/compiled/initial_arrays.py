"""Initial arrays of a compiled join."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from streamwatch.core.join.compiled.layout import (
    ACTIVITY,
    COUNTERS,
    GENERATION,
    GENERATIONS_KEPT,
    LIMITS,
    NEVER_MS,
    NO_TIME,
    PARTNER,
    SETTLED_NOTED,
    STREAM,
    TIMING,
    TOTALS,
    Arrays,
    allocate_entries,
    allocate_outcomes,
    allocate_places,
    allocate_slots,
    one_record,
)
from streamwatch.core.specs import JoinSpec

_FIRST_ENTRIES: Final = 1_024
FIRST_PAIRS: Final = 1 << 14
"""Room for pairs at first."""


def new_arrays(spec: JoinSpec, classes: Mapping[str, int], *, outcomes: int, numbered: bool) -> Arrays:
    """Build the arrays of an empty join.

    Parameters
    ----------
    spec
        Limits of the join.
    classes
        Numbers of classes.
    outcomes
        Number of outcomes handed over at a time; those of one id may come in addition.
    numbered
        See `CompiledJoin`.
    """
    written = outcomes + spec.max_models + 8
    totals = one_record(TOTALS, free=-1, first=-1, last=-1, open_newest_ms=-1, open_first=-1, open_last=-1)
    for name in ("opened_ms", "dedup_clock_ms", "dead_first", "dead_last", "passed_ms", "clock_ms"):
        totals[name] = -1
    for name in ("pair_generation",):
        totals[name] = -1
    totals["partners_ms"] = NEVER_MS
    limits = one_record(
        LIMITS,
        horizon_ms=spec.horizon_ms,
        early_horizon_ms=spec.early_horizon_ms,
        dedup_horizon_ms=spec.dedup_horizon_ms,
        max_pending=spec.max_pending,
        max_labels=spec.max_labels,
        max_dedup_entries=spec.max_dedup_entries,
        retain_unmatched=spec.retain_unmatched,
        assume=-1 if spec.assume is None else classes[spec.assume],
        start_ms=NO_TIME,
        numbered=numbered,
        compares=bool(spec.comparisons),
        folds=spec.folds,
        shares_stream=spec.folds and spec.folds_share_stream,
    )
    return Arrays(
        allocate_entries(_FIRST_ENTRIES),
        allocate_slots(2 * _FIRST_ENTRIES),
        totals,
        np.zeros(1, COUNTERS),
        np.zeros(GENERATIONS_KEPT, GENERATION),
        np.zeros(0, ACTIVITY),
        limits,
        allocate_outcomes(written),
        np.zeros(written if spec.order == "prediction_time" else 0, TIMING),
        np.zeros(written, np.int32),
        allocate_places(_FIRST_ENTRIES),
        allocate_places(2 * _FIRST_ENTRIES),
        np.zeros(0, np.int8),
        np.zeros(SETTLED_NOTED, np.int32),
        np.zeros((FIRST_PAIRS if spec.comparisons else 0, 3), np.int32),
        np.zeros((0, 2, 0), np.uint64),
        np.zeros(0, PARTNER),
        np.zeros(0, np.int32),
        np.zeros(0, STREAM),
    )
