"""Hash table from (model number, class number) to local class index, for outcomes in columns."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.jit import entry, hot

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
NO_KEY = np.uint64(0)
UNKNOWN = -1


@hot
def key_of(model, name):
    """Key of a model's class, both given as numbers; never `NO_KEY`."""
    return (np.uint64(model + 1) << np.uint64(32)) | np.uint64(name)


@hot
def place_of(keys, key):
    """Index of a key in `keys`, or of the free slot where it belongs."""
    mask = keys.shape[0] - 1
    i = np.int64((key * _SPREAD) >> np.uint64(32)) & mask
    while keys[i] != NO_KEY and keys[i] != key:
        i = (i + 1) & mask
    return i


@entry
def remember(keys, indices, model, name, index):
    """Store the local index of a class; there must be a free slot."""
    i = place_of(keys, key_of(model, name))
    keys[i] = key_of(model, name)
    indices[i] = index


@entry
def number(outcomes, start, rows_by_model, keys, indices, limit, columns):
    """Look up outcomes from `start` on; return the position of the first with an unknown number, or n.

    Parameters
    ----------
    outcomes
        Records of type `OUTCOME`, (n,).
    rows_by_model
        int32: row by model number, `UNKNOWN` (-1) if not known yet.
    keys, indices
        uint64, int32: the hash table written by `remember`.
    limit
        Local index of classes beyond the limit.
    columns
        int32 (4, n), output: row, true class, predicted class, label at prediction.
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
            if label == limit:  # as a label at prediction, a class beyond the limit gets `limit + 1`
                label = limit + 1
        columns[0, i] = row
        columns[1, i] = indices[true_at]
        columns[2, i] = indices[predicted_at]
        columns[3, i] = label
    return outcomes.shape[0]
