"""State of all models' estimators, by row: what an `EstimatorSet` updates, reports, saves and restores."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.index import ModelIndex
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.names import Batch, ReportKeys
from streamwatch.core.estimators.past import Pasts
from streamwatch.core.estimators.registers import registers_of
from streamwatch.core.estimators.registers.counting import count_delays
from streamwatch.core.estimators.registers.kind import ExplainsAlarms, JudgesModels, RaisesAlarms
from streamwatch.core.metrics import LABEL_DELAY_BOUNDS
from streamwatch.core.metrics.series import HistogramColumn, ModelKeys
from streamwatch.core.records.events import VERDICT, Alarm
from streamwatch.core.specs import MonitorsSpec

# Delays of labels per model: histogram from one second to four weeks, sum, and time of the latest label.
#
# Sums are integers (milliseconds), so that they do not depend on how a stream is cut into batches. Only wrong
# timestamps make them large: a prediction dated 1970, a label dated 9999. They end at 2⁶² instead of becoming
# negative.


Integers: TypeAlias = NDArray[np.int64]

_BOUNDS_MS = (np.array(LABEL_DELAY_BOUNDS) * 1000).astype(np.int64)
_BUCKETS = len(_BOUNDS_MS) + 1
NEVER = np.iinfo(np.int64).min
"""Time that stands for "no label yet", or "no alarm yet"."""


class LabelDelays:
    """Label delays of up to `capacity` models; memory is touched only for rows in use."""

    __slots__ = ("_counts", "_latest_ms", "_sum_ms")

    def __init__(self, capacity: int) -> None:
        self._counts: Integers = np.zeros((capacity, _BUCKETS), np.int64)
        self._sum_ms: Integers = np.zeros(capacity, np.int64)
        self._latest_ms: Integers = np.zeros(capacity, np.int64)

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        self._counts[row] = 0
        self._sum_ms[row] = 0
        self._latest_ms[row] = NEVER

    def observe(self, batch: Batch) -> None:
        """Count the delays of labels that came, not of assumed ones."""
        counts, sums_ms, latest_ms = self._counts, self._sum_ms, self._latest_ms
        columns = batch.rows, batch.delay_ms, batch.event_ms, batch.assumed
        count_delays(*columns, _BOUNDS_MS, counts, sums_ms, latest_ms)

    def histograms(self, rows: Integers, keys: ModelKeys) -> HistogramColumn:
        """Histogram of each row: cumulative bucket counts, and the sum of delays in seconds."""
        return HistogramColumn(keys, np.cumsum(self._counts[rows], axis=1), self._sum_ms[rows] / 1000.0)

    def counts_before(self, row: int, later_ms: Integers) -> tuple[int, ...]:
        """Cumulative bucket counts of a row as they were before its latest labels, whose delays are given."""
        buckets = np.bincount(np.searchsorted(_BOUNDS_MS, later_ms), minlength=_BUCKETS)
        return tuple(np.cumsum(self._counts[row] - buckets).tolist())

    def latest_seconds(self, rows: Integers) -> NDArray[np.float64]:
        """Event time in seconds of each row's latest label, shape (m,); NaN before the first."""
        latest = self._latest_ms[rows]
        return np.where(latest == NEVER, np.nan, latest / 1000.0)

    def snapshots(self, rows: Integers) -> list[tuple[list[int], int, int]]:
        """State of each row: counts per bucket, sum of delays (ms), event time of the latest label (ms)."""
        columns = self._counts[rows], self._sum_ms[rows], self._latest_ms[rows]
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def restore(self, row: int, state: tuple[list[int], int, int]) -> None:
        """Set a row to a snapshot.

        Raises
        ------
        ValueError
            If the snapshot has another number of buckets.
        """
        counts, sum_ms, latest_ms = state
        if len(counts) != _BUCKETS:
            raise ValueError(f"label delays must have {_BUCKETS} buckets, got {len(counts)}")
        self._counts[row] = counts
        self._sum_ms[row] = sum_ms
        self._latest_ms[row] = latest_ms


# Latest alarm time of every model and detector, and the most recent alarms.


RECENT = 1_000
"""Number of recent alarms kept for display; the alarm counters are not limited by it."""


class Alarms:
    """Event time of the latest alarm of each detector of up to `capacity` models, and the recent alarms."""

    __slots__ = ("_detectors", "_latest_ms", "recent")

    def __init__(self, capacity: int, detectors: Sequence[str]) -> None:
        self._detectors = tuple(detectors)
        self._latest_ms: NDArray[np.int64] = np.zeros((capacity, len(detectors)), np.int64)
        self.recent: deque[Alarm] = deque(maxlen=RECENT)

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        self._latest_ms[row] = NEVER

    def record(self, row: int, detector: int, alarm: Alarm) -> None:
        """Record an alarm raised by detector number `detector` for the model in `row`."""
        self._latest_ms[row, detector] = alarm.event_ms
        self.recent.append(alarm)

    def latest_seconds(self, rows: NDArray[np.int64], detector: int) -> NDArray[np.float64]:
        """Event time in seconds of each row's latest alarm by one detector, shape (m,).

        NaN before the first.
        """
        latest = self._latest_ms[rows, detector]
        return np.where(latest == NEVER, np.nan, latest / 1000.0)

    def snapshots(self, rows: Integers) -> list[dict[str, int]]:
        """Event times (ms) of each row's latest alarms, by name of the detectors that had one."""
        latest = self._latest_ms[rows]
        found: list[dict[str, int]] = list(map(dict, [()] * len(rows)))
        for position, detector in np.argwhere(latest != NEVER).tolist():
            found[position][self._detectors[detector]] = int(latest[position, detector])
        return found

    def restore(self, row: int, latest_ms: Mapping[str, int]) -> None:
        """Set a row to a snapshot.

        Detectors missing in the snapshot count as never having raised an alarm.
        """
        self._latest_ms[row] = [latest_ms.get(name, NEVER) for name in self._detectors]


class EstimatorState:
    """The kernel's table, everything else that is kept by row, and the index of the rows by model."""

    __slots__ = (
        "alarms",
        "delays",
        "explaining",
        "index",
        "judging",
        "pasts",
        "raising",
        "registers",
        "report_keys",
        "spec",
        "table",
    )

    def __init__(self, spec: MonitorsSpec) -> None:
        self.spec = spec
        self.table = ModelTable(spec)
        self.delays = LabelDelays(spec.max_models)
        self.pasts = Pasts(spec.max_models, spec.history_days)
        self.registers = registers_of(spec)
        self.raising = [each for each in self.registers if isinstance(each, RaisesAlarms)]
        """Registers with detectors of their own."""
        explaining = [each for each in self.registers if isinstance(each, ExplainsAlarms)]
        self.explaining: Sequence[ExplainsAlarms] = explaining
        """Registers that can locate a change among the predictions."""
        judging = (each for each in self.registers if isinstance(each, JudgesModels))
        self.judging: JudgesModels | None = next(judging, None)
        """Register whose verdicts are headlines; None if there is none."""
        late = [name for register in self.raising for name in register.detectors]
        self.alarms = Alarms(spec.max_models, [*(d.name for d in spec.detectors), VERDICT, *late])
        self.report_keys = ReportKeys()
        """Label values of the last report's series."""
        own = (self.delays, self.alarms, self.pasts, *self.registers)
        self.index = ModelIndex(spec, self.table, own)
