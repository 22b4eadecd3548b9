"""The last outcomes of a model as a ring of (label, prediction) pairs packed in 32 bits.

One ring per model serves every sliding window and the small buckets of every ADWIN window. The newest outcome
has age 0. Passed as (rings, row) or, on rare paths, as the row itself.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.kernel.compiled import hot

MAX_CLASS = 0xFFFF


@hot
def packed(truth, predicted):
    """One ring entry."""
    return np.uint32((truth << 16) | predicted)


@hot
def truth_of(entry):
    """The label of an entry."""
    return int(entry >> 16)


@hot
def predicted_of(entry):
    """The prediction of an entry."""
    return int(entry & 0xFFFF)


@hot
def position_of(head, age, size):
    """Where the outcome of this age stands, if the next one goes to `head`."""
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
