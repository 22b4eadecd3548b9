"""Baseline classifiers without features: accuracy from labels alone, or from the previous label.

Uninformed, both majorities, random and persistent are in `measures.measures`. The baselines here are counted
outcome by outcome; they are undefined (NaN) if the caller does not keep their sums.
"""

from __future__ import annotations

from streamwatch.core.estimators.agreement import Floats, Totals
from streamwatch.core.estimators.entries import Measure
from streamwatch.core.estimators.measures import measures
from streamwatch.core.estimators.measures.measures import p_majority, p_persistent, ratio


def p_persistent_at_prediction(totals: Totals) -> Floats:
    """Accuracy of predicting the last label known when the prediction was made.

    This is what persistence would have achieved in production, where labels are late (Žliobaitė et al. 2015,
    eq. 7, applied to that label). Undefined before the first such label.
    """
    return ratio(
        totals.label_at_prediction_repeats,
        totals.label_at_prediction_pairs,
        totals.label_at_prediction_pairs > 0,
    )


def p_temporal_correction(totals: Totals) -> Floats:
    """Accuracy of the model's scores corrected by the previous label, over the outcomes that carry scores.

    argmax_i P(y=i|X)·P(y_t=i|y_{t-1})/P(y=i) (Žliobaitė et al. 2015, §3.1). Undefined without scores.
    """
    return ratio(totals.corrected, totals.scored, totals.scored > 0)


def p_temporally_augmented(totals: Totals) -> Floats:
    """Accuracy of the most frequent class given (ŷ_t, y_{t-1}), or of ŷ_t where nothing was counted yet.

    It approximates, from outcomes alone, the classifier that Žliobaitė et al. 2015, §3.2, retrain with the
    previous label as an additional feature (order 1).
    """
    return ratio(totals.augmented, totals.augmented_n, totals.augmented_n > 0)


def p_transition(totals: Totals) -> Floats:
    """Accuracy of the most frequent successor of the previous label, argmax P(y|y_{t-1}).

    Žliobaitė et al. 2015, §4.1. Undefined before the second outcome.
    """
    return ratio(totals.transition, totals.transition_n, totals.transition_n > 0)


def temporal_dependence(totals: Totals) -> Floats:
    """Gain of persistence over the majority class, p_persistent - p_majority, in [-1, 1].

    Above 0, labels depend on the previous one, and accuracy and κ flatter a classifier that repeats it
    (Žliobaitė et al. 2015, §7). Undefined before the second outcome.
    """
    return p_persistent(totals) - p_majority(totals)


BASELINES: tuple[Measure, ...] = (
    Measure(
        "majority",
        "always the most frequent class, known in hindsight",
        "max truth/n",
        "Žliobaitė et al. 2015, eq. 6",
        "O(K) per report",
        measures.p_majority,
    ),
    Measure(
        "majority_prequential",
        "the class that came most often so far, guessed before the label is known",
        "argmax n(y), counts faded by .999",
        "Bifet et al. 2015, §5.3",
        "O(1) per report; keeps K counts per model",
        measures.p_majority_prequential,
    ),
    Measure(
        "persistent",
        "always the previous label",
        "repeats/pairs",
        "Žliobaitė et al. 2015, eq. 7",
        "O(1) per report",
        measures.p_persistent,
    ),
    Measure(
        "persistent_at_prediction",
        "always the last label that was known when the prediction was made: what could be deployed",
        "label_at_prediction_repeats/label_at_prediction_pairs",
        "Žliobaitė et al. 2015, eq. 7, on that label",
        "O(1) per report",
        p_persistent_at_prediction,
    ),
    Measure(
        "random",
        "at random, with the model's own shares of predictions",
        "Σ truth·predicted/n²",
        "Žliobaitė et al. 2015, eq. 9",
        "O(K) per report",
        measures.p_chance,
    ),
    Measure(
        "uninformed",
        "at random, uniformly over the classes present",
        "1/K",
        "Žliobaitė et al. 2015, eq. 5",
        "O(K) per report",
        measures.p_uninformed,
    ),
    Measure(
        "transition",
        "the most frequent successor of the previous label",
        "argmax P(y|y_{t-1})",
        "Žliobaitė et al. 2015, §4.1",
        "O(1) per report; keeps K² counts per model",
        p_transition,
    ),
    Measure(
        "temporal_correction",
        "the model's scores, corrected by the previous label; over outcomes with scores",
        "argmax P(y|X)·P(y|y_{t-1})/P(y)",
        "Žliobaitė et al. 2015, §3.1",
        "O(1) per report; keeps K² counts per model",
        p_temporal_correction,
    ),
    Measure(
        "temporally_augmented",
        "the most frequent label given prediction and previous label; a surrogate of a retrained classifier",
        "argmax P(y|ŷ_t, y_{t-1}), ŷ_t where nothing is known",
        "Žliobaitė et al. 2015, §3.2",
        "O(1) per report; keeps K³ counts per model",
        p_temporally_augmented,
    ),
)
