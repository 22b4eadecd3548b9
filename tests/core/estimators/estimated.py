"""Streams of outcomes, and what an `EstimatorSet` makes of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import (
    AdwinDriftSpec,
    AdwinSpec,
    DriftWeightedSpec,
    FadingSpec,
    LandmarkSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
)

SPEC = MonitorsSpec(
    forgetting=(LandmarkSpec(), FadingSpec(0.9), SlidingSpec(20), AdwinSpec()),
    detectors=(PageHinkleySpec(threshold=5.0), AdwinDriftSpec()),
    drift_weighted=(DriftWeightedSpec(),),
    max_models=8,
    max_classes=5,
    per_class="fading:0.9",
)
SEVERAL = MonitorsSpec(
    forgetting=(FadingSpec(0.99), FadingSpec(0.5)),
    detectors=(),
    drift_weighted=(DriftWeightedSpec(), DriftWeightedSpec(w_avg=2.0)),
    max_models=8,
    max_classes=5,
)
SPECS = (
    pytest.param(SPEC, id="one of each"),
    pytest.param(SEVERAL, id="several of a kind", marks=pytest.mark.slow),  # a layout of its own
)


def drifting(seed, n, models=("a", "b", "c"), classes=("x", "y", "z")):
    """Outcomes of several models whose error jumps half way."""
    rng = np.random.default_rng(seed)
    outcomes = []
    for i in range(n):
        true_class = str(rng.choice(classes))
        error = 0.1 if i < n // 2 else 0.7
        predicted_class = str(rng.choice(classes)) if rng.random() < error else true_class
        delay = int(rng.integers(0, 10_000_000))
        outcomes.append(
            Outcome(str(rng.choice(models)), true_class, predicted_class, 1_000_000 + i * 500, delay)
        )
    return outcomes


def cut(outcomes, points):
    edges = [0, *sorted(points), len(outcomes)]
    return [outcomes[a:b] for a, b in pairwise(edges)]


def folded(outcomes, spec=SPEC):
    monitors = EstimatorSet(spec)
    return monitors, monitors.fold(outcomes)


def state(monitors):
    return {name: monitors.snapshot(name) for name in monitors.models()}


def value(monitors, name, *labels):
    """Value of one series, None if it is not there."""
    (family,) = [f for f in monitors.families() if f.name == name]
    return dict(family.samples).get(labels)


STREAM = drifting(1, 900)
names = st.sampled_from("abcdefgh")
streams = st.lists(st.tuples(st.sampled_from("mn"), names, names, st.booleans()), min_size=1, max_size=60)


def outcomes_of(drawn):
    """Outcomes that are right more often than not."""
    return [Outcome(m, t, t if right else p, i * 1000, i) for i, (m, t, p, right) in enumerate(drawn)]
