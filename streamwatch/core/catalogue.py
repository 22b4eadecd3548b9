"""The one table of mechanisms, measures, baselines, detectors and weightings, and of the series they become.

Settings check parameters against it, the exporter takes names and help from it, the trace its columns, and
the documentation is generated from it. Adding a measure is one function of the totals and one line here.
Long because it is a table.
"""

from __future__ import annotations

from typing import get_args

from streamwatch.core import measures
from streamwatch.core.entries import Entry, Measure, Metric, Parameter
from streamwatch.core.specs import (
    AdwinDriftSpec,
    AdwinSpec,
    DetectorSpec,
    Direction,
    DriftWeightedSpec,
    FadingSpec,
    ForgettingSpec,
    LandmarkSpec,
    PageHinkleySpec,
    SlidingSpec,
)

_DELTA = Parameter("delta", "confidence", 0.0, 1.0, open_low=True, open_high=True)
_ADWIN = (
    _DELTA,
    Parameter("min_subwindow", "smallest sub-window", 5, 1_000_000, whole=True),
    Parameter("clock", "outcomes between checks", 1, 1_000_000, whole=True),
)
_DIRECTION = Parameter("direction", "direction", choices=get_args(Direction))
_MAX_WINDOW = 10_000_000

MECHANISMS: tuple[Entry, ...] = (
    Entry(
        "landmark",
        LandmarkSpec,
        "remembers every outcome alike (prequential, no forgetting)",
        "S ← S + v",
        "Dawid 1984",
        "O(1); 4 + 3K",
    ),
    Entry(
        "fading",
        FadingSpec,
        "every older outcome weighs alpha times the next one; near 1 forgets slowly",
        "S ← αS + v, n_eff → (1+α)/(1-α)",
        "Gama, Sebastião, Rodrigues 2009, §3.2.1",
        "O(1); 6 + 3K",
        (Parameter("alpha", "fading factor", 0.0, 1.0, open_low=True),),
    ),
    Entry(
        "sliding",
        SlidingSpec,
        "the last `size` outcomes, exactly",
        "S ← S + v_t - v_{t-w}",
        "Bifet et al. 2015, §6",
        "O(1); 4 + 3K + 2w",
        (Parameter("size", "window size", 1, _MAX_WINDOW, whole=True),),
    ),
    Entry(
        "adwin",
        AdwinSpec,
        "a window of the loss that shrinks when its two ends differ; all measures share it",
        "cut if |μ0-μ1| > √(2mσ²d) + ⅔dm, d = ln(2 ln W/δ), m = 1/(n0-4) + 1/(n1-4)",
        "Bifet, Gavaldà 2007; Bifet et al. 2015, §6",
        "O(1), O(log W) at each check; O(K log W)",
        _ADWIN,
    ),
)

DETECTORS: tuple[Entry, ...] = (
    Entry(
        "page_hinkley",
        PageHinkleySpec,
        "alarms when the loss has stayed above its own mean for long",
        "PH ← max(0, α·PH + x - x̄ - δ), alarm if PH > λ",
        "Page 1954; Gama, Sebastião, Rodrigues 2009, §3.4.1",
        "O(1); 8",
        (
            Parameter("tolerance", "tolerance (δ)", 0.0, 1.0, open_high=True),
            Parameter("threshold", "threshold (λ)", 0.0, open_low=True),
            Parameter("alpha", "fading factor (α)", 0.0, 1.0, open_low=True),
            Parameter("min_outcomes", "least outcomes before an alarm", 1, 1_000_000_000, whole=True),
            Parameter("form", "form", choices=("clipped", "paper")),
            _DIRECTION,
        ),
    ),
    Entry(
        "adwin",
        AdwinDriftSpec,
        "alarms once per drift that cuts ADWIN's window of the loss",
        "a cut is a new drift if it discards an outcome later than the last new drift's declaration",
        "Bifet, Gavaldà 2007",
        "O(1), O(log W) at each check; O(log W), none beside an equal adwin forgetting",
        (*_ADWIN, _DIRECTION),
    ),
)

WEIGHTINGS: tuple[Entry, ...] = (
    Entry(
        "drift_weighted",
        DriftWeightedSpec,
        "accuracy in which outcomes right after a drift weigh more: who recovers fast scores high",
        "Σwh/Σw, w(t) = max(1 + (w_avg-1)·ln(d/(t+1)), 1) for the t-th outcome after a drift, d = T/m",
        "Brzezinski, Stefanowski",
        "O(1), one logarithm; 7",
        (Parameter("w_avg", "average weight after a drift", 1.0, 1_000.0, open_low=True), _DELTA),
    ),
)

MEASURES: tuple[Measure, ...] = (
    Measure(
        "accuracy_ratio",
        "Share of outcomes the model got right",
        "p = hits/n",
        "Dawid 1984; Gama, Sebastião, Rodrigues 2009",
        measures.accuracy,
    ),
    Measure(
        "kappa",
        "Gain over chance agreement: 1 is perfect, 0 no better than guessing with the same class shares",
        "(p - p_chance)/(1 - p_chance)",
        "Cohen 1960; Bifet et al. 2015, §5.1",
        measures.kappa,
    ),
    Measure(
        "kappa_majority",
        "Gain over always predicting the most frequent class",
        "(p - p_majority)/(1 - p_majority)",
        "Bifet et al. 2015, §5.3",
        measures.kappa_majority,
    ),
    Measure(
        "kappa_persistent",
        "Gain over predicting the previous label: below 0 the model is worse than no model",
        "(p - p_persistent)/(1 - p_persistent)",
        "Žliobaitė et al. 2015, eq. 13",
        measures.kappa_persistent,
    ),
    Measure(
        "kappa_plus",
        "Geometric mean of the gains over chance and over the previous label, 0 unless both are positive",
        "√(max(0,κ)·max(0,κ_per))",
        "Žliobaitė et al. 2015, eq. 14",
        measures.kappa_plus,
    ),
    Measure(
        "mcc",
        "Matthews correlation of truth and prediction, R_K for more than two classes",
        "(p - Σtq)/(√Σt(1-t)·√Σq(1-q)), t = truth/n, q = predicted/n",
        "Gorodkin 2004; Bifet et al. 2015, §5.1",
        measures.mcc,
    ),
    Measure(
        "arithmetic_mean_recall_ratio",
        "Mean recall over the classes present (balanced accuracy)",
        "A = Σ recall/K",
        "Bifet et al. 2015, §5.2",
        measures.arithmetic_mean_recall,
    ),
    Measure(
        "geometric_mean_recall_ratio",
        "Geometric mean of recall over the classes present, 0 if one is never recognised",
        "G = (Π recall)^(1/K)",
        "Bifet et al. 2015, §5.2",
        measures.geometric_mean_recall,
    ),
    Measure(
        "harmonic_mean_recall_ratio",
        "Harmonic mean of recall over the classes present, 0 if one is never recognised",
        "H = K/Σ(1/recall)",
        "Bifet et al. 2015, §5.2",
        measures.harmonic_mean_recall,
    ),
    Measure(
        "macro_f1_ratio",
        "Mean F1 over the classes in truth or predictions",
        "mean of 2·agreed/(truth + predicted)",
        "van Rijsbergen 1979",
        measures.macro_f1,
    ),
)

BASELINES: tuple[Measure, ...] = (
    Measure(
        "majority",
        "always the most frequent class, known in hindsight",
        "max truth/n",
        "Žliobaitė et al. 2015, eq. 6",
        measures.p_majority,
    ),
    Measure(
        "persistent",
        "always the previous label",
        "repeats/pairs",
        "Žliobaitė et al. 2015, eq. 7",
        measures.p_persistent,
    ),
    Measure(
        "random",
        "at random, with the model's own shares of predictions",
        "Σ truth·predicted/n²",
        "Žliobaitė et al. 2015, eq. 9",
        measures.p_chance,
    ),
    Measure(
        "uninformed",
        "at random, uniformly over the classes present",
        "1/K",
        "Žliobaitė et al. 2015, eq. 5",
        measures.p_uninformed,
    ),
)

_DECAY = "decay is per outcome, not per second"
_PER_FORGETTING = ("forgetting", "model")
_PER_DETECTOR = ("detector", "model")

METRICS: tuple[Metric, ...] = (
    Metric("outcomes_total", "counter", "Predictions evaluated: their label is known", ("model",)),
    Metric("errors_total", "counter", "Outcomes whose prediction was wrong", ("model",)),
    *(Metric(m.name, "gauge", f"{m.help} ({m.formula}; {_DECAY})", _PER_FORGETTING) for m in MEASURES),
    Metric(
        "effective_outcomes",
        "gauge",
        f"Outcomes the estimates under this forgetting are worth, (Σw)²/Σw² ({_DECAY})",
        _PER_FORGETTING,
    ),
    Metric(
        "baseline_accuracy_ratio",
        "gauge",
        f"Accuracy of a classifier that sees labels only: {', '.join(b.name for b in BASELINES)} ({_DECAY})",
        ("baseline", *_PER_FORGETTING),
    ),
    Metric(
        "adwin_window_outcomes",
        "gauge",
        "Outcomes in ADWIN's window: it shrinks when the loss changes",
        _PER_FORGETTING,
    ),
    Metric(
        "drift_weighted_accuracy_ratio",
        "gauge",
        f"Accuracy in which outcomes right after a drift weigh more ({_DECAY})",
        ("model",),
    ),
    Metric(
        "drift_weighted_effective_outcomes",
        "gauge",
        "Outcomes the drift-weighted accuracy is worth, (Σw)²/Σw²",
        ("model",),
    ),
    Metric("detector_statistic", "gauge", "What a drift detector compares with its threshold", _PER_DETECTOR),
    Metric("detector_threshold", "gauge", "The statistic above which a drift detector alarms", _PER_DETECTOR),
    Metric("alarms_total", "counter", "Drifts a detector declared", _PER_DETECTOR),
    Metric(
        "last_alarm_timestamp_seconds",
        "gauge",
        "Event time of the outcome that raised the latest alarm",
        _PER_DETECTOR,
    ),
    Metric(
        "label_delay_seconds",
        "histogram",
        "Time from a prediction to its label (assumed labels left out)",
        ("model",),
    ),
    Metric(
        "last_label_timestamp_seconds",
        "gauge",
        "Latest event time of a label that met its prediction (assumed labels left out)",
        ("model",),
    ),
    Metric(
        "recall_ratio",
        "gauge",
        f"Share of a class's outcomes that was recognised (agreed/truth; {_DECAY})",
        ("class", *_PER_FORGETTING),
    ),
    Metric(
        "series_dropped",
        "gauge",
        "Series left out of this report to stay within monitors.max_series, per-class series first",
        (),
    ),
)
"""Every series of a model, in the order they are reported."""

LABEL_DELAY_BOUNDS: tuple[float, ...] = (
    1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0,
    86_400.0, 172_800.0, 345_600.0, 604_800.0, 1_209_600.0, 2_419_200.0,
)  # fmt: skip
"""Upper bounds of the label delay's buckets: a second to four weeks."""


DISPENSABLE: tuple[str, ...] = (
    "recall_ratio",
    "macro_f1_ratio",
    "harmonic_mean_recall_ratio",
    "geometric_mean_recall_ratio",
    "arithmetic_mean_recall_ratio",
    "label_delay_seconds",
    "baseline_accuracy_ratio",
)
"""What is left out, in this order, when a report would exceed `max_series`; the rest always stays."""


def metric(name: str) -> Metric:
    """The series of that name; raises KeyError for one that is not of a model."""
    return _BY_NAME[name]


def entry(spec: ForgettingSpec | DetectorSpec | DriftWeightedSpec) -> Entry:
    """The line that describes a spec's kind."""
    return _BY_SPEC[type(spec)]


def problems(spec: ForgettingSpec | DetectorSpec | DriftWeightedSpec) -> list[tuple[str, str]]:
    """(parameter, what is wrong with its value) for every parameter of a spec out of its range."""
    found = ((p.name, p.problem(getattr(spec, p.name))) for p in entry(spec).parameters)
    return [(name, problem) for name, problem in found if problem is not None]


_BY_NAME = {m.name: m for m in METRICS}
_BY_SPEC = {e.spec: e for e in (*MECHANISMS, *DETECTORS, *WEIGHTINGS)}
