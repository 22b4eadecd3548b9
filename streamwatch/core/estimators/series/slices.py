"""Report of all models in slices, each small enough not to block an event loop for long."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from streamwatch.core.estimators.models.index import ModelIndex
from streamwatch.core.estimators.samples import Slice
from streamwatch.core.estimators.series.report import SeriesReport
from streamwatch.core.estimators.state import EstimatorState
from streamwatch.core.series import Family

_MODELS: Final = 100
"""Number of models in a slice, at most."""
_CELLS: Final = 60_000
"""Number of models in a slice times their largest number of classes, at most."""


def families_in_slices(state: EstimatorState) -> Generator[None, None, list[Family]]:
    """Collect the series of all models, yielding between slices of models.

    Models that retire in the meantime are left out.
    """
    report, index = SeriesReport(state.spec), state.index
    folds = sorted(index.folds)
    names = sorted(index.models)
    while names:
        chosen, names = _next_slice(index, names)
        if chosen:
            report.add(chosen, state.table, state.delays, state.alarms)
            report.add_registers(chosen, state.registers)
            first = len(state.spec.detectors) + 1
            for register in state.raising:
                report.add_alarm_times(chosen, register.detectors, state.alarms, first)
                first += len(register.detectors)
        yield
    for model in folds:
        if model in index.folds:
            report.add_folds(model, index.rows_of_folds(model), state.table)
    return report.families()


def _next_slice(index: ModelIndex, names: list[str]) -> tuple[list[Slice], list[str]]:
    """Choose the next models to report; also return the remaining names."""
    chosen: list[Slice] = []
    widest = 1
    for taken, name in enumerate(names):
        slot = index.models.get(name)
        if slot is None:
            continue
        widest = max(widest, len(slot.classes))
        if chosen and (len(chosen) >= _MODELS or (len(chosen) + 1) * widest > _CELLS):
            return chosen, names[taken:]
        chosen.append(Slice(name, slot.row, slot.classes))
    return chosen, []
