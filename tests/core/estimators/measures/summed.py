"""Agreement totals summed the obvious way, for tests that need no kernel."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from streamwatch.core.estimators.measures.measures import Totals

K = 4
FIELDS = tuple(each.name for each in fields(Totals) if each.init)
_SUMS = (
    "n", "hits", "repeats", "pairs", "squares", "lost_twice",
    "label_at_prediction_repeats", "label_at_prediction_pairs",
    "corrected", "scored", "augmented", "augmented_n", "transition", "transition_n",
    "majority", "majority_n",
)  # fmt: skip


def totals_of(outcomes, size=K):
    """Totals of one model from what it remembers (`plain_measures.Remembered`)."""
    true_class, predicted_class, agreed = np.zeros((3, 1, size))
    sums = dict.fromkeys(_SUMS, 0.0)
    for t, p, before, w, lost_before, flags in outcomes:
        true_class[0, t] += w
        predicted_class[0, p] += w
        agreed[0, t] += w * (t == p)
        happened = {
            "n": True,
            "hits": t == p,
            "repeats": t == before,
            "pairs": before is not None,
            "squares": w,
            "lost_twice": t != p and lost_before,
            "label_at_prediction_repeats": t == flags.label_at_prediction,
            "label_at_prediction_pairs": flags.label_at_prediction is not None,
            "corrected": flags.corrected,
            "scored": flags.corrected is not None,
            "augmented": flags.augmented,
            "augmented_n": flags.augmented is not None,
            "transition": flags.transition,
            "transition_n": flags.transition is not None,
            "majority": flags.majority,
            "majority_n": flags.majority is not None,
        }
        for name, times in happened.items():
            sums[name] += w * (times or 0)
    squares = sums.pop("squares")
    sums["n_eff"] = sums["n"] ** 2 / squares if squares else np.nan
    scalars = {name: np.array([value], np.float64) for name, value in sums.items()}
    return Totals(true_class=true_class, predicted_class=predicted_class, agreed=agreed, **scalars)


def confusion(rows):
    """Totals of one model with the given confusion matrix (rows are truth) and labels in no order."""
    matrix = np.array(rows, np.float64)
    n = np.array([matrix.sum()])
    true_class, predicted_class, agreed = matrix.sum(1), matrix.sum(0), matrix.diagonal()
    hits = np.array([agreed.sum()])
    return Totals(n, hits, np.zeros(1), n - 1, n, true_class[None], predicted_class[None], agreed[None])


def stack(many):
    """Totals of several models as one."""
    return Totals(*(np.concatenate([getattr(t, f) for t in many]) for f in FIELDS))


def drawn(seed, n, size=K, accuracy=0.6):
    """A stream of labels that often repeat, predicted right with some probability."""
    rng = np.random.default_rng(seed)
    true_class = [0]
    for _ in range(n - 1):
        true_class.append(true_class[-1] if rng.random() < 0.5 else int(rng.integers(size)))
    return [(t, t if rng.random() < accuracy else int(rng.integers(size))) for t in true_class]
