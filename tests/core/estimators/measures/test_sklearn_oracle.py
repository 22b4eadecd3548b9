"""What the kernel counts, beside scikit-learn, at every prefix: the landmark, and windows sliding over the
stream.

κ, MCC, balanced accuracy, macro F1 and accuracy are computed by scikit-learn from the raw labels of the
prefix or window (1e-9). Where it makes a value up for what is undefined, ours is NaN.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn import metrics as peer

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.measures import measures
from streamwatch.core.specs import LandmarkSpec, SlidingSpec
from tests.layouts import EVERYTHING
from tests.tiers import few

N = 240
WINDOWS = (LandmarkSpec(), SlidingSpec(25), SlidingSpec(100))
MEASURES = {
    "accuracy": (measures.accuracy, peer.accuracy_score),
    "kappa": (measures.kappa, peer.cohen_kappa_score),
    "mcc": (measures.mcc, peer.matthews_corrcoef),
    "balanced accuracy": (measures.arithmetic_mean_recall, peer.balanced_accuracy_score),
    "macro F1": (measures.macro_f1, lambda t, p: peer.f1_score(t, p, average="macro")),
}


@cache
def traced(classes):
    """A stream with a rare class, a class that appears late, and a model whose error jumps; and its trace."""
    rng = np.random.default_rng(classes)
    chance = np.r_[np.full(classes - 1, 1.0), 0.2]
    true_class = rng.choice(classes, N, p=chance / chance.sum()).astype(np.int32)
    true_class[: N // 2] = np.minimum(true_class[: N // 2], max(1, classes - 2))
    error = np.where(np.arange(N) < 150, 0.2, 0.7)
    predicted_class = np.where(rng.random(N) < error, rng.integers(0, classes, N), true_class).astype(
        np.int32
    )
    landmark, fading, faded, _, _, *adwins = EVERYTHING.forgetting
    forgetting = (landmark, *WINDOWS[1:], fading, faded, *adwins)
    table = ModelTable(replace(EVERYTHING, forgetting=forgetting, max_models=1, max_classes=classes))
    rows = np.full(N, table.add_model(), np.int32)
    return true_class, predicted_class, table.trace(rows, true_class, predicted_class).totals


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("index", range(len(WINDOWS)), ids=[w.name for w in WINDOWS])
@pytest.mark.parametrize("classes", few([3, 10, 2], 1))
def test_a_traced_measure_is_scikit_learns_at_every_prefix(classes, index, measure) -> None:
    true_class, predicted_class, totals = traced(classes)
    mechanism = WINDOWS[index]
    width = mechanism.size if isinstance(mechanism, SlidingSpec) else N
    ours, theirs = MEASURES[measure]
    values = ours(totals[index])
    undefined = 0
    for end in range(1, N + 1):
        window = slice(max(0, end - width), end)
        t, p = true_class[window], predicted_class[window]
        if np.isnan(values[end - 1]):
            undefined += 1
            assert min(len(set(t.tolist())), len(set(p.tolist()))) == 1, end
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = theirs(t, p)
        assert values[end - 1] == pytest.approx(expected, abs=1e-9), end
    assert undefined <= 20
