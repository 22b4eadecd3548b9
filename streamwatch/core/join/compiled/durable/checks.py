"""Validation of values that are read back: raises for what commits cannot have written."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.durable.packed import PackedError
from streamwatch.core.join.compiled.durable.totals import JoinTotals
from streamwatch.core.join.compiled.names import JoinNames, NumberedNames
from streamwatch.core.join.compiled.outside.counts import OutsideCounts
from streamwatch.core.join.compiled.outside.overflow import Overflow
from streamwatch.core.join.entry import EARLY, PENDING, RETAINED, UNMATCHED


def has_names(names: NumberedNames, numbers: NDArray[np.int32] | NDArray[np.int64]) -> bool:
    """Tell whether every number has a name; negative ones are ignored."""
    return set(names.values()).issuperset(np.unique(numbers[numbers >= 0]).tolist())


def check_outside(names: JoinNames, overflow: Overflow) -> None:
    """Raise PackedError if entries outside the table use numbers without a name."""
    for named, used in (
        (names.models, overflow.cold.models()),
        (names.classes, overflow.cold.classes()),
        (names.segments, overflow.cold.segments()),
    ):
        for numbers in used:
            if not has_names(named, numbers):
                raise PackedError("expected numbers of names in the runs of cold entries, got one released")


def check_names(names: JoinNames, entries: NDArray[np.void]) -> None:
    """Raise PackedError if entries use numbers without a name."""
    pending = entries["state"] == PENDING
    for each, columns in (
        (names.models, (entries["model"],)),
        (
            names.classes,
            (entries["predicted_class"], entries["true_or_scores"], entries["label_at_prediction"]),
        ),
    ):
        named = np.zeros(len(each.names) + 1, np.bool_)
        named[list(each.values())] = True
        named[-1] = True  # for -1, which means no name
        for column in columns:
            if len(column) and not (int(column.min()) >= -1 and int(column.max()) < len(each.names)):
                raise PackedError(f"expected numbers of {len(each.names)} names, got {column.max()}")
            if not named[column].all():
                raise PackedError("expected numbers of names, got one that was released")
    if len(entries) and int(entries["topic"].max()) >= len(names.topics.names):
        raise PackedError(
            f"expected numbers of {len(names.topics.names)} topics, got {entries['topic'].max()}"
        )
    if (entries["model"][pending] < 0).any():
        raise PackedError("expected the model of every prediction, got none of one")


def check_counts(
    states: NDArray[np.int16],
    ends: dict[int, tuple[int, int]],
    totals: JoinTotals,
    outside: OutsideCounts,
    cold: tuple[int, ...],
) -> None:
    """Raise PackedError if the numbers of entries, with those outside the table, differ from the totals."""
    pending = sum(model.pending for model in totals.join_models.models)
    unmatched, retained = int((states == UNMATCHED).sum()), int((states == RETAINED).sum())
    expected = (pending, totals.early, totals.unmatched, totals.retained)
    found = (
        int((states == PENDING).sum()) + cold[0],
        int((states == EARLY).sum()) + cold[1],
        unmatched + outside.unmatched,
        unmatched + retained + cold[2],
    )
    if expected != found:
        raise PackedError(f"expected {expected} predictions and labels of each kind that wait, got {found}")
    dedup = {each.number: each.count for each in (*totals.dedup.closed, totals.dedup.opened) if each.count}
    written = Counter({generation: end - first for generation, (first, end) in ends.items() if end > first})
    written.update(outside.settled)
    if dedup != written:
        raise PackedError(f"expected dedup entries {dedup} by generation, got {written}")
