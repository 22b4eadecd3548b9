"""Estimates from the ring of one model at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamwatch.core.estimators.registers.late_labels.accuracy import Floats, Share, late_accuracy
from streamwatch.core.estimators.registers.late_labels.change import latest_change, weighted_errors
from streamwatch.core.estimators.registers.late_labels.geometry import BUCKETS, Geometry, Integers
from streamwatch.core.estimators.registers.late_labels.ring import LabelRing
from streamwatch.core.events import ErrorChange


class OneShare(NamedTuple):
    """Accuracy of one model with its interval of 95 % (NaN where undefined), and its n_eff."""

    value: float
    lower: float
    upper: float
    n_eff: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """Accuracies of one model by the time of the prediction; fields as in `LateAccuracy`, for one model.

    Attributes
    ----------
    head
        Number of the last bucket; -1 without outcomes.
    now_ms
        Time of the newest outcome.
    outcomes
        Errors and hits by bucket, (64, 2), oldest first.
    weights
        Weights of errors and hits by bucket, (64, 2).
    shares
        Share of the labels of errors and hits that have arrived at each edge of delay, (2, 24).
    """

    head: int
    now_ms: int
    settled: OneShare
    corrected: OneShare
    naive: float
    outcomes: Integers
    weights: Floats
    shares: Floats

    @property
    def first_bucket(self) -> int:
        """Number of the oldest bucket."""
        return self.head - BUCKETS + 1

    def change(self, geometry: Geometry) -> ErrorChange | None:
        """Locate the latest change of the error by prediction time; None if there is none."""
        errors, outcomes = weighted_errors(self.outcomes, self.weights)
        return latest_change(errors, outcomes, self.first_bucket, geometry)


def estimates_of(ring: LabelRing, rows: Integers) -> list[Estimate]:
    """Estimate several rows at once."""
    view = ring.view(rows)
    late = late_accuracy(view, ring.geometry)
    settled, corrected = _each(late.settled), _each(late.corrected)
    return [
        Estimate(
            int(view.head[m]),
            int(view.now_ms[m]),
            settled[m],
            corrected[m],
            float(late.naive[m]),
            late.outcomes[m].copy(),
            late.weights[m].copy(),
            late.shares[m].copy(),
        )
        for m in range(len(rows))
    ]


def _each(share: Share) -> list[OneShare]:
    columns = np.stack([share.value, share.lower, share.upper, share.n_eff], axis=1)
    return [OneShare(*values) for values in columns.tolist()]
