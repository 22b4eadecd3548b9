"""Catalogue entries of the forgetting mechanisms and of drift-weighted accuracy."""

from __future__ import annotations

from streamwatch.core.estimators.entries import ADWIN, DELTA, DEPENDENCE, LEAST_ALPHA, Entry, Parameter
from streamwatch.core.specs import AdwinSpec, DriftWeightedSpec, FadingSpec, LandmarkSpec, SlidingSpec

MECHANISMS: tuple[Entry, ...] = (
    Entry(
        "landmark",
        LandmarkSpec,
        "remembers every outcome equally (prequential, without forgetting)",
        "S ← S + v",
        "Dawid 1984",
        "O(1) per outcome; 13 + 3K numbers per model",
    ),
    Entry(
        "fading",
        FadingSpec,
        "weighs every outcome alpha times the next one; near 1 it forgets slowly",
        "S ← αS + v, n_eff → (1+α)/(1-α)",
        "Gama, Sebastião, Rodrigues 2009, §3.2.1",
        "O(1) per outcome; 15 + 3K numbers per model",
        (
            Parameter(
                "alpha",
                "fading factor",
                LEAST_ALPHA,
                1.0,
                open_high=True,
                help="Factor by which the weight of an outcome shrinks with each later one.",
            ),
        ),
    ),
    Entry(
        "sliding",
        SlidingSpec,
        "remembers exactly the last `size` outcomes",
        "S ← S + v_t - v_{t-w}",
        "Bifet et al. 2015, §6",
        "O(1) per outcome; 13 + 3K numbers and w outcomes per model",
        (
            Parameter(
                "size", "window size", 1, 10_000_000, whole=True, help="Number of outcomes in the window."
            ),
        ),
    ),
    Entry(
        "adwin",
        AdwinSpec,
        "remembers a window of the loss that shrinks when its two ends differ; all measures share it",
        "cut if |μ0-μ1| > √(2mσ²d) + ⅔dm, d = ln(2 ln W/δ), m = φ/(n0-4) + φ/(n1-4) (φ: dispersion)",
        "Bifet, Gavaldà 2007; Bifet et al. 2015, §6 (φ = 1)",
        "O(1) per outcome, O(log W) per check; O(K log W) numbers per model",
        ADWIN,
    ),
)

DRIFT_WEIGHTED: tuple[Entry, ...] = (
    Entry(
        "drift_weighted",
        DriftWeightedSpec,
        "accuracy in which outcomes right after a drift weigh more, which rewards fast recovery",
        "Σwh/Σw, w(t) = max(1 + (w_avg-1)·ln(d/(t+1)), 1) for the t-th outcome after a drift, d = T/m",
        "Brzezinski, Stefanowski",
        "O(1) per outcome, one logarithm; 9 numbers per model",
        (
            Parameter(
                "w_avg",
                "average weight after a drift",
                1.0,
                1_000.0,
                open_low=True,
                help="Average weight of outcomes after a drift. Without a drift, an outcome has weight 1.",
            ),
            DELTA,
            DEPENDENCE,
            Parameter(
                "drift_signal",
                "drift signal",
                choices=("own", "reference", "labels"),
                help="Source of drifts: rises of the model's own error, of the reference's error, or changes "
                "of the labels.",
            ),
            Parameter(
                "reference",
                "model whose drifts count",
                text=True,
                help="Used with `drift_signal: reference`, which makes models comparable.",
            ),
            Parameter(
                "alpha",
                "fading factor",
                0.0,
                1.0,
                open_low=True,
                help="Fading factor of the weighted sums; 1 never forgets.",
            ),
        ),
    ),
)
