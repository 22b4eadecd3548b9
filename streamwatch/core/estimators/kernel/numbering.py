"""Rows and local class indices of outcomes that carry numbers for names."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.jit import entry, hot

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
NO_KEY = np.uint64(0)
UNKNOWN = -1


@hot
def key_of(model, name):
    """Key of a class of a model, never `NO_KEY`; both are numbers."""
    return (np.uint64(model + 1) << np.uint64(32)) | np.uint64(name)


@hot
def place_of(keys, key):
    """Index where a key is, or may be put."""
    mask = keys.shape[0] - 1
    i = np.int64((key * _SPREAD) >> np.uint64(32)) & mask
    while keys[i] != NO_KEY and keys[i] != key:
        i = (i + 1) & mask
    return i


@entry
def remember(keys, indices, model, name, index):
    """Remember the local index of a class; there is room."""
    i = place_of(keys, key_of(model, name))
    keys[i] = key_of(model, name)
    indices[i] = index


@entry
def number(outcomes, start, rows_by_model, keys, indices, limit, columns):
    """Look up outcomes from `start` on; gives the first that is not known, or how many there are.

    Parameters
    ----------
    outcomes
        Of `OUTCOME`.
    rows_by_model
        int32: row of each model's number, `UNKNOWN` (-1) for one that has none yet.
    keys, indices
        uint64, int32: what was remembered.
    limit
        Index of classes beyond the limit.
    columns
        int32 (4, n), written: row, true class, predicted class, label at prediction.
    """
    for i in range(start, outcomes.shape[0]):
        o = outcomes[i]
        row = rows_by_model[o.model]
        if row < 0:
            return i
        true_at = place_of(keys, key_of(o.model, o.true_class))
        predicted_at = place_of(keys, key_of(o.model, o.predicted_class))
        if keys[true_at] == NO_KEY or keys[predicted_at] == NO_KEY:
            return i
        label = -1
        if o.label_at_prediction >= 0:
            label_at = place_of(keys, key_of(o.model, o.label_at_prediction))
            if keys[label_at] == NO_KEY:
                return i
            label = indices[label_at]
            if label == limit:  # classes beyond the limit are not remembered as labels
                label = limit + 1
        columns[0, i] = row
        columns[1, i] = indices[true_at]
        columns[2, i] = indices[predicted_at]
        columns[3, i] = label
    return outcomes.shape[0]
