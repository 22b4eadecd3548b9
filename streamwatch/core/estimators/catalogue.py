"""Catalogue of mechanisms, measures, bounds, baselines, detectors, drift-weighted accuracies, and series.

Settings are checked against it, the exporter takes metric names and help texts from it, the trace takes its
columns from it, and the documentation is generated from it. To add a measure, a bound or a baseline, write a
function of the totals and add a line to the table. To add a detector, add a file to `detectors` and a line.

Access the tables through this module (`catalogue.MEASURES`), so that a test can replace one for all readers.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from streamwatch.core.estimators import registers
from streamwatch.core.estimators.comparisons.measures import MEASURES as COMPARISONS
from streamwatch.core.estimators.comparisons.measures import ComparisonMeasure
from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.estimators.entries import (
    ADWIN,
    DELTA,
    DEPENDENCE,
    LEAST_ALPHA,
    Entry,
    Parameter,
    Scalar,
)
from streamwatch.core.estimators.measures.catalogue import (
    BASELINES,
    BOUNDS,
    MEASURES,
    PER_CLASS,
    Bound,
    Measure,
)
from streamwatch.core.estimators.registers.revisions import MEASURES as REVISIONS
from streamwatch.core.estimators.registers.revisions import RevisionMeasure
from streamwatch.core.metrics import Metric, metrics_of
from streamwatch.core.specs import (
    AdwinSpec,
    DetectorSpec,
    DriftWeightedSpec,
    FadingSpec,
    ForgettingSpec,
    LandmarkSpec,
    SlidingSpec,
)

# Catalogue entries of the forgetting mechanisms and of drift-weighted accuracy.


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
                help="Used with `drift_signal: reference`, which makes models comparable; not a model that "
                "predicts in folds.",
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


__all__ = [
    "BASELINES",
    "BOUNDS",
    "DETECTORS",
    "DRIFT_WEIGHTED",
    "MEASURES",
    "MECHANISMS",
    "PER_CLASS",
    "entries",
    "entry",
    "listed",
    "metric",
    "metrics",
    "parameter",
    "problems",
]

DETECTORS: tuple[Entry, ...] = tuple(kind.entry for kind in KINDS)
"""Detectors. The entry of each is defined in its own module, beside the recursion."""


OF_REGISTERS: tuple[Metric, ...] = tuple(metric for kind in registers.KINDS for metric in kind.metrics)
"""Metrics of the registers, which are kept outside the kernel's table."""


def metrics() -> tuple[Metric, ...]:
    """List all metrics of models, in the order in which they are reported."""
    return (*metrics_of(MEASURES, BOUNDS, BASELINES, PER_CLASS), *OF_REGISTERS)


def entries() -> Iterable[Entry]:
    """List everything that can be configured: mechanisms, detectors and drift-weighted accuracies."""
    return (*MECHANISMS, *DETECTORS, *DRIFT_WEIGHTED)


def metric(name: str) -> Metric:
    """Look up a metric of models by name; raises KeyError if there is none of that name."""
    return {m.name: m for m in metrics()}[name]


def entry(spec: ForgettingSpec | DetectorSpec | DriftWeightedSpec) -> Entry:
    """Look up the catalogue entry for the type of `spec`."""
    return {e.spec: e for e in entries()}[type(spec)]


def parameter(spec: type[ForgettingSpec | DetectorSpec | DriftWeightedSpec], name: str) -> Parameter:
    """Look up a parameter of a mechanism, detector or drift-weighted accuracy.

    Raises KeyError if it has none of that name.
    """
    line = {e.spec: e for e in entries()}[spec]
    return {p.name: p for p in line.parameters}[name]


def problems(spec: ForgettingSpec | DetectorSpec | DriftWeightedSpec) -> list[tuple[str, str]]:
    """List (parameter name, problem) for every parameter of `spec` that is not allowed."""
    return entry(spec).problems(spec)


# The catalogue as it is printed and sent.


class ListedParameter(msgspec.Struct, frozen=True):
    """Parameter of a mechanism, detector or drift-weighted accuracy."""

    name: str
    meaning: str
    help: str
    expected: str
    default: Scalar


class ListedEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """Line of the catalogue; only entries of `entries` have parameters."""

    name: str
    help: str
    formula: str
    source: str
    cost: str
    parameters: list[ListedParameter] | msgspec.UnsetType = msgspec.UNSET


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of the catalogue, by kind."""

    mechanisms: list[ListedEntry]
    measures: list[ListedEntry]
    per_class: list[ListedEntry]
    bounds: list[ListedEntry]
    baselines: list[ListedEntry]
    comparisons: list[ListedEntry]
    detectors: list[ListedEntry]
    drift_weighted: list[ListedEntry]
    revisions: list[ListedEntry]


def listed() -> Listed:
    """List the catalogue with help, formula, source and cost of each entry."""
    return Listed(
        mechanisms=_lines(MECHANISMS),
        measures=_lines(MEASURES),
        per_class=_lines(PER_CLASS),
        bounds=_lines(BOUNDS),
        baselines=_lines(BASELINES),
        comparisons=_lines(COMPARISONS),
        detectors=_lines(DETECTORS),
        drift_weighted=_lines(DRIFT_WEIGHTED),
        revisions=_lines(REVISIONS),
    )


def _lines(
    found: Iterable[Entry | Measure | Bound | ComparisonMeasure | RevisionMeasure],
) -> list[ListedEntry]:
    return [
        ListedEntry(
            each.name,
            each.help,
            each.formula,
            each.source,
            each.cost,
            _parameters(each) if isinstance(each, Entry) else msgspec.UNSET,
        )
        for each in found
    ]


def _parameters(entry: Entry) -> list[ListedParameter]:
    defaults = entry.defaults()
    return [
        ListedParameter(each.name, each.meaning, each.help, each.expected, defaults[each.name])
        for each in entry.parameters
    ]
