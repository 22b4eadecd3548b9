"""Flags of an outcome: 0/1 facts that every mechanism sums in addition to hits and label repeats.

A flag belongs to the outcome at which it was set, even if it also concerns the previous outcome. Windows
subtract the flags of the outcomes they drop, so the ring stores them with the outcome.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.jit import hot

FLAGS = 9
LOST_TWICE, LABEL_AT_PREDICTION_REPEAT, LABEL_AT_PREDICTION_PAIR = range(3)
TRANSITION, AUGMENTED, SHADOWED, CORRECTED, SCORED, MAJORITY = range(3, FLAGS)
"""Bit numbers of the flags.

LOST_TWICE: this outcome and the previous one were both wrong. LABEL_AT_PREDICTION_REPEAT: the label equals
the last one known when the prediction was made. LABEL_AT_PREDICTION_PAIR: such a label existed. TRANSITION:
the transition baseline was right. AUGMENTED: the Temporally Augmented classifier was right. SHADOWED: these
two and the prequential majority predicted the outcome. CORRECTED: Temporal Correction was right. SCORED: the
outcome had scores to correct. MAJORITY: the prequential majority was right.
"""
SHADOW_MARKS = TRANSITION
"""First of the bits that concern shadow classifiers."""


@hot
def bit(flags, k):
    """Value of flag k, 0 or 1."""
    return (flags >> k) & 1


@hot
def own_flags(m, true_class, predicted_class, label_at_prediction):
    """Compute the flags that need no shadow classifier; `label_at_prediction` is -1 if no label was known."""
    return (
        (m.last_missed & (true_class != predicted_class)) << LOST_TWICE
        | (label_at_prediction == true_class) << LABEL_AT_PREDICTION_REPEAT
        | (label_at_prediction >= 0) << LABEL_AT_PREDICTION_PAIR
    )
