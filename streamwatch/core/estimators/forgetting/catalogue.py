"""Lines of the catalogue: mechanisms by which totals forget, and accuracies weighted by drifts."""

from __future__ import annotations

from streamwatch.core.estimators.entries import Entry, Parameter
from streamwatch.core.estimators.parameters import ADWIN, DELTA
from streamwatch.core.specs import AdwinSpec, DriftWeightedSpec, FadingSpec, LandmarkSpec, SlidingSpec

MECHANISMS: tuple[Entry, ...] = (
    Entry(
        "landmark",
        LandmarkSpec,
        "remembers every outcome alike (prequential, no forgetting)",
        "S ← S + v",
        "Dawid 1984",
        "O(1) an outcome; 13 + 3K numbers a model",
    ),
    Entry(
        "fading",
        FadingSpec,
        "every older outcome weighs alpha times the next one; near 1 forgets slowly",
        "S ← αS + v, n_eff → (1+α)/(1-α)",
        "Gama, Sebastião, Rodrigues 2009, §3.2.1",
        "O(1) an outcome; 15 + 3K numbers a model",
        (
            Parameter(
                "alpha",
                "fading factor",
                0.0,
                1.0,
                open_low=True,
                open_high=True,
                help="The weight an outcome keeps with each later one.",
            ),
        ),
    ),
    Entry(
        "sliding",
        SlidingSpec,
        "the last `size` outcomes, exactly",
        "S ← S + v_t - v_{t-w}",
        "Bifet et al. 2015, §6",
        "O(1) an outcome; 13 + 3K numbers and w outcomes a model",
        (Parameter("size", "window size", 1, 10_000_000, whole=True, help="Outcomes in the window."),),
    ),
    Entry(
        "adwin",
        AdwinSpec,
        "a window of the loss that shrinks when its two ends differ; all measures share it",
        "cut if |μ0-μ1| > √(2mσ²d) + ⅔dm, d = ln(2 ln W/δ), m = 1/(n0-4) + 1/(n1-4)",
        "Bifet, Gavaldà 2007; Bifet et al. 2015, §6",
        "O(1) an outcome, O(log W) a check; O(K log W) numbers a model",
        ADWIN,
    ),
)

DRIFT_WEIGHTINGS: tuple[Entry, ...] = (
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
