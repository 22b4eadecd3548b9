"""Classifiers without features, told beside every model: what it must beat to be worth running."""

from __future__ import annotations

from streamwatch.core import baselines, measures
from streamwatch.core.entries import Measure

BASELINES: tuple[Measure, ...] = (
    Measure(
        "majority",
        "always the most frequent class, known in hindsight",
        "max truth/n",
        "Žliobaitė et al. 2015, eq. 6",
        "O(K) a report",
        measures.p_majority,
    ),
    Measure(
        "persistent",
        "always the previous label",
        "repeats/pairs",
        "Žliobaitė et al. 2015, eq. 7",
        "O(1) a report",
        measures.p_persistent,
    ),
    Measure(
        "persistent_known",
        "always the last label that was known when the prediction was made: what could be deployed",
        "known_repeats/known_pairs",
        "Žliobaitė et al. 2015, eq. 7, on that label",
        "O(1) a report",
        baselines.p_persistent_known,
    ),
    Measure(
        "random",
        "at random, with the model's own shares of predictions",
        "Σ truth·predicted/n²",
        "Žliobaitė et al. 2015, eq. 9",
        "O(K) a report",
        measures.p_chance,
    ),
    Measure(
        "uninformed",
        "at random, uniformly over the classes present",
        "1/K",
        "Žliobaitė et al. 2015, eq. 5",
        "O(K) a report",
        measures.p_uninformed,
    ),
    Measure(
        "transition",
        "the most frequent successor of the previous label",
        "argmax P(y|y_{t-1})",
        "Žliobaitė et al. 2015, §4.1",
        "O(1) a report; keeps K² counts a model",
        baselines.p_transition,
    ),
    Measure(
        "temporal_correction",
        "the model's scores, corrected by the previous label; over outcomes with scores",
        "argmax P(y|X)·P(y|y_{t-1})/P(y)",
        "Žliobaitė et al. 2015, §3.1",
        "O(1) a report; keeps K² counts a model",
        baselines.p_temporal_correction,
    ),
    Measure(
        "temporally_augmented",
        "the most frequent label given prediction and previous label; a surrogate of a retrained classifier",
        "argmax P(y|ŷ_t, y_{t-1}), ŷ_t where nothing is known",
        "Žliobaitė et al. 2015, §3.2",
        "O(1) a report; keeps K³ counts a model",
        baselines.p_temporally_augmented,
    ),
)
