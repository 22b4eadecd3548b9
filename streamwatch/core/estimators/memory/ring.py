"""Ring of a model's latest outcomes as (label, prediction, flags), packed in one integer each.

The flags take the lowest 9 bits, and prediction and label 11 bits each above them; with more than 2,048
classes, entries have 64 bits and classes 27. One ring per model serves all sliding windows and the small
buckets of all ADWIN windows. The newest outcome has age 0.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Any

import numpy as np

from streamwatch.core.estimators.memory.flags import FLAGS
from streamwatch.core.jit import class_bits, hot

MAX_CLASS = 0xFFFF
NARROW_CLASSES = 1 << 11


def entry_type(classes: int) -> np.dtype[Any]:
    """Entry type for this number of classes."""
    return np.dtype(np.uint32 if classes <= NARROW_CLASSES else np.int64)


def true_class_shift(entries: np.dtype[Any]) -> int:
    """Number of bits below the label in entries of a type."""
    return FLAGS + (11 if entries.itemsize == 4 else 27)


@hot
def packed(rings, true_class, predicted_class, flags):
    """Pack an outcome as an entry of these rings."""
    bits = class_bits(rings)
    return (true_class << (FLAGS + bits)) | (predicted_class << FLAGS) | flags


@hot
def true_class_of(entry):
    """Label of an entry."""
    return np.int64(entry) >> (FLAGS + class_bits(entry))


@hot
def predicted_class_of(entry):
    """Prediction of an entry."""
    return (np.int64(entry) >> FLAGS) & ((1 << class_bits(entry)) - 1)


@hot
def flags_of(entry):
    """Flags of an entry."""
    return np.int64(entry) & ((1 << FLAGS) - 1)


@hot
def position_of(head, age, size):
    """Ring position of the outcome of this age; `head` is where the next outcome goes."""
    position = head - 1 - age
    return position + size if position < 0 else position


@hot
def before(position, size):
    """Position of the next older outcome."""
    return size - 1 if position == 0 else position - 1


@hot
def after(position, size):
    """Position of the next newer outcome."""
    return 0 if position + 1 == size else position + 1
