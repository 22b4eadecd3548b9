"""Release of the numbers of unused names once there are many."""

from __future__ import annotations

import numpy as np

from streamwatch.core.join.compiled.activity import reset_activity
from streamwatch.core.join.compiled.cold.entries import ColdEntries
from streamwatch.core.join.compiled.layout import PLACED, Arrays, Records
from streamwatch.core.join.compiled.names import JoinNames
from streamwatch.core.join.compiled.prediction_order import PredictionOrder
from streamwatch.core.join.compiled.table import FREE
from streamwatch.core.join.entry import PENDING
from streamwatch.core.outcomes import SEGMENTS_FROM


def release_names(
    arrays: Arrays, names: JoinNames, outside: ColdEntries | None, order: PredictionOrder
) -> None:
    """Release the unused names of each kind that has many.

    Parameters
    ----------
    arrays
        Arrays of the join.
    names
        Names of the join.
    outside
        Entries outside the table; None if there cannot be any.
    order
        Outcomes held for the order of predictions.
    """
    if names.classes.crowded:
        _release_classes(arrays, names, outside, order.records())
    if names.models.crowded:
        placed = np.flatnonzero(arrays.activity["place"] == PLACED).astype(np.int32)
        awaited = np.flatnonzero(arrays.partners["known_since"] >= 0).astype(np.int32)
        cold = [] if outside is None else outside.models()
        needed = [used_entries(arrays)["model"], order.records()["model"], placed, awaited, *cold]
        if len(arrays.owners):  # with folds, the models that they belong to
            used = np.unique(np.concatenate(needed))
            needed.append(arrays.owners[used[used >= 0]])
        for number in names.models.release_all_but(needed).tolist():
            reset_activity(arrays.activity, number)
    if names.segments.crowded:
        entries = used_entries(arrays)
        waiting = entries["true_or_scores"][entries["state"] == PENDING] - SEGMENTS_FROM
        scored = np.array(list(names.scores.segments.values()), np.int32)
        cold = [] if outside is None else outside.segments()
        names.segments.release_all_but((waiting, scored, order.segments(), *cold))


def _release_classes(arrays: Arrays, names: JoinNames, outside: ColdEntries | None, held: Records) -> None:
    entries = used_entries(arrays)
    pending = entries["state"] == PENDING
    last = arrays.activity["last_label"].astype(np.int32)
    assumed = arrays.limits["assume"].astype(np.int32)
    trues, known = entries["true_or_scores"][~pending], entries["label_at_prediction"][pending]
    if arrays.limits["numbered"][0]:
        known = np.empty(0, np.int32)
    cold = [] if outside is None else outside.classes()
    of_held = (held[name] for name in ("true_class", "predicted_class", "label_at_prediction"))
    streams = arrays.streams["label"], arrays.streams["before"]
    needed = (entries["predicted_class"], trues, known, last, assumed, *streams, *of_held, *cold)
    names.classes.release_all_but(needed)


def used_entries(arrays: Arrays) -> Records:
    """Entries of the table that are in use."""
    entries = arrays.entries[: int(arrays.totals["top"][0])]
    return entries[entries["state"] != FREE]
