"""Segments of Elec2 that see every tenth outcome each: their No Change is that of all outcomes."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from streamwatch import Evaluator
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.specs import AdwinSpec, FadingSpec, LandmarkSpec, MonitorsSpec, SlidingSpec

PREDICTIONS = Path(__file__).parent / "elec2_predictions.csv.gz"
TENTHS = 10
CUTS = (1, 7, 20_000, 20_003)
MODELS = ("nochange", "ht@8", "nb@5", "levbag@8")


def kappa_persistent(hits, repeats, alpha):
    """κ_per of the outcomes of these hits and repeats (NaN for the stream's first), by weights."""
    weights = alpha ** np.arange(len(hits))[::-1]
    paired = ~np.isnan(repeats)
    p = np.sum(weights * hits) / np.sum(weights)
    persistent = np.sum((weights * repeats)[paired]) / np.sum(weights[paired])
    return (p - persistent) / (1.0 - persistent)


@pytest.mark.parametrize("alpha", [0.999, 0.99999])
def test_each_tenth_of_elec2_is_compared_with_the_previous_label_of_all_outcomes(alpha):
    with gzip.open(PREDICTIONS, "rt") as lines:
        rows = list(csv.DictReader(lines))
    truth = np.array([row["y_true"] for row in rows])
    tenth = np.arange(len(truth)) % TENTHS
    repeats = np.concatenate([[np.nan], truth[1:] == truth[:-1]])
    register = SegmentsSpec(alpha=alpha, measures=("kappa_persistent",))
    forgetting = (LandmarkSpec(), FadingSpec(alpha), SlidingSpec(), AdwinSpec())
    spec = replace(MonitorsSpec(max_models=4), forgetting=forgetting, registers=(register,))
    evaluator = Evaluator(spec)
    below: dict[str, tuple[float, float]] = {}
    for model in MODELS:
        answer = np.array([row[model] for row in rows])
        for part in np.split(np.arange(len(truth)), CUTS):
            evaluator.update(truth[part], answer[part], model=model, segments={"tenth": tenth[part]})
        said = evaluator.values(model)
        hits = (truth == answer).astype(float)
        whole = said[f"kappa_persistent:fading:{alpha}"]
        assert whole == pytest.approx(kappa_persistent(hits, repeats, alpha), abs=1e-9)
        of_tenths = [said[f"segment_kappa_persistent:tenth:{k}"] for k in range(TENTHS)]
        for k, kappa in enumerate(of_tenths):
            mine = tenth == k
            assert kappa == pytest.approx(kappa_persistent(hits[mine], repeats[mine], alpha), abs=1e-9)
        below[model] = min(whole, *of_tenths), max(whole, *of_tenths)
    # With the previous label of the same tenth, these are +.63 to +.69, +.49 to +.54, and +.12 to +.15.
    assert below["nochange"] == pytest.approx((0.0, 0.0), abs=0.01)
    assert below["ht@8"][1] < -0.2
    assert below["nb@5"][1] < -1.0
