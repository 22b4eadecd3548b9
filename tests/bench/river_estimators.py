"""One model's estimators, in river: the peer of the kernel, and of the whole daemon."""

from __future__ import annotations

import math
from collections.abc import Hashable

from river import drift, metrics, stats, utils


class RiverEstimators:
    """One model's estimators, in river."""

    def __init__(self) -> None:
        self.landmark = metrics.ConfusionMatrix()
        self.sliding = utils.Rolling(metrics.ConfusionMatrix, window_size=1_000)
        self.faded_hits = stats.EWMean(fading_factor=0.001)  # river's factor is one minus Gama's
        self.repeats = stats.Mean()
        self.rolling_repeats = utils.Rolling(stats.Mean, window_size=1_000)
        self.faded_repeats = stats.EWMean(fading_factor=0.001)
        self.page_hinkley = drift.PageHinkley(mode="up")
        self.adwin = drift.ADWIN()
        self.weighted = stats.Mean()
        self.outcomes = self.declared = self.drifts = 0
        self.previous: object = None

    def update(self, true_class: Hashable, predicted_class: Hashable) -> None:
        """Feed one outcome."""
        hit = true_class == predicted_class
        repeat = true_class == self.previous
        self.previous = true_class
        self.landmark.update(true_class, predicted_class)
        self.sliding.update(true_class, predicted_class)
        self.faded_hits.update(hit)
        self.repeats.update(repeat)
        self.rolling_repeats.update(repeat)
        self.faded_repeats.update(repeat)
        self.page_hinkley.update(not hit)
        weight = 1.0
        if self.drifts:
            gap = self.declared / self.drifts
            weight = max(1.0, 1.0 + 2.0 * math.log(gap / (self.outcomes - self.declared + 1)))
        self.weighted.update(hit, weight)
        self.outcomes += 1
        error = self.adwin.estimation
        self.adwin.update(not hit)
        if self.adwin.drift_detected and self.adwin.estimation > error:
            self.drifts += 1
            self.declared = self.outcomes
