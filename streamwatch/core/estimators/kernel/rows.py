"""Allocation of the rows of a table to models."""

from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.forgetting.drift_weighted import NOBODY, leave_reference
from streamwatch.core.estimators.kernel.layout import Layout
from streamwatch.core.estimators.kernel.pools import Pools
from streamwatch.core.estimators.kernel.readout import Integers
from streamwatch.core.estimators.verdicts.utility import ACCURACY


class TableFull(Exception):  # noqa: N818  (a bound was reached, and the caller counts it; nothing went wrong)
    """Raised when no row is free, as `max_models` models exist."""


class Rows:
    """Allocates rows below `max_models`; rows of retired models are used again."""

    def __init__(self, layout: Layout, pools: Pools, max_models: int) -> None:
        self._layout = layout
        self._pools = pools
        self._max_models = max_models
        self._free: list[int] = []
        self.used = 0
        """Number of rows ever allocated."""

    @property
    def room(self) -> int:
        """Number of models that can still be added."""
        return self._max_models - self.used + len(self._free)

    def add(self, utility: int = ACCURACY, detector_row: int = 0) -> int:
        """Allocate an empty row, judged by utility number `utility`; raises TableFull if none is free.

        `detector_row` is the parameter row of its detectors.
        """
        if self._free:
            row = self._free.pop()
        elif self.used < self._max_models:
            row = self.used
            self.used += 1
            self._pools.reserve_rows(self.used)
        else:
            raise TableFull(f"{self._max_models} models are watched, the most configured")
        self._pools.spans[row] = 0
        self._pools.models["fading"]["unit"][row] = 1.0
        self._pools.models["utility"][row] = utility
        self._pools.models["detector_row"][row] = detector_row
        self._pools.models["labels"]["majority_unit"][row] = 1.0
        self._pools.models["labels"]["balanced_unit"][row] = 1.0
        if self._layout.shadow_classes:
            self._pools.shadow_spans[row] = 0
            self._pools.models["shadow"]["unit"][row] = 1.0
        return row

    def retire(self, row: int) -> None:
        """Clear a row; weightings that followed its model have no reference from now on."""
        self.live_one(row)
        followed = self._layout.parameters["drift_weighted"]["reference"][0]
        for drift_weighted in np.flatnonzero(followed == row).tolist():
            states = self._pools.models["drift_weighted"][:, drift_weighted]
            leave_reference(states, int(states["drifts"][row]))
            followed[drift_weighted] = NOBODY
        self._pools.release(row)
        self._free.append(row)

    def live(self, rows: Integers) -> Integers:
        """Convert rows to int64; raises ValueError unless each has a model."""
        rows = np.ascontiguousarray(rows, np.int64)
        valid = (rows >= 0) & (rows < self.used)
        if not (valid.all() and (self._pools.spans[rows] >= 0).all()):
            raise ValueError(f"rows must be of models in the table, got {rows.tolist()}")
        return rows

    def live_one(self, row: int) -> None:
        """Raise ValueError if the row has no model."""
        self.live(np.array([row], np.int64))
