"""Trace: values of all estimators after every outcome, one row per outcome, columns fixed by the spec.

A column has the name of its metric, followed by the values of the metric's labels without `model`, in
alphabetical order of the label names: `accuracy_ratio:fading:0.999`,
`baseline_accuracy_ratio:persistent:landmark`. Two further columns of a detector tell, as 1 or 0, whether it
raised an alarm (`alarm:adwin`) or warned. There are no per-class columns. Undefined values are None.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamwatch.core.estimators import catalogue
from streamwatch.core.estimators.kernel.table import Trace
from streamwatch.core.estimators.recovery import read_recoveries, watched_of
from streamwatch.core.estimators.trace_chunk import Cell, cells
from streamwatch.core.estimators.verdicts.readout import Verdicts
from streamwatch.core.records.events import Outcome, shown_name
from streamwatch.core.specs import AdwinSpec, MonitorsSpec

VERDICTS = (
    "verdict",
    "verdict_since_timestamp_seconds",
    "verdict_since_outcome",
    "lead",
    "lead_lower",
    "lead_upper",
    "verdict_evidence:better",
    "verdict_evidence:worse",
    "lead_dispersion",
)
"""Columns of each opponent, in the order of the fields of `Verdicts`."""


RECOVERIES = ("recovering", "recovery_depth", "recovery_outcomes")
"""Columns of recovery, where there is a fading factor."""


class TraceColumns:
    """Columns of a trace for a spec, and their values for a traced batch.

    `others` are columns of registers, which come last.
    """

    def __init__(self, spec: MonitorsSpec, opponents: Sequence[str], others: Sequence[str] = ()) -> None:
        self._spec = spec
        self._opponents = opponents
        self.names: list[str] = ["model", "outcome", "y_true", "y_pred"]
        for forgetting in spec.forgetting:
            label = forgetting.name
            self.names += [f"{m.name}:{label}" for m in catalogue.MEASURES]
            self.names += [f"effective_sample_size:{label}"]
            self.names += [f"accuracy_bound_ratio:{b.name}:{label}" for b in catalogue.BOUNDS]
            self.names += [f"baseline_accuracy_ratio:{b.name}:{label}" for b in catalogue.BASELINES]
            if isinstance(forgetting, AdwinSpec):
                self.names.append(f"adwin_window_outcomes:{label}")
        for drift_weighted in spec.drift_weighted:
            after = f":{drift_weighted.name}" if len(spec.drift_weighted) > 1 else ""
            self.names.append(f"drift_weighted_accuracy_ratio{after}")
            self.names.append(f"drift_weighted_effective_sample_size{after}")
        for detector in spec.detectors:
            self.names.append(f"detector_statistic:{detector.name}")
            self.names.append(f"detector_threshold:{detector.name}")
            self.names.append(f"alarm:{detector.name}")
            if catalogue.entry(detector).warns:
                self.names.append(f"warning:{detector.name}")
        if watched_of(spec) is not None:
            self.names += RECOVERIES
        for opponent in opponents:
            named = (name.partition(":") for name in VERDICTS)
            self.names += [f"{name}:{opponent}{colon}{side}" for name, colon, side in named]
        self.names += others

    def rows(
        self,
        outcomes: Sequence[Outcome],
        ordinals: Sequence[int],
        traced: Trace,
        judged: Verdicts,
        others: Sequence[Sequence[Cell]],
    ) -> list[list[Cell]]:
        """Build one row per outcome, in order.

        `ordinals` are the outcomes' 1-based numbers within their model, `others` the values of the registers'
        columns.
        """
        columns: list[Sequence[Cell]] = [
            [shown_name(o.model) for o in outcomes],
            ordinals,
            [o.true_class for o in outcomes],
            [o.predicted_class for o in outcomes],
        ]
        for forgetting, totals in zip(self._spec.forgetting, traced.totals, strict=True):
            columns += [cells(m.of(totals)) for m in catalogue.MEASURES]
            columns.append(cells(totals.n_eff))
            columns += [cells(b.of(totals, self._spec.confidence_delta)) for b in catalogue.BOUNDS]
            columns += [cells(b.of(totals)) for b in catalogue.BASELINES]
            if isinstance(forgetting, AdwinSpec):
                columns.append(totals.n.astype(np.int64).tolist())
        for index in range(len(self._spec.drift_weighted)):
            columns += [cells(traced.weighted[index]), cells(traced.weighted_n_eff[index])]
        for index, detector in enumerate(self._spec.detectors):
            columns += [cells(traced.statistic[index]), cells(traced.threshold[index])]
            columns.append(traced.alarmed[index].astype(np.int64).tolist())
            if catalogue.entry(detector).warns:
                columns.append(traced.warned[index].astype(np.int64).tolist())
        if len(traced.recovery):
            recovered = read_recoveries(traced.recovery)
            columns += [
                cells(recovered.recovering),
                cells(recovered.depth),
                cells(recovered.outcomes),
            ]
        for index in range(len(self._opponents)):
            columns += [cells(values[index]) for values in judged]
        columns += others
        return [list(row) for row in zip(*columns, strict=True)]
