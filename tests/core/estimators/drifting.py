"""Streams with drifts, and estimators that follow them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamwatch.core.specs import AdwinDriftSpec, FadingSpec, PageHinkleySpec
from tests.core.estimators.kernel.streams import late_labels, one_row, table_of
from tests.layouts import DEFAULT

QUIET = replace(DEFAULT, detectors=(PageHinkleySpec(direction="down"), AdwinDriftSpec(direction="down")))
"""No detector of rises: only verdicts begin drifts."""
FADED = np.array([0], np.int64)


def with_alpha(spec, alpha, **others):
    """The same estimators, the first fading factor another."""
    first = next(f for f in spec.forgetting if isinstance(f, FadingSpec))
    changed = tuple(FadingSpec(alpha) if f is first else f for f in spec.forgetting)
    return replace(spec, forgetting=changed, **others)


def phases(*parts, seed=0):
    """Losses of stretches: (outcomes, error)."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.random(n) < error for n, error in parts]).astype(np.int32)


def traced(spec, true_class, predicted_class):
    known = late_labels(true_class, 1)
    return table_of(spec).trace(one_row(len(true_class)), true_class, predicted_class, known)


def missed(loss, seed=0):
    """Labels at random, and predictions with these losses."""
    true_class = np.random.default_rng(seed).integers(0, 2, len(loss)).astype(np.int32)
    return true_class, (true_class + loss).astype(np.int32)
