"""Classifiers that need no features: how far labels alone, or one look at the previous label, would have got.

Uninformed, majority, random and persistent are in `measures`, whose gains compare with them. Those here are
counted outcome by outcome; where a caller does not keep their sums they are undefined (NaN).
"""

from __future__ import annotations

from streamwatch.core.measures import Floats, Totals, p_majority, p_persistent, ratio


def p_persistent_known(totals: Totals) -> Floats:
    """Accuracy of predicting the last label known when the prediction was made, known_repeats/known_pairs.

    What persistence would have achieved in production, where labels are late (Žliobaitė et al. 2015, eq. 7,
    on that label). Undefined before the first such label.
    """
    return ratio(totals.known_repeats, totals.known_pairs, totals.known_pairs > 0)


def p_temporal_correction(totals: Totals) -> Floats:
    """Accuracy of the model's scores corrected by the previous label, over the outcomes that carry scores.

    argmax_i P(y=i|X)·P(y_t=i|y_{t-1})/P(y=i) (Žliobaitė et al. 2015, §3.1). Undefined without scores.
    """
    return ratio(totals.corrected, totals.scored, totals.scored > 0)


def p_temporally_augmented(totals: Totals) -> Floats:
    """Accuracy of the most frequent class given (ŷ_t, y_{t-1}), falling back to ŷ_t.

    A surrogate, from the outside, of the classifier that Žliobaitė et al. 2015, §3.2, retrain with the
    previous label as a further feature (order 1).
    """
    return ratio(totals.augmented, totals.augmented_n, totals.augmented_n > 0)


def p_transition(totals: Totals) -> Floats:
    """Accuracy of the most frequent successor of the previous label, argmax P(y|y_{t-1}).

    Žliobaitė et al. 2015, §4.1. Undefined before the second outcome.
    """
    return ratio(totals.transition, totals.transition_n, totals.transition_n > 0)


def temporal_dependence(totals: Totals) -> Floats:
    """How much more persistence gets right than the majority class, p_persistent - p_majority, in [-1, 1].

    Above 0 labels depend on the one before, and accuracy and κ flatter a classifier that follows them
    (Žliobaitė et al. 2015, §7). Undefined before the second outcome.
    """
    return p_persistent(totals) - p_majority(totals)
