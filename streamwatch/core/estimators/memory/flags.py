"""The flags of an outcome: 0/1 facts about it that every mechanism sums beside hits and label repeats.

A mark belongs to the outcome at which it was made, also where it looks back at the one before. Windows take
the flags of what they drop out again, so the ring keeps them with the outcome.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.jit import hot

FLAGS = 9
LOST_TWICE, LABEL_AT_PREDICTION_REPEAT, LABEL_AT_PREDICTION_PAIR = range(3)
TRANSITION, AUGMENTED, SHADOWED, CORRECTED, SCORED, MAJORITY = range(3, FLAGS)
"""Bits. This outcome and the one before were both wrong; its label equals the last one that was known when it
was predicted; there was such a label; the transition baseline was right; the Temporally Augmented classifier
was right; those two and the prequential majority predicted it; Temporal Correction was right; it had scores
to correct; the prequential majority was right."""
SHADOW_MARKS = TRANSITION
"""This bit and all above are about shadow classifiers."""


@hot
def bit(flags, k):
    """Tell whether mark k is set, as 0 or 1."""
    return (flags >> k) & 1


@hot
def own_flags(m, true_class, predicted_class, label_at_prediction):
    """Flags that need no shadow classifier; `label_at_prediction` is -1 where no label was known."""
    return (
        (m.last_missed & (true_class != predicted_class)) << LOST_TWICE
        | (label_at_prediction == true_class) << LABEL_AT_PREDICTION_REPEAT
        | (label_at_prediction >= 0) << LABEL_AT_PREDICTION_PAIR
    )
