"""The one table of mechanisms, measures, bounds, baselines, detectors and weightings, and of their series.

Settings check parameters against it, the exporter takes names and help from it, the trace its columns, and
the documentation is generated from it. Adding a measure, a bound or a baseline is one function of the totals
and one line in its table; adding a detector is one file in `detectors` and one line.

Readers look the tables up here when they need them (`catalogue.MEASURES`), so that a table changed in a test
is changed for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamwatch.core.estimators import registers
from streamwatch.core.estimators.comparisons.measures import MEASURES as COMPARISONS
from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.estimators.entries import Entry, Parameter
from streamwatch.core.estimators.forgetting.catalogue import DRIFT_WEIGHTINGS, MECHANISMS
from streamwatch.core.estimators.measures.baselines import BASELINES
from streamwatch.core.estimators.measures.catalogue import BOUNDS, MEASURES, PER_CLASS
from streamwatch.core.estimators.registers.revisions.measures import MEASURES as REVISIONS
from streamwatch.core.metrics import DISPENSABLE as OF_MODELS
from streamwatch.core.metrics import LABEL_DELAY_BOUNDS, NEEDED, Metric, metrics_of, ranks_of
from streamwatch.core.specs import DetectorSpec, DriftWeightedSpec, ForgettingSpec

__all__ = [
    "BASELINES",
    "BOUNDS",
    "COMPARISONS",
    "DETECTORS",
    "DISPENSABLE",
    "DRIFT_WEIGHTINGS",
    "LABEL_DELAY_BOUNDS",
    "MEASURES",
    "MECHANISMS",
    "METRICS",
    "PER_CLASS",
    "RANKS",
    "REVISIONS",
    "entries",
    "entry",
    "metric",
    "metrics",
    "parameter",
    "problems",
]

DETECTORS: tuple[Entry, ...] = tuple(kind.entry for kind in KINDS)
"""What raises alarms. A detector's line stands in its own file, beside its recursion."""


OF_REGISTERS: tuple[Metric, ...] = tuple(metric for kind in registers.KINDS for metric in kind.metrics)
"""Series of what is kept beside the kernel's table."""

DISPENSABLE: tuple[str, ...] = (*OF_MODELS, *(metric.name for metric in reversed(OF_REGISTERS)))
"""What a report does not even hold, in this order, when it would exceed `max_series`."""

RANKS = ranks_of((*DISPENSABLE, *NEEDED))
"""Which family of models' series is left out first to stay within `max_series`: that of the highest rank.

What is of no model has no rank and stays.
"""


def metrics() -> tuple[Metric, ...]:
    """Every series of a model, in the order they are reported."""
    return (*metrics_of(MEASURES, BOUNDS, BASELINES, PER_CLASS), *OF_REGISTERS)


METRICS = metrics()


def entries() -> Iterable[Entry]:
    """Everything that can be configured: mechanisms, detectors, weightings."""
    return (*MECHANISMS, *DETECTORS, *DRIFT_WEIGHTINGS)


def metric(name: str) -> Metric:
    """The series of that name; raises KeyError for one that is not of a model."""
    return {m.name: m for m in metrics()}[name]


def entry(spec: ForgettingSpec | DetectorSpec | DriftWeightedSpec) -> Entry:
    """The line that describes a spec's kind."""
    return {e.spec: e for e in entries()}[type(spec)]


def parameter(spec: type[ForgettingSpec | DetectorSpec | DriftWeightedSpec], name: str) -> Parameter:
    """A parameter of a kind; raises KeyError for one it has not."""
    line = {e.spec: e for e in entries()}[spec]
    return {p.name: p for p in line.parameters}[name]


def problems(spec: ForgettingSpec | DetectorSpec | DriftWeightedSpec) -> list[tuple[str, str]]:
    """(parameter, what is wrong with its value) for every parameter of a spec out of its range."""
    found = ((p.name, p.problem(getattr(spec, p.name))) for p in entry(spec).parameters)
    return [(name, problem) for name, problem in found if problem is not None]
