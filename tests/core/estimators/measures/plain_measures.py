"""The slow, obvious twin: every measure from the raw list of weighted outcomes, in plain Python.

Undefined is None.
"""

from __future__ import annotations

import math
from typing import NamedTuple

LEAST = 0.05


class Flags(NamedTuple):
    """What else is known of an outcome: the last label known when it was predicted, and who was right.

    None where there was no such label, or nobody to predict.
    """

    label_at_prediction: object = None
    corrected: bool | None = None
    augmented: bool | None = None
    transition: bool | None = None
    majority: bool | None = None


class Remembered(NamedTuple):
    true_class: object
    predicted_class: object
    before: object
    """The stream's previous label, None for its first outcome."""
    weight: float
    lost_before: bool | None = None
    """Whether the stream's previous prediction was wrong."""
    flags: Flags = Flags()


def remembered(stream, weight_of_age):
    """Outcomes of a stream of (truth, predicted[, marks]), each with its weight now; age 0 is the newest."""
    out = []
    for i, (true_class, predicted_class, *flags) in enumerate(stream):
        now = weight_of_age(len(stream) - 1 - i)
        if now > 0:
            before = stream[i - 1] if i else None
            out.append(
                Remembered(
                    true_class,
                    predicted_class,
                    before[0] if before else None,
                    now,
                    before[0] != before[1] if before else None,
                    flags[0] if flags else Flags(),
                )
            )
    return out


def landmark(pairs):
    return remembered(pairs, lambda _: 1.0)


def fading(alpha):
    return lambda pairs: remembered(pairs, lambda age: alpha**age)


def sliding(size):
    return lambda pairs: remembered(pairs, lambda age: 1.0 if age < size else 0.0)


def weight(outcomes, holds=lambda _: True):
    return math.fsum(o.weight for o in outcomes if holds(o))


def classes(outcomes):
    return sorted({o.true_class for o in outcomes} | {o.predicted_class for o in outcomes})


def true_classes(outcomes, k):
    return weight(outcomes, lambda o: o.true_class == k)


def predictions(outcomes, k):
    return weight(outcomes, lambda o: o.predicted_class == k)


def agreements(outcomes, k):
    return weight(outcomes, lambda o: o.true_class == o.predicted_class == k)


def present(outcomes):
    return [k for k in classes(outcomes) if true_classes(outcomes, k) >= LEAST]


def accuracy(outcomes):
    return (
        weight(outcomes, lambda o: o.true_class == o.predicted_class) / weight(outcomes) if outcomes else None
    )


def effective_sample_size(outcomes):
    return weight(outcomes) ** 2 / math.fsum(o.weight**2 for o in outcomes) if outcomes else None


def majority(outcomes):
    return max(true_classes(outcomes, k) for k in classes(outcomes)) / weight(outcomes)


def persistent(outcomes):
    pairs = weight(outcomes, lambda o: o.before is not None)
    return weight(outcomes, lambda o: o.true_class == o.before) / pairs if pairs > 0 else None


def random(outcomes):
    n = weight(outcomes)
    return math.fsum(true_classes(outcomes, k) / n * predictions(outcomes, k) / n for k in classes(outcomes))


def uninformed(outcomes):
    return 1 / len(present(outcomes)) if present(outcomes) else None


def _gain(outcomes, baseline, total):
    if baseline is None or total * (1 - baseline) < LEAST:
        return None
    return (accuracy(outcomes) - baseline) / (1 - baseline)


def kappa(outcomes):
    return _gain(outcomes, random(outcomes), weight(outcomes))


def kappa_majority(outcomes):
    return _gain(outcomes, majority(outcomes), weight(outcomes))


def kappa_persistent(outcomes):
    return _gain(outcomes, persistent(outcomes), weight(outcomes, lambda o: o.before is not None))


def kappa_plus(outcomes):
    gains = kappa(outcomes), kappa_persistent(outcomes)
    return None if None in gains else math.sqrt(max(0.0, gains[0]) * max(0.0, gains[1]))


def mcc(outcomes):
    """Covariance of the class indicators over their standard deviations, summed over classes."""
    n = weight(outcomes)
    together = spread_t = spread_p = 0.0
    for k in classes(outcomes):
        t, p = true_classes(outcomes, k) / n, predictions(outcomes, k) / n
        together += agreements(outcomes, k) / n - t * p
        spread_t += t * (1 - t)
        spread_p += p * (1 - p)
    missed = min(n - max(of(outcomes, k) for k in classes(outcomes)) for of in (true_classes, predictions))
    return max(-1.0, min(1.0, together / math.sqrt(spread_t * spread_p))) if missed >= LEAST else None


def recall(outcomes, k):
    return agreements(outcomes, k) / true_classes(outcomes, k) if true_classes(outcomes, k) >= LEAST else None


def precision(outcomes, k):
    return agreements(outcomes, k) / predictions(outcomes, k) if predictions(outcomes, k) >= LEAST else None


def _recalls(outcomes):
    return [recall(outcomes, k) for k in present(outcomes)]


def arithmetic(outcomes):
    recalls = _recalls(outcomes)
    return math.fsum(recalls) / len(recalls) if recalls else None


def geometric(outcomes):
    recalls = _recalls(outcomes)
    return math.prod(recalls) ** (1 / len(recalls)) if recalls else None


def harmonic(outcomes):
    recalls = _recalls(outcomes)
    if not recalls:
        return None
    return 0.0 if 0.0 in recalls else len(recalls) / math.fsum(1 / r for r in recalls)


def macro_f1(outcomes):
    sizes = {k: true_classes(outcomes, k) + predictions(outcomes, k) for k in classes(outcomes)}
    scores = [2 * agreements(outcomes, k) / size for k, size in sizes.items() if size >= LEAST]
    return math.fsum(scores) / len(scores) if scores else None


def class_truth(outcomes, k):
    seen = true_classes(outcomes, k) + predictions(outcomes, k) >= LEAST
    return true_classes(outcomes, k) / weight(outcomes) if seen else None


def class_predicted(outcomes, k):
    seen = true_classes(outcomes, k) + predictions(outcomes, k) >= LEAST
    return predictions(outcomes, k) / weight(outcomes) if seen else None


def temporal_dependence(outcomes):
    return None if persistent(outcomes) is None else persistent(outcomes) - majority(outcomes)


def _right(outcomes, of):
    """Share of those right among the outcomes somebody predicted."""
    asked = [o for o in outcomes if of(o) is not None]
    return weight(asked, of) / weight(asked) if asked else None


def persistent_at_prediction(outcomes):
    return _right(
        outcomes,
        lambda o: (
            None if o.flags.label_at_prediction is None else o.true_class == o.flags.label_at_prediction
        ),
    )


def temporal_correction(outcomes):
    return _right(outcomes, lambda o: o.flags.corrected)


def temporally_augmented(outcomes):
    return _right(outcomes, lambda o: o.flags.augmented)


def transition(outcomes):
    return _right(outcomes, lambda o: o.flags.transition)


def majority_prequential(outcomes):
    return _right(outcomes, lambda o: o.flags.majority)


def kappa_majority_prequential(outcomes):
    guessed = weight(outcomes, lambda o: o.flags.majority is not None)
    return _gain(outcomes, majority_prequential(outcomes), guessed)


MEASURES = {
    "accuracy_ratio": accuracy,
    "kappa": kappa,
    "kappa_majority": kappa_majority,
    "kappa_majority_prequential": kappa_majority_prequential,
    "kappa_persistent": kappa_persistent,
    "kappa_plus": kappa_plus,
    "mcc": mcc,
    "arithmetic_mean_recall_ratio": arithmetic,
    "geometric_mean_recall_ratio": geometric,
    "harmonic_mean_recall_ratio": harmonic,
    "macro_f1_ratio": macro_f1,
    "temporal_dependence": temporal_dependence,
}
PER_CLASS = {
    "recall_ratio": recall,
    "precision_ratio": precision,
    "class_truth_ratio": class_truth,
    "class_predicted_ratio": class_predicted,
}
BASELINES = {"majority": majority, "persistent": persistent, "random": random, "uninformed": uninformed}
"""Those that need labels only."""
MARKED = {
    "majority_prequential": majority_prequential,
    "persistent_at_prediction": persistent_at_prediction,
    "temporal_correction": temporal_correction,
    "temporally_augmented": temporally_augmented,
    "transition": transition,
}
"""Baselines somebody else counted, outcome by outcome."""


def agree(ours, theirs, tolerance=1e-9):
    """Whether a streamed value (NaN or None where undefined) is the plain one."""
    undefined = ours is None or math.isnan(ours)
    if theirs is None or undefined:
        return theirs is None and undefined
    return math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)
