"""State of all models' estimators, by row: what an `EstimatorSet` updates, reports, saves and restores."""

from __future__ import annotations

from streamwatch.core.estimators.alarms import Alarms
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.label_delays import LabelDelays
from streamwatch.core.estimators.models.index import ModelIndex
from streamwatch.core.estimators.pasts import Pasts
from streamwatch.core.estimators.registers import registers_of
from streamwatch.core.estimators.registers.alarms import RaisesAlarms
from streamwatch.core.events import VERDICT
from streamwatch.core.specs import MonitorsSpec


class EstimatorState:
    """The kernel's table, everything else that is kept by row, and the index of the rows by model."""

    __slots__ = ("alarms", "delays", "index", "pasts", "raising", "registers", "spec", "table")

    def __init__(self, spec: MonitorsSpec) -> None:
        self.spec = spec
        self.table = ModelTable(spec)
        self.delays = LabelDelays(spec.max_models)
        self.pasts = Pasts(spec.max_models, spec.history_days)
        self.registers = registers_of(spec)
        self.raising = [each for each in self.registers if isinstance(each, RaisesAlarms)]
        """Registers with detectors of their own."""
        late = [name for register in self.raising for name in register.detectors]
        self.alarms = Alarms(spec.max_models, [*(d.name for d in spec.detectors), VERDICT, *late])
        own = (self.delays, self.alarms, self.pasts, *self.registers)
        self.index = ModelIndex(spec, self.table, own)
