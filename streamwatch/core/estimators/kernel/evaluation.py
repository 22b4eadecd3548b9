"""Evaluation of batches: room is made for them first, and made again where a pool was full."""

from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.detectors.alarm import ALARM, AlarmRow, alarm_rows
from streamwatch.core.estimators.kernel import admission, fold
from streamwatch.core.estimators.kernel.batch import Batch
from streamwatch.core.estimators.kernel.layout import Layout
from streamwatch.core.estimators.kernel.pools import Pools
from streamwatch.core.estimators.kernel.record import Records
from streamwatch.core.estimators.kernel.rows import Rows
from streamwatch.core.estimators.kernel.tracing import Trace, traced
from streamwatch.core.specs import MonitorsSpec


class Evaluation:
    """Evaluates batches of outcomes of the models in a table's pools."""

    def __init__(self, spec: MonitorsSpec, layout: Layout, pools: Pools, rows: Rows) -> None:
        self._spec = spec
        self._layout = layout
        self._pools = pools
        self._rows = rows
        self.alarms: Records = np.zeros(0, ALARM)
        """Room for the alarms of a batch."""

    def fold(self, batch: Batch) -> list[AlarmRow]:
        """Evaluate outcomes in order, and return the alarms in the same order.

        Raises
        ------
        ValueError
            If an index is out of range; nothing was evaluated then.
        """
        self._reserve(batch)
        while True:
            pools = self._pools
            verdict, count = fold.fold(
                pools.models,
                pools.spans,
                pools.next_fold,
                pools.class_counts,
                pools.class_counts_allocator,
                pools.rings,
                pools.blocks,
                pools.block_allocator,
                pools.shadow_spans,
                pools.shadows,
                pools.shadow_allocator,
                self._layout.parameters,
                self._layout.utilities,
                self._layout.max_classes,
                batch.rows,
                batch.true_class,
                batch.predicted_class,
                batch.label_at_prediction,
                batch.event_ms,
                *batch.scores,
                self.alarms,
            )
            if verdict == admission.ADMITTED:
                return alarm_rows(self.alarms, int(count))
            self._resolve(verdict, int(count), batch)

    def trace(self, batch: Batch) -> Trace:
        """Evaluate a batch, and return the values of its models' estimators after every outcome.

        Raises
        ------
        ValueError
            If an index is out of range; nothing was evaluated then.
        """
        self._reserve(batch)
        pools, most = self._pools, self._layout.max_classes
        while True:
            verdict, position = pools.make_room(
                batch.rows, batch.true_class, batch.predicted_class, batch.scores, most
            )
            if verdict == admission.ADMITTED:
                return traced(self._spec, self._layout, pools, batch, self.alarms)
            self._resolve(verdict, position, batch)

    def _reserve(self, batch: Batch) -> None:
        """Make room for the blocks and alarms of a batch."""
        self._pools.reserve_batch(len(batch.rows), self._rows.used)
        most = len(batch.rows) * (len(self._spec.detectors) + 1)
        if len(self.alarms) < most:
            self.alarms = np.zeros(most, ALARM)

    def _resolve(self, verdict: int, position: int, batch: Batch) -> None:
        """Enlarge the pool that was full, so that the batch can be tried again.

        Raise ValueError for invalid input.
        """
        if verdict != admission.INVALID:
            self._pools.enlarge(verdict)
            return
        got = tuple(int(column[position]) for column in (batch.rows, batch.true_class, batch.predicted_class))
        raise ValueError(
            f"outcome {position} of a batch must have a live row and classes (of scores, too) below "
            f"{self._layout.max_classes}, got (row, truth, predicted) = {got}"
        )
