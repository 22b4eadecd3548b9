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
from streamwatch.core.estimators.entries import Bound, Entry, Measure, Parameter, Scalar
from streamwatch.core.estimators.forgetting.catalogue import DRIFT_WEIGHTED, MECHANISMS
from streamwatch.core.estimators.measures.baselines import BASELINES
from streamwatch.core.estimators.measures.catalogue import BOUNDS, MEASURES, PER_CLASS
from streamwatch.core.estimators.registers.revisions.measures import MEASURES as REVISIONS
from streamwatch.core.estimators.registers.revisions.measures import RevisionMeasure
from streamwatch.core.metrics import Metric, metrics_of
from streamwatch.core.specs import DetectorSpec, DriftWeightedSpec, ForgettingSpec

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
