"""Toy kinds of detectors, as somebody might add them: one for errors in a row, and one that is no good.

    python -m tests.contracts.toy_detector

adds them to `KINDS` and prints what the contract finds wrong with every kind.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import numpy as np

from streamwatch.core.estimators import detectors
from streamwatch.core.estimators.detectors.kind import DetectorKind, append
from streamwatch.core.estimators.entries import Entry, Parameter
from streamwatch.core.jit import hot, inner


@dataclass(frozen=True, slots=True)
class RunSpec:
    """Errors in a row."""

    name: str = "run"
    longest: int = 20


ENTRY = Entry(
    "run",
    RunSpec,
    "alarms at more errors in a row than there should be",
    "alarm if run > longest",
    "a toy",
    "O(1) an outcome; 2 numbers a model",
    (Parameter("longest", "longest run", 1, 1_000, whole=True, help="Errors in a row without an alarm."),),
)


@hot
def observe(m, parameters, miss, position, row, alarms, count):
    """Count errors in a row."""
    for j in range(len(m.run)):
        d = m.run[j]
        p = parameters.run[j]
        d.errors = d.errors + 1 if miss else 0
        if d.errors > p.longest:
            run = float(d.errors)
            count = append(alarms, count, position, row, m, d, p, run, p.longest, 0.0, 1.0, run)
            d.errors = 0
            d.alarmed_at = m.outcomes
    return count


@inner
def show(m, parameters, statistic, threshold, alarms, warned, t):  # noqa: ARG001
    """The run and the longest allowed."""
    for j in range(len(m.run)):
        d = m.run[j]
        p = parameters.run[j]
        statistic[p.detector, t] = p.longest + 1 if 0 < d.alarmed_at == m.outcomes else d.errors
        threshold[p.detector, t] = p.longest
        alarms[p.detector, t] = d.alarms


RUN = DetectorKind(
    name="run",
    version=1,
    entry=ENTRY,
    state=np.dtype([("errors", "i8"), ("alarmed_at", "i8"), ("alarms", "i8")]),
    parameters=np.dtype([("detector", "i8"), ("longest", "i8")]),
    row=lambda spec, detector, _window: (detector, spec.longest),
    observe=observe,
    show=show,
)


@dataclass(frozen=True, slots=True)
class SilentSpec:
    """Nothing to choose."""

    name: str = "silent"


@hot
def never(m, parameters, miss, position, row, alarms, count):  # noqa: ARG001
    """Forget to alarm."""
    return count


@inner
def show_nothing(m, parameters, statistic, threshold, alarms, warned, t):
    """Forget to show."""


SILENT = DetectorKind(
    name="silent",
    version=1,
    entry=Entry("silent", SilentSpec, "does nothing", "none", "a toy", "nothing"),
    state=np.dtype([("alarms", "i8")]),
    parameters=np.dtype([("detector", "i8")]),
    row=lambda _spec, detector, _window: (detector,),
    observe=never,
    show=show_nothing,
)


def main() -> None:
    """Add the toys to the kinds before anything is made of them, and hold all to the contract."""
    detectors.KINDS = (*detectors.KINDS, RUN, SILENT)
    from tests.contracts.detector_rules import faults  # noqa: PLC0415  (the kinds are complete now)

    json.dump({kind.name: faults(kind) for kind in detectors.KINDS}, sys.stdout)


if __name__ == "__main__":
    main()
