"""Admission of a batch: validates all indices and reserves class rows for the classes it contains.

Both need only `spans`, the number of class rows that each model owns (-1 for a row without a model). It is
small enough to stay in the cache, unlike the records.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.forgetting.adwin import FIRST_BLOCK_ROW
from streamwatch.core.estimators.kernel.shadow import NO_MORE, free_shadow, grow_shadow
from streamwatch.core.estimators.memory.allocator import (
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
def first_invalid(spans, rows, true_class, predicted_class, offsets, score_classes, max_classes):
    """Position of the first outcome whose row has no model or with a class out of range.

    -1 if all are valid.
    """
    for i in range(rows.shape[0]):
        if not 0 <= rows[i] < spans.shape[0] or spans[rows[i]] < 0:
            return i
        if not (0 <= true_class[i] < max_classes and 0 <= predicted_class[i] < max_classes):
            return i
    for i in range(offsets.shape[0] - 1):
        for k in range(offsets[i], offsets[i + 1]):
            if not 0 <= score_classes[k] < max_classes:
                return i
    return -1


@inner
def grow(models, spans, class_counts, allocator, row, classes):
    """Move a model's class rows to a span for this many classes; return whether the pool had room."""
    c = exponent_of(classes)
    start = allocate_span(class_counts, allocator, c)
    if start < 0:
        return False
    m = models[row]
    for k in range(spans[row]):
        for j in range(class_counts.shape[1]):
            class_counts[start + k, j] = class_counts[m.class_counts + k, j]
    if spans[row] > 0:
        free_span(class_counts, allocator, m.class_counts, exponent_of(spans[row]))
    m.class_counts = start
    spans[row] = 1 << c
    return True


@hot
def admit(
    models,
    spans,
    class_counts,
    class_counts_allocator,
    shadow_spans,
    shadows,
    shadow_allocator,
    parameters,
    rows,
    true_class,
    predicted_class,
    offsets,
    score_classes,
    max_classes,
):
    """Validate a batch and make room for its classes; return (result, position)."""
    invalid = first_invalid(spans, rows, true_class, predicted_class, offsets, score_classes, max_classes)
    if invalid >= 0:
        return INVALID, invalid
    for i in range(rows.shape[0]):
        row = rows[i]
        classes = max(true_class[i], predicted_class[i]) + 1
        if offsets.shape[0] > 0:
            for k in range(offsets[i], offsets[i + 1]):
                classes = max(classes, score_classes[k] + 1)
        if classes > spans[row] and not grow(
            models, spans, class_counts, class_counts_allocator, row, classes
        ):
            return FULL, i
        if classes > shadow_spans[row]:
            most = parameters[0].shadow_classes
            if not grow_shadow(models[row], shadow_spans, shadows, shadow_allocator, row, classes, most):
                return SHADOWS_FULL, i
    return ADMITTED, 0


@entry
def make_room(
    models,
    spans,
    class_counts,
    class_counts_allocator,
    shadow_spans,
    shadows,
    shadow_allocator,
    parameters,
    rows,
    true_class,
    predicted_class,
    offsets,
    score_classes,
    max_classes,
):
    """Call `admit` alone, without folding the batch."""
    return admit(
        models,
        spans,
        class_counts,
        class_counts_allocator,
        shadow_spans,
        shadows,
        shadow_allocator,
        parameters,
        rows,
        true_class,
        predicted_class,
        offsets,
        score_classes,
        max_classes,
    )


@entry
def claim_rows(models, spans, class_counts, class_counts_allocator, row, classes):
    """Give a model class rows for this many classes, without shadow counts; return whether there was room."""
    return classes <= spans[row] or grow(models, spans, class_counts, class_counts_allocator, row, classes)


@entry
def release(
    models,
    spans,
    class_counts,
    class_counts_allocator,
    blocks,
    block_allocator,
    shadow_spans,
    shadows,
    shadow_allocator,
    row,
):
    """Free the class rows, blocks and shadow counts of a model."""
    m = models[row]
    if spans[row] > 0:
        free_span(class_counts, class_counts_allocator, m.class_counts, exponent_of(spans[row]))
    for j in range(len(m.windows)):
        w = m.windows[j]
        for r in range(FIRST_BLOCK_ROW, w.rows):
            for k in range(w.buckets[r]):
                free_block(blocks, block_allocator, w.blocks[r - FIRST_BLOCK_ROW, k])
    for j in range(len(m.shadow)):
        s = m.shadow[j]
        if s.span > 0:
            free_shadow(shadows, shadow_allocator, s.start, s.span)
    spans[row] = -1
    shadow_spans[row] = NO_MORE


@entry
def claim_block(blocks, block_allocator, classes):
    """Allocate an empty block for this many classes, and return its slot."""
    return allocate_block(blocks, block_allocator, exponent_of(classes))
