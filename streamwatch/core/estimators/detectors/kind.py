"""Kind of detector: its catalogue entry, record types and compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamwatch.core.estimators.entries import Entry


@dataclass(frozen=True, slots=True)
class DetectorKind:
    """Kind of detector; everything else about detectors is derived from the list `detectors.KINDS`.

    A model's record has a field `name`: an array of `state` records, one per detector of this kind.
    The parameter row has an array of `parameters` records under the same name, in the same order; their field
    `detector` is the detector's index in the configuration.
    """

    name: str
    version: int
    """Incremented when the meaning of `state` changes; snapshots of other versions are not continued."""
    entry: Entry
    """Catalogue entry, from which settings, checks and documentation are derived."""
    state: np.dtype[np.void]
    """Record of one detector's state, initially zeros, without padding.

    Field `alarms` (i8) counts its alarms.
    """
    parameters: np.dtype[np.void]
    row: Callable[[Any, int, Callable[[Any], int]], tuple[object, ...]]
    """Build the parameter record from a specification.

    (specification, detector index, function from an AdwinSpec to the index of its window) → parameter record
    """
    observe: Callable[..., int]
    """Pass one outcome to all detectors of this kind.

    (model, parameters, miss, position, row, alarms, count) → count
    """
    show: Callable[..., None]
    """Write column t of the four arrays, one row per detector.

    (model, parameters, statistic, threshold, alarms, warned, t). Kinds without a warning level do not write
    `warned`.
    """
    window: Callable[[Any], Any] = lambda _spec: None
    """AdwinSpec of the window that a detector uses, from its specification; None if it uses none."""
    hot_bytes: int = 0
    """Number of bytes at the start of `state` that every outcome accesses, to be prefetched."""

    @property
    def spec(self) -> type[Any]:
        """Class of the kind's specifications."""
        return self.entry.spec
