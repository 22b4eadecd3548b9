"""Ring of the last losses of a model, one bit each, at most `MOST`."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.jit import hot

MOST = 1024
WORDS = MOST // 64


@hot
def loss_at(words, position):
    """Loss at a position of the ring, 0 or 1."""
    return np.int64((words[position >> 6] >> np.uint64(position & 63)) & np.uint64(1))


@hot
def put_loss(words, position, miss):
    """Set the loss at a position of the ring."""
    bit = np.uint64(1) << np.uint64(position & 63)
    words[position >> 6] = (words[position >> 6] | bit) if miss else (words[position >> 6] & ~bit)


@hot
def behind(head, steps, size):
    """Position `steps` before the head of a ring; `steps` is at most `size`."""
    position = head - steps
    return position if position >= 0 else position + size
