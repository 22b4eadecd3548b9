"""Which rows of a table have a model."""

from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.forgetting.drift_weighted import NOBODY, leave_reference
from streamwatch.core.estimators.kernel.layout import Layout
from streamwatch.core.estimators.kernel.pools import Pools
from streamwatch.core.estimators.kernel.readout import Integers
from streamwatch.core.estimators.verdicts.utility import ACCURACY


class TableFull(Exception):  # noqa: N818  (a bound was reached, and the caller counts it; nothing went wrong)
    """No row is free: `max_models` models are watched."""


class Rows:
    """Gives out rows below `max_models`; those of retired models are given out again."""

    def __init__(self, layout: Layout, pools: Pools, max_models: int) -> None:
        self._layout = layout
        self._pools = pools
        self._max_models = max_models
        self._free: list[int] = []
        self.used = 0
        """Rows ever given out."""

    @property
    def room(self) -> int:
        """Rows that can still be given out."""
        return self._max_models - self.used + len(self._free)

    def add(self, utility: int = ACCURACY, detecting: int = 0) -> int:
        """An empty row, judged by a utility (see `verdicts.opponents`); raises TableFull without one.

        `detecting` is the parameter row of its detectors.
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
        self._pools.models["detecting"][row] = detecting
        self._pools.models["labels"]["majority_unit"][row] = 1.0
        self._pools.models["labels"]["balanced_unit"][row] = 1.0
        if self._layout.shadow_classes:
            self._pools.shadow_spans[row] = 0
            self._pools.models["shadow"]["unit"][row] = 1.0
        return row

    def retire(self, row: int) -> None:
        """Empty a row; weightings that followed its model follow nobody."""
        self.live_one(row)
        followed = self._layout.parameters["drift_weighted"]["reference"][0]
        for drift_weighted in np.flatnonzero(followed == row).tolist():
            states = self._pools.models["drift_weighted"][:, drift_weighted]
            leave_reference(states, int(states["drifts"][row]))
            followed[drift_weighted] = NOBODY
        self._pools.release(row)
        self._free.append(row)

    def live(self, rows: Integers) -> Integers:
        """The same rows as int64, once each is known to have a model; raises ValueError otherwise."""
        rows = np.ascontiguousarray(rows, np.int64)
        valid = (rows >= 0) & (rows < self.used)
        if not (valid.all() and (self._pools.spans[rows] >= 0).all()):
            raise ValueError(f"rows must be of models in the table, got {rows.tolist()}")
        return rows

    def live_one(self, row: int) -> None:
        """Raise ValueError unless a row has a model."""
        self.live(np.array([row], np.int64))
