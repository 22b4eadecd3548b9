"""The last outcomes of a model as a ring of (label, prediction, flags), packed in one integer each.

Marks take the lowest 9 bits, classes 11 bits each above them; with more than 2,048 classes entries are 64
bits and classes have 27. One ring per model serves every sliding window and the small buckets of every ADWIN
window. The newest outcome has age 0.
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
    """Type that holds an entry when there are so many classes."""
    return np.dtype(np.uint32 if classes <= NARROW_CLASSES else np.int64)


def true_class_shift(entries: np.dtype[Any]) -> int:
    """Bits below the label in entries of a type."""
    return FLAGS + (11 if entries.itemsize == 4 else 27)


@hot
def packed(rings, true_class, predicted_class, flags):
    """One entry of these rings."""
    bits = class_bits(rings)
    return (true_class << (FLAGS + bits)) | (predicted_class << FLAGS) | flags


@hot
def true_class_of(entry):
    """The label of an entry."""
    return np.int64(entry) >> (FLAGS + class_bits(entry))


@hot
def predicted_class_of(entry):
    """The prediction of an entry."""
    return (np.int64(entry) >> FLAGS) & ((1 << class_bits(entry)) - 1)


@hot
def flags_of(entry):
    """The flags of an entry."""
    return np.int64(entry) & ((1 << FLAGS) - 1)


@hot
def position_of(head, age, size):
    """Position of the outcome of this age, if the next one goes to `head`."""
    position = head - 1 - age
    return position + size if position < 0 else position


@hot
def before(position, size):
    """The position of the next older outcome."""
    return size - 1 if position == 0 else position - 1


@hot
def after(position, size):
    """The position of the next newer outcome."""
    return 0 if position + 1 == size else position + 1
