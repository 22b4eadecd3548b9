"""Layout of the models' records, derived from the configuration.

The record of a model is described in `record`; parameters are stored separately, in parameter rows shared by
all models (`parameters`). Columns are ordered fading | sliding | ADWIN windows | landmark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.forgetting.adwin import SMALL_OUTCOMES
from streamwatch.core.estimators.forgetting.mechanisms import DEFERRED
from streamwatch.core.estimators.kernel.checks import EXTRA_CLASSES, check
from streamwatch.core.estimators.kernel.implied import opponents_of, windows_of
from streamwatch.core.estimators.kernel.parameters import parameter_rows
from streamwatch.core.estimators.kernel.record import Records, model_record
from streamwatch.core.estimators.memory.ring import entry_type
from streamwatch.core.estimators.verdicts.costs import CostTable, cost_table_of, stacked
from streamwatch.core.estimators.verdicts.utility import ACCURACY, BALANCED, COSTS
from streamwatch.core.specs import (
    AdwinSpec,
    FadingSpec,
    ForgettingSpec,
    LandmarkSpec,
    MonitorsSpec,
    SlidingSpec,
    UtilitySpec,
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Estimators of a model, in the order of its record, with record types and parameters."""

    fading: tuple[FadingSpec, ...]
    sliding: tuple[SlidingSpec, ...]
    windows: tuple[AdwinSpec, ...]
    landmark: bool
    columns: int
    column_of: tuple[int, ...]
    """Column of each configured forgetting mechanism; equal mechanisms share a column."""
    ring_size: int
    ring: np.dtype[Any]
    """Type of the ring's entries."""
    shadow_classes: int
    """Largest number of classes of a model with shadow classifiers; 0 for no shadow classifiers."""
    max_classes: int
    """`max_classes` of the specification plus `EXTRA_CLASSES`."""
    opponents: tuple[str, ...]
    costs: Mapping[UtilitySpec, CostTable]
    """Cost tables by utility, in the order of `utilities`."""
    utilities: NDArray[np.float64]
    """Utilities by (table, true class, answer)."""
    model: np.dtype[np.void]
    parameters: Records
    """Parameter rows, shape (1 + number of `detectors_by_model`,).

    The first row is for all models; of the others only the parameters of detectors and ADWIN windows are
    used.
    """


def layout_of(spec: MonitorsSpec) -> Layout:
    """Derive the layout; ADWIN windows used only by detectors or weightings get a column like any other.

    Raises
    ------
    ValueError
        If a parameter is outside its range.
    """
    fading = tuple(dict.fromkeys(f for f in spec.forgetting if isinstance(f, FadingSpec)))
    sliding = tuple(dict.fromkeys(f for f in spec.forgetting if isinstance(f, SlidingSpec)))
    windows = windows_of(spec)
    landmark = any(isinstance(f, LandmarkSpec) for f in spec.forgetting)
    check(spec, fading, sliding, windows)
    order: list[ForgettingSpec] = [*fading, *sliding, *windows, *([LandmarkSpec()] if landmark else [])]
    columns = len(order)
    model = model_record(spec, columns, len(fading), len(windows))
    costs = {u: cost_table_of(u) for u in spec.utilities if u.kind == "costs"}
    longest = max((s.size + DEFERRED + 2 for s in sliding), default=2)
    buckets = max((SMALL_OUTCOMES + w.clock + 2 for w in windows), default=2)
    return Layout(
        fading=fading,
        sliding=sliding,
        windows=windows,
        landmark=landmark,
        columns=columns,
        column_of=tuple(order.index(f) for f in spec.forgetting),
        ring_size=max(longest, buckets),
        ring=entry_type(spec.max_classes + EXTRA_CLASSES),
        shadow_classes=spec.shadow_max_classes,
        max_classes=spec.max_classes + EXTRA_CLASSES,
        opponents=opponents_of(spec),
        costs=costs,
        utilities=stacked(list(costs.values())),
        model=model,
        parameters=parameter_rows(spec, fading, sliding, windows, model),
    )


def utility_index(layout: Layout, utility: UtilitySpec) -> int:
    """Number of a utility in the kernel.

    Raises
    ------
    ValueError
        If the specification has no such utility; every one has accuracy.
    """
    match utility.kind:
        case "accuracy":
            return ACCURACY
        case "balanced":
            if layout.opponents and not layout.model["magnitudes"].shape[0]:
                raise ValueError("a model judged by balanced utility needs it in the specification, got none")
            return BALANCED
        case "costs":
            return COSTS + list(layout.costs).index(utility)
