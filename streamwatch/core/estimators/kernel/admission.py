"""Admission of a batch: validates all indices and reserves class rows for the classes it contains.

Unless a model needs more room, both read only `spans`, the number of class rows that each model owns (-1 for
a row without a model), and `shadow_spans`. These are small enough to stay in the cache, unlike the records.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.forgetting.adwin import FIRST_BLOCK_ROW
from streamwatch.core.estimators.kernel.shadow import NO_MORE, free_shadow, grow_shadow
from streamwatch.core.estimators.memory import (
    allocate_block,
    allocate_span,
    exponent_of,
    free_block,
    free_span,
)
from streamwatch.core.jit import entry, hot, inner

ADMITTED, INVALID, FULL, SHADOWS_FULL = 0, 1, 2, 3
"""Results of `admit`, in this order.

The batch is admitted; an outcome is invalid; the pool of class rows is full; the pool of shadow counts is
full. Except in the first case, nothing has been folded.
"""


@hot
def first_invalid(pools, batch):
    """Position of an invalid outcome, or -1 if all are valid.

    An outcome is invalid if its row has no model or one of its classes is out of range. The first one with an
    invalid row, true class or predicted class is returned, or else the first with an invalid score class.
    """
    spans, most, scores = pools.spans, pools.max_classes, batch.scores
    for i in range(batch.rows.shape[0]):
        if not 0 <= batch.rows[i] < spans.shape[0] or spans[batch.rows[i]] < 0:
            return i
        if not (0 <= batch.true_class[i] < most and 0 <= batch.predicted_class[i] < most):
            return i
    for i in range(scores.offsets.shape[0] - 1):
        for k in range(scores.offsets[i], scores.offsets[i + 1]):
            if not 0 <= scores.classes[k] < most:
                return i
    return -1


@inner
def grow(pools, row, classes):
    """Move a model's class rows to a span for this many classes; return whether the pool had room."""
    m, spans, class_counts = pools.models[row], pools.spans, pools.class_counts
    c = exponent_of(classes)
    start = allocate_span(class_counts, pools.class_counts_allocator, c)
    if start < 0:
        return False
    for k in range(spans[row]):
        for j in range(class_counts.shape[1]):
            class_counts[start + k, j] = class_counts[m.class_counts + k, j]
    if spans[row] > 0:
        free_span(class_counts, pools.class_counts_allocator, m.class_counts, exponent_of(spans[row]))
    m.class_counts = start
    spans[row] = 1 << c
    return True


@hot
def fits(pools, batch):
    """Tell whether all outcomes of a batch without scores are valid and their models have room for them."""
    for i in range(batch.rows.shape[0]):
        row = batch.rows[i]
        if not 0 <= row < pools.spans.shape[0]:
            return False
        most = min(pools.spans[row], pools.shadow_spans[row], pools.max_classes)
        if not (0 <= batch.true_class[i] < most and 0 <= batch.predicted_class[i] < most):
            return False
    return True


@hot
def admit(pools, batch):
    """Validate a `Batch` and make room in a table's `Arrays` for its classes; return (result, position)."""
    offsets, score_classes = batch.scores.offsets, batch.scores.classes
    if offsets.shape[0] == 0 and fits(pools, batch):
        return ADMITTED, 0
    invalid = first_invalid(pools, batch)
    if invalid >= 0:
        return INVALID, invalid
    for i in range(batch.rows.shape[0]):
        row = batch.rows[i]
        classes = max(batch.true_class[i], batch.predicted_class[i]) + 1
        if offsets.shape[0] > 0:
            for k in range(offsets[i], offsets[i + 1]):
                classes = max(classes, score_classes[k] + 1)
        if classes > pools.spans[row] and not grow(pools, row, classes):
            return FULL, i
        if classes > pools.shadow_spans[row] and not grow_shadow(pools, row, classes):
            return SHADOWS_FULL, i
    return ADMITTED, 0


@entry
def make_room(pools, batch):
    """Call `admit` alone, without folding the batch."""
    return admit(pools, batch)


@entry
def claim_rows(pools, row, classes):
    """Give a model class rows for this many classes, without shadow counts; return whether there was room."""
    return classes <= pools.spans[row] or grow(pools, row, classes)


@entry
def release(pools, row):
    """Free the class rows, blocks and shadow counts of a model."""
    m, spans = pools.models[row], pools.spans
    if spans[row] > 0:
        free_span(pools.class_counts, pools.class_counts_allocator, m.class_counts, exponent_of(spans[row]))
    for j in range(len(m.windows)):
        w = m.windows[j]
        for r in range(FIRST_BLOCK_ROW, w.rows):
            for k in range(w.buckets[r]):
                free_block(pools.blocks, pools.block_allocator, w.blocks[r - FIRST_BLOCK_ROW, k])
    for j in range(len(m.shadow)):
        s = m.shadow[j]
        if s.span > 0:
            free_shadow(pools.shadows, pools.shadow_allocator, s.start, s.span)
    spans[row] = -1
    pools.shadow_spans[row] = NO_MORE


@entry
def claim_block(pools, classes):
    """Allocate an empty block for this many classes, and return its slot."""
    return allocate_block(pools.blocks, pools.block_allocator, exponent_of(classes))


# Hash table from (model number, class number) to local class index, for outcomes in columns.


_SPREAD = np.uint64(0x9E3779B97F4A7C15)
NO_KEY = np.uint64(0)
UNKNOWN = -1


@hot
def key_of(model, name):
    """Key of a model's class, both given as numbers; never `NO_KEY`."""
    return (np.uint64(model + 1) << np.uint64(32)) | np.uint64(name)


@hot
def slot_of(keys, key):
    """Index of a key in `keys`, or of the free slot where it belongs."""
    mask = keys.shape[0] - 1
    i = np.int64((key * _SPREAD) >> np.uint64(32)) & mask
    while keys[i] != NO_KEY and keys[i] != key:
        i = (i + 1) & mask
    return i


@entry
def remember(keys, indices, model, name, index):
    """Store the local index of a class; there must be a free slot."""
    i = slot_of(keys, key_of(model, name))
    keys[i] = key_of(model, name)
    indices[i] = index


@entry
def number(outcomes, start, rows_by_model, keys, indices, limit, columns, lists, most, crowded, scores):
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
    lists
        Scores by the outcomes' numbers: `ends`, `classes` and `values` of `ScoreLists`.
    most
        Largest number of scores of an outcome; if an outcome has more, none of them is used.
    crowded
        bool: whether a model has too many classes for its scores to be used, by model number.
    scores
        Output: `Scores` of the outcomes, of which `offsets` are known up to `start`.
    """
    ends, classes, values = lists
    scored = ends.shape[0] > 0
    for i in range(start, outcomes.shape[0]):
        o = outcomes[i]
        row = rows_by_model[o.model]
        if row < 0:
            return i
        true_at = slot_of(keys, key_of(o.model, o.true_class))
        predicted_at = slot_of(keys, key_of(o.model, o.predicted_class))
        if keys[true_at] == NO_KEY or keys[predicted_at] == NO_KEY:
            return i
        label = -1
        if o.label_at_prediction >= 0:
            label_at = slot_of(keys, key_of(o.model, o.label_at_prediction))
            if keys[label_at] == NO_KEY:
                return i
            label = indices[label_at]
            if label == limit:  # as a label at prediction, a class beyond the limit gets `limit + 1`
                label = limit + 1
        columns[0, i] = row
        columns[1, i] = indices[true_at]
        columns[2, i] = indices[predicted_at]
        columns[3, i] = label
        if scored:
            count = scores.offsets[i]
            number = np.int64(o.scores)
            if 0 <= number < ends.shape[0] and not crowded[o.model]:
                first = ends[number - 1] if number > 0 else 0
                for k in range(first, ends[number] if ends[number] - first <= most else first):
                    at = slot_of(keys, key_of(o.model, classes[k]))
                    if keys[at] == NO_KEY:
                        return i
                    if indices[at] < limit:
                        scores.classes[count] = indices[at]
                        scores.values[count] = values[k]
                        count += 1
            scores.offsets[i + 1] = count
    return outcomes.shape[0]


# Class scores of a batch in the kernel's form: ragged arrays, as most outcomes may have none.


Indices: TypeAlias = NDArray[np.int32]


class Scores(NamedTuple):
    """Scores of n outcomes: i has `values[offsets[i]:offsets[i + 1]]`, of the `classes` at the same indices.

    If no outcome of a batch has scores, `offsets` is empty.
    """

    offsets: NDArray[np.int64]
    """Shape (n + 1,), ascending from 0; or empty."""
    classes: Indices
    """Local class indices, distinct within an outcome."""
    values: NDArray[np.float64]
    """P(class|X), at least 0; they need not sum to 1."""


NO_SCORES = Scores(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float64))


def checked(scores: Scores, outcomes: int) -> Scores:
    """Convert the scores of `outcomes` outcomes to the kernel's types.

    Raises
    ------
    ValueError
        If the offsets are not `outcomes + 1` numbers that ascend from 0 to the number of classes, and of
        values.
    """
    offsets = np.ascontiguousarray(scores.offsets, np.int64)
    classes = np.ascontiguousarray(scores.classes, np.int32)
    values = np.ascontiguousarray(scores.values, np.float64)
    if not (
        len(offsets) == outcomes + 1
        and offsets[0] == 0
        and (np.diff(offsets) >= 0).all()
        and offsets[-1] == len(classes) == len(values)
    ):
        raise ValueError(
            f"offsets of the scores of {outcomes} outcomes must be {outcomes + 1} numbers that ascend from 0 "
            f"to the number of classes and of values, got {len(offsets)} offsets from {offsets[:1].tolist()} "
            f"to {offsets[-1:].tolist()} for {len(classes)} classes and {len(values)} values"
        )
    return Scores(offsets, classes, values)


# Batch of outcomes as the compiled functions take it.


class Batch(NamedTuple):
    """Outcomes in the kernel's types: int32 (n,), event times int64 (n,), and their class scores."""

    rows: Indices
    true_class: Indices
    predicted_class: Indices
    label_at_prediction: Indices
    event_ms: NDArray[np.int64]
    scores: Scores


def batch_of(
    rows: Indices,
    true_class: Indices,
    predicted_class: Indices,
    label_at_prediction: Indices | None = None,
    scores: Scores = NO_SCORES,
    event_ms: NDArray[np.int64] | None = None,
) -> Batch:
    """Convert outcomes to the kernel's types; event times default to 0, labels at prediction to -1.

    Raises
    ------
    ValueError
        If columns differ in length, or the offsets of scores are inconsistent.
    """
    if label_at_prediction is None:
        label_at_prediction = np.full(len(rows), -1, np.int32)
    rows, true_class = np.ascontiguousarray(rows, np.int32), np.ascontiguousarray(true_class, np.int32)
    predicted_class, label_at_prediction = (
        np.ascontiguousarray(predicted_class, np.int32),
        np.ascontiguousarray(label_at_prediction, np.int32),
    )
    event_ms = np.zeros(len(rows), np.int64) if event_ms is None else np.ascontiguousarray(event_ms, np.int64)
    lengths = tuple(map(len, (rows, true_class, predicted_class, label_at_prediction, event_ms)))
    if len(set(lengths)) > 1:
        raise ValueError(
            "rows, true_class, predicted_class, label_at_prediction and event_ms must have one value for "
            f"each outcome, got the lengths {', '.join(map(str, lengths))}"
        )
    if len(scores.offsets):
        scores = checked(scores, len(rows))
    return Batch(rows, true_class, predicted_class, label_at_prediction, event_ms, scores)
