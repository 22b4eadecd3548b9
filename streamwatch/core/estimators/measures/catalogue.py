"""Catalogue entries of measures, bounds and baselines: functions of the agreement totals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamwatch.core.estimators.measures import measures
from streamwatch.core.estimators.measures.measures import Floats, Totals


@dataclass(frozen=True, slots=True)
class Measure:
    """Measure or baseline, a function of the totals.

    `name` is the metric, or the value of label `baseline`.
    """

    name: str
    help: str
    formula: str
    source: str
    cost: str
    """Time to compute it from one model's totals, and what the kernel must keep for it beyond these."""
    of: Callable[[Totals], Floats]


@dataclass(frozen=True, slots=True)
class Bound:
    """Bound of the true accuracy at a given error probability; `name` is the value of the `bound` label."""

    name: str
    help: str
    formula: str
    source: str
    cost: str
    """Time to compute it from one model's totals."""
    of: Callable[[Totals, float], Floats]


MEASURES: tuple[Measure, ...] = (
    Measure(
        "accuracy_ratio",
        "Share of outcomes the model got right",
        "p = hits/n",
        "Dawid 1984; Gama, Sebastião, Rodrigues 2009",
        "O(1) per report",
        measures.accuracy,
    ),
    Measure(
        "kappa",
        "Gain over chance agreement: 1 is perfect, 0 no better than guessing with the same class shares",
        "(p - p_chance)/(1 - p_chance)",
        "Cohen 1960; Bifet et al. 2015, §5.1",
        "O(K) per report",
        measures.kappa,
    ),
    Measure(
        "kappa_majority",
        "Gain over always predicting the most frequent class",
        "(p - p_majority)/(1 - p_majority)",
        "Bifet et al. 2015, §5.3",
        "O(K) per report",
        measures.kappa_majority,
    ),
    Measure(
        "kappa_majority_prequential",
        "Gain over guessing the class that came most often so far, before the label is known",
        "(p - p_majority_prequential)/(1 - p_majority_prequential)",
        "Bifet et al. 2015, §5.3",
        "O(1) per report; keeps K counts per model",
        measures.kappa_majority_prequential,
    ),
    Measure(
        "kappa_persistent",
        "Gain over predicting the previous label: below 0, the model is worse than no model",
        "(p - p_persistent)/(1 - p_persistent)",
        "Žliobaitė et al. 2015, eq. 13",
        "O(1) per report",
        measures.kappa_persistent,
    ),
    Measure(
        "kappa_plus",
        "Geometric mean of the gains over chance and over the previous label, 0 unless both are positive",
        "√(max(0,κ)·max(0,κ_per))",
        "Žliobaitė et al. 2015, eq. 14",
        "O(K) per report",
        measures.kappa_plus,
    ),
    Measure(
        "mcc",
        "Matthews correlation of truth and prediction, R_K for more than two classes",
        "(p - Σtq)/(√Σt(1-t)·√Σq(1-q)), t = truth/n, q = predicted/n",
        "Gorodkin 2004; Bifet et al. 2015, §5.1",
        "O(K) per report",
        measures.mcc,
    ),
    Measure(
        "arithmetic_mean_recall_ratio",
        "Mean recall over the classes present (balanced accuracy)",
        "A = Σ recall/K",
        "Bifet et al. 2015, §5.2",
        "O(K) per report",
        measures.arithmetic_mean_recall,
    ),
    Measure(
        "geometric_mean_recall_ratio",
        "Geometric mean of recall over the classes present, 0 if one is never recognised",
        "G = (Π recall)^(1/K)",
        "Bifet et al. 2015, §5.2",
        "O(K) per report",
        measures.geometric_mean_recall,
    ),
    Measure(
        "harmonic_mean_recall_ratio",
        "Harmonic mean of recall over the classes present, 0 if one is never recognised",
        "H = K/Σ(1/recall)",
        "Bifet et al. 2015, §5.2",
        "O(K) per report",
        measures.harmonic_mean_recall,
    ),
    Measure(
        "macro_f1_ratio",
        "Mean F1 over the classes in truth or predictions",
        "mean of 2·agreed/(truth + predicted)",
        "van Rijsbergen 1979",
        "O(K) per report",
        measures.macro_f1,
    ),
    Measure(
        "kappa_standard_error",
        "Standard error of kappa",
        "√(p(1-p)/n_eff)/(1 - p_chance)",
        "Cohen 1960; Žliobaitė et al. 2015, eq. 11",
        "O(K) per report",
        measures.kappa_standard_error,
    ),
    Measure(
        "kappa_zscore",
        "Kappa in standard deviations: above 1.645, better than chance at 5 % (one-sided); with labels of "
        "lag-1 correlation .5, .7, .9, at 9, 16, 31 %",
        "κ/δ₀, δ₀ = √(p_c + p_c² - Σtq(t+q))/((1-p_c)√n_eff)",
        "Fleiss, Cohen, Everitt 1969",
        "O(K) per report",
        measures.kappa_zscore,
    ),
    Measure(
        "loss_autocorrelation",
        "Correlation of an outcome's loss with the previous one; bounds assume 0 and cover less above it",
        "ρ = (lost_twice/pairs - E²)/(E(1-E)), E = 1 - p",
        "Box, Jenkins 1970",
        "O(1) per report",
        measures.loss_autocorrelation,
    ),
    Measure(
        "effective_sample_size_autocorrelated",
        "Number of independent outcomes with as much information as these correlated ones",
        "n_eff·(1-ρ)/(1+ρ)",
        "Bayley, Hammersley 1946",
        "O(1) per report",
        measures.effective_sample_size_autocorrelated,
    ),
    Measure(
        "temporal_dependence",
        "Accuracy of the previous label minus that of the majority class: above 0, labels come in runs",
        "p_persistent - p_majority",
        "Žliobaitė et al. 2015, §7",
        "O(K) per report",
        measures.temporal_dependence,
    ),
)
"""Measures with one series per model and mechanism."""

PER_CLASS: tuple[Measure, ...] = (
    Measure(
        "recall_ratio",
        "Share of a class's outcomes that was recognised",
        "agreed/truth",
        "Bifet et al. 2015, §5.2",
        "O(K) per report",
        measures.recall,
    ),
    Measure(
        "precision_ratio",
        "Share of a class's predictions that was right",
        "agreed/predicted",
        "van Rijsbergen 1979",
        "O(K) per report",
        measures.precision,
    ),
    Measure(
        "class_truth_ratio",
        "Share of outcomes whose label is this class",
        "truth/n",
        "Žliobaitė et al. 2015, §4.1",
        "O(K) per report",
        measures.class_truth,
    ),
    Measure(
        "class_predicted_ratio",
        "Share of outcomes predicted as this class",
        "predicted/n",
        "Žliobaitė et al. 2015, §4.1",
        "O(K) per report",
        measures.class_predicted,
    ),
)
"""Measures with one series per model and class, under one mechanism; the most informative first."""

BOUNDS: tuple[Bound, ...] = (
    Bound(
        "hoeffding",
        "the true accuracy is at least this",
        "max(0, p - ε), ε = √(ln(2/δ)/(2·n_eff))",
        "Hoeffding 1963; Gama, Sebastião, Rodrigues 2009, §3.2",
        "O(1) per report",
        measures.hoeffding_lower,
    ),
    Bound(
        "hoeffding_upper",
        "the true accuracy is at most this",
        "min(1, p + ε), ε = √(ln(2/δ)/(2·n_eff))",
        "Hoeffding 1963; Gama, Sebastião, Rodrigues 2009, §3.2",
        "O(1) per report",
        measures.hoeffding_upper,
    ),
    Bound(
        "chernoff",
        "the true accuracy is at least this; tighter for small errors",
        "max(0, 1 - E - c/2 - √(cE + c²/4)), c = 3·ln(2/δ)/n_eff, E = 1 - p",
        "Chernoff 1952; Gama, Sebastião, Rodrigues 2009, §3.2, solved for the mean",
        "O(1) per report",
        measures.chernoff_lower,
    ),
    Bound(
        "chernoff_upper",
        "the true accuracy is at most this; tighter for small errors",
        "min(1, 1 - E - c/2 + √(cE + c²/4)), c = 3·ln(2/δ)/n_eff, E = 1 - p",
        "Chernoff 1952; Gama, Sebastião, Rodrigues 2009, §3.2, solved for the mean",
        "O(1) per report",
        measures.chernoff_upper,
    ),
)
"""Bounds of the accuracy.

If losses are independent, a lower and its upper bound together fail with probability `confidence_delta` at
most.
"""

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
        measures.p_persistent_at_prediction,
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
        measures.p_transition,
    ),
    Measure(
        "temporal_correction",
        "the model's scores, corrected by the previous label; over outcomes with scores",
        "argmax P(y|X)·P(y|y_{t-1})/P(y)",
        "Žliobaitė et al. 2015, §3.1",
        "O(1) per report; keeps K² counts per model",
        measures.p_temporal_correction,
    ),
    Measure(
        "temporally_augmented",
        "the most frequent label given prediction and previous label; a surrogate of a retrained classifier",
        "argmax P(y|ŷ_t, y_{t-1}), ŷ_t where nothing is known",
        "Žliobaitė et al. 2015, §3.2",
        "O(1) per report; keeps K³ counts per model",
        measures.p_temporally_augmented,
    ),
)
