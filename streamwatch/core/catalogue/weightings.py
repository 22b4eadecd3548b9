"""Accuracies that weigh outcomes by where they stand between drifts."""

from __future__ import annotations

from streamwatch.core.entries import Entry, Parameter
from streamwatch.core.parameters import DELTA
from streamwatch.core.specs import DriftWeightedSpec

WEIGHTINGS: tuple[Entry, ...] = (
    Entry(
        "drift_weighted",
        DriftWeightedSpec,
        "accuracy in which outcomes right after a drift weigh more: who recovers fast scores high",
        "Σwh/Σw, w(t) = max(1 + (w_avg-1)·ln(d/(t+1)), 1) for the t-th outcome after a drift, d = T/m",
        "Brzezinski, Stefanowski",
        "O(1) an outcome, one logarithm; 7 numbers a model",
        (
            Parameter(
                "w_avg",
                "average weight after a drift",
                1.0,
                1_000.0,
                open_low=True,
                help="An outcome without drift has weight 1.",
            ),
            DELTA,
            Parameter(
                "drift_signal",
                "drift signal",
                choices=("own", "reference", "labels"),
                help="Whose drifts: rises of this model's error, the reference's, or changes of the labels.",
            ),
            Parameter(
                "reference",
                "model whose drifts count",
                text=True,
                help="With `drift_signal: reference`, which makes models comparable.",
            ),
            Parameter(
                "alpha",
                "fading factor",
                0.0,
                1.0,
                open_low=True,
                help="Of the weighted sums; 1 never forgets.",
            ),
        ),
    ),
)
