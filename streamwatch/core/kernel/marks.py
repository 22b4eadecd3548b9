"""The marks of an outcome: 0/1 facts about it that every mechanism sums beside hits and label repeats.

A mark belongs to the outcome at which it was made, also where it looks back at the one before. Windows take
the marks of what they drop out again, so the ring keeps them with the outcome.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.kernel.compiled import hot

MARKS = 8
LOST_TWICE, KNOWN_REPEAT, KNOWN_PAIR, TRANSITION, AUGMENTED, SHADOWED, CORRECTED, SCORED = range(MARKS)
"""Bits. This outcome and the one before were both wrong; its label equals the last one that was known when it
was predicted; there was such a label; the transition baseline was right; the Temporally Augmented classifier
was right; those two predicted it; Temporal Correction was right; it had scores to correct."""
SHADOW_MARKS = TRANSITION
"""This bit and all above are about shadow classifiers."""


@hot
def bit(marks, k):
    """Whether mark k is set, as 0 or 1."""
    return (marks >> k) & 1


@hot
def own_marks(m, truth, predicted, known):
    """Marks that need no shadow classifier; `known` is the label known at the prediction, -1 without one."""
    return (
        (m.last_missed & (truth != predicted)) << LOST_TWICE
        | (known == truth) << KNOWN_REPEAT
        | (known >= 0) << KNOWN_PAIR
    )
