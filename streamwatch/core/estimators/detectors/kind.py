"""What a kind of detector brings: its catalogue line, record, parameters, and two compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamwatch.core.estimators.entries import Entry


@dataclass(frozen=True, slots=True)
class DetectorKind:
    """One kind of detector; `detectors.KINDS` lists them all, and everything else follows from that list.

    A model's record has a field `name`: an array of `state` records, one per detector of this kind.
    The parameter row has an array of `parameters` records under the same name, in the same order; their field
    `detector` is the detector's index in the configuration.
    """

    name: str
    version: int
    """Raised when the meaning of `state` changes; sections of another version are not resumed."""
    entry: Entry
    """Its line in the catalogue, which settings, checks and documentation are made from."""
    state: np.dtype[np.void]
    """Zeros are its initial state. Must have `alarms` (i8), how many it raised; no padding."""
    parameters: np.dtype[np.void]
    row: Callable[[Any, int, Callable[[Any], int]], tuple[object, ...]]
    """(specification, detector index, index of the ADWIN window equal to a spec) → its parameter record."""
    observe: Callable[..., int]
    """(model, parameters, miss, position, row, alarms, count) → count: one outcome, for all of this kind."""
    show: Callable[..., None]
    """(model, parameters, statistic, threshold, alarms, warned, t): writes column t of the four, one row a
    detector. What has no warning level leaves `warned` alone."""
    window: Callable[[Any], Any] = lambda _spec: None
    """The AdwinSpec whose window it watches, if any."""
    hot_bytes: int = 0
    """Bytes at the beginning of `state` worth bringing in ahead of every outcome."""

    @property
    def spec(self) -> type[Any]:
        """The class of its specification."""
        return self.entry.spec
