"""What every line of the catalogue owes the rest of the program, as a list of what is missing.

Tables are looked up when `faults` is called: a line added there, for good or by a test, is held to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from streamwatch.cli import app
from streamwatch.core.estimators import catalogue
from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.estimators.entries import Entry
from streamwatch.core.estimators.measures.catalogue import Bound, Measure
from streamwatch.core.estimators.measures.measures import Totals
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import MonitorsSpec
from streamwatch.settings.estimators import DETECTOR_KINDS, FORGETTING_KINDS
from tests.commands import CliRunner
from tests.core.estimators.measures import plain_measures, plain_uncertainty

SHOWN = ("help", "formula", "source", "cost")
SPEC = MonitorsSpec(max_models=2, max_classes=4)
NOTHING = Totals(*np.zeros((5, 3)), *np.zeros((3, 3, 2)), *np.zeros((11, 3)))


def faults() -> list[str]:
    """`table name: what is missing`, for every line of every table."""
    return [
        *_missing_from(),
        *_unbounded(),
        *_without_value(),
        *_without_twin(),
        *_unexported(),
        *_untraced(),
        *_unlisted(),
        *_unconfigurable(),
    ]


def tables() -> dict[str, tuple[Entry | Measure | Bound, ...]]:
    """Every table by the name the command gives it."""
    return {
        "mechanisms": catalogue.MECHANISMS,
        "measures": catalogue.MEASURES,
        "per_class": catalogue.PER_CLASS,
        "bounds": catalogue.BOUNDS,
        "baselines": catalogue.BASELINES,
        "detectors": catalogue.DETECTORS,
        "drift_weighted": catalogue.DRIFT_WEIGHTED,
    }


def _missing_from() -> Iterator[str]:
    for table, lines in tables().items():
        names = [line.name for line in lines]
        for line in lines:
            if not re.fullmatch("[a-z][a-z0-9_]*", line.name) or names.count(line.name) > 1:
                yield f"{table} {line.name}: the name is not a label value of its own"
            for what in SHOWN:
                if not getattr(line, what).strip():
                    yield f"{table} {line.name}: no {what}"


def _unbounded() -> Iterator[str]:
    """Parameters without a range, or with a default outside it."""
    for entry in catalogue.entries():
        keys = {f.name for f in fields(entry.spec)} - {"name"}
        for key in keys ^ {p.name for p in entry.parameters}:
            yield f"{entry.name}: {key} is a parameter or a key of its settings only, not both"
        for parameter in entry.parameters:
            if not parameter.help.strip():
                yield f"{entry.name}: what {parameter.name} does is not stated"
            problem = parameter.problem(entry.defaults().get(parameter.name, "nothing"))
            if problem:
                yield f"{entry.name}: by default, {problem}"


def _without_value() -> Iterator[str]:
    """Functions of the totals that are not (m,), or not undefined without outcomes."""
    values = {line.name: line.of(NOTHING) for line in (*catalogue.MEASURES, *catalogue.BASELINES)}
    values |= {bound.name: bound.of(NOTHING, 0.05) for bound in catalogue.BOUNDS}
    for name, value in values.items():
        if value.shape != (3,) or not np.isnan(value).all():
            yield f"{name}: without outcomes expected NaN per model, got {value}"
    for line in catalogue.PER_CLASS:
        if line.of(NOTHING).shape != (3, 2) or not np.isnan(line.of(NOTHING)).all():
            yield f"{line.name}: without outcomes expected NaN per model and class"


def _without_twin() -> Iterator[str]:
    """Functions of the totals that no plain Python recomputes from the outcomes."""
    twins = {
        "measures": {*plain_measures.MEASURES, *plain_uncertainty.MEASURES},
        "per_class": set(plain_measures.PER_CLASS),
        "bounds": set(plain_uncertainty.BOUNDS),
        "baselines": {*plain_measures.BASELINES, *plain_measures.MARKED},
    }
    for table, known in twins.items():
        for line in tables()[table]:
            if line.name not in known:
                yield f"{table} {line.name}: no plain twin to be compared with"


def _unexported() -> Iterator[str]:
    """Lines without a family of series, and families without a line."""
    families = {family.name: family for family in EstimatorSet(SPEC).families()}
    for line in (*catalogue.MEASURES, *catalogue.PER_CLASS):
        family = families.get(line.name)
        if family is None:
            yield f"{line.name}: not exported"
        elif line.help not in family.help or line.formula not in family.help:
            yield f"{line.name}: its help is not in the family's"
    for metric, lines in (
        ("accuracy_bound_ratio", catalogue.BOUNDS),
        ("baseline_accuracy_ratio", catalogue.BASELINES),
    ):
        for line in lines:
            if not re.search(rf"\b{line.name}\b", families[metric].help):
                yield f"{line.name}: the help of {metric} does not name it"
    for name in families:
        if name not in {metric.name for metric in catalogue.metrics()}:
            yield f"{name}: exported without a line"


def _untraced() -> Iterator[str]:
    """What `replay --trace` has no column for."""
    columns = set(EstimatorSet(SPEC).trace([Outcome("m", "a", "a", 0, 0)]).columns)
    expected = {f"{m.name}:{f.name}" for m in catalogue.MEASURES for f in SPEC.forgetting}
    for metric, lines in (
        ("accuracy_bound_ratio", catalogue.BOUNDS),
        ("baseline_accuracy_ratio", catalogue.BASELINES),
    ):
        expected |= {f"{metric}:{line.name}:{f.name}" for line in lines for f in SPEC.forgetting}
    for detector in SPEC.detectors:
        expected |= {
            f"{what}:{detector.name}" for what in ("detector_statistic", "detector_threshold", "alarm")
        }
        if catalogue.entry(detector).warns:
            expected.add(f"warning:{detector.name}")
    for column in sorted(expected - columns):
        yield f"{column}: not a column of the trace"


def _unlisted() -> Iterator[str]:
    """What `streamwatch catalogue` does not print."""
    printed = json.loads(CliRunner().invoke(app, ["catalogue", "--json"]).output)
    for table, lines in tables().items():
        if [line["name"] for line in printed.get(table, [])] != [line.name for line in lines]:
            yield f"{table}: the command lists others"


def _unconfigurable() -> Iterator[str]:
    """Kinds the settings do not know, and detectors the kernel does not."""
    for table, kinds in (("mechanisms", FORGETTING_KINDS), ("detectors", DETECTOR_KINDS)):
        for entry in tables()[table]:
            if entry.name not in kinds:
                yield f"{table} {entry.name}: not a key of the settings"
    for entry in catalogue.DETECTORS:
        if entry.spec not in {kind.spec for kind in KINDS}:
            yield f"detectors {entry.name}: the kernel does not have it"
