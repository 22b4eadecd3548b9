"""Type of a model's record.

A record holds scalars only: a header, the totals of every mechanism (a *column* each), and, per kind of
estimator, an array of records of configured length (possibly 0).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.estimators.forgetting.adwin import WINDOW
from streamwatch.core.estimators.forgetting.drift_weighted import WEIGHTING
from streamwatch.core.estimators.forgetting.label_drift import LABEL_DRIFT
from streamwatch.core.estimators.forgetting.mechanisms import FADING
from streamwatch.core.estimators.kernel.implied import label_drifts_of, opponents_of
from streamwatch.core.estimators.kernel.shadow import SHADOW
from streamwatch.core.estimators.memory.totals import SUMS
from streamwatch.core.estimators.recovery.state import RECOVERY
from streamwatch.core.estimators.verdicts.deferred import WAITING
from streamwatch.core.estimators.verdicts.opponents import LABEL_COUNTS
from streamwatch.core.estimators.verdicts.state import PACE, VERDICT
from streamwatch.core.estimators.verdicts.steps import LONGEST
from streamwatch.core.specs import MonitorsSpec

Records: TypeAlias = NDArray[np.void]

LINE = 64


def model_record(spec: MonitorsSpec, columns: int, fading: int, windows: int) -> np.dtype[np.void]:
    """Build the type of a model's record, most used fields first.

    An empty record is zero except for units.
    """
    detectors = [
        (kind.name, kind.state, (sum(isinstance(d, kind.spec) for d in spec.detectors),)) for kind in KINDS
    ]
    noted = LONGEST if opponents_of(spec) else 0
    balanced = any(u.kind == "balanced" for u in spec.utilities)
    fields: list[Any] = [
        ("outcomes", "i8"),
        ("errors", "i8"),
        ("class_counts", "i8"),  # first row of the model's span of class rows
        ("classes", "i4"),  # highest class index seen + 1
        ("head", "i4"),  # position of the next outcome in the ring
        ("last", "i4"),  # label of the previous outcome
        ("last_missed", "i4"),  # whether the previous outcome was wrong
        ("utility", "i4"),  # number of the utility, see `verdicts.utility`
        ("detector_row", "i4"),  # parameter row of the model's detectors
        ("waiting", WAITING, (int(bool(opponents_of(spec))),)),  # deferred steps, see `verdicts.deferred`
        ("leads", "u1", (noted,)),  # … what is noted of each outcome
        ("labels", LABEL_COUNTS, (int(bool(opponents_of(spec))),)),  # units are 1 at first
        ("pending", "i4", (windows,)),  # outcomes since each ADWIN window's last check, not in buckets yet
        ("totals", "f8", (SUMS, columns)),
        ("fading", FADING, (fading,)),  # units are 1 at first
        ("shadow", SHADOW, (int(spec.shadow_max_classes > 0),)),  # unit is 1 at first
        ("drift_weighted", WEIGHTING, (len(spec.drift_weighted),)),
        ("follow_at", "i8"),  # the outcome at which `recovery` looks next, unless there is an alarm
        *detectors,
        ("label_drift", LABEL_DRIFT, (len(label_drifts_of(spec.drift_weighted)),)),
        ("windows", WINDOW, (windows,)),
        ("noted_ms", "i8", (noted,)),  # event times of the outcomes in `leads`
        ("magnitudes", "f8", (noted if balanced else 0,)),  # |d| at them, where not all leads are ±1 or 0
        ("pace", PACE, (len(opponents_of(spec)),)),
        ("verdicts", VERDICT, (len(opponents_of(spec)),)),
        ("recovery", RECOVERY, (int(fading > 0),)),
    ]
    packed = np.dtype(fields, align=True)
    return np.dtype(
        {
            "names": [name for name, *_ in fields],
            "formats": [field[1:] if len(field) == 3 else field[1] for field in fields],
            "offsets": [offset_of(packed, name) for name, *_ in fields],
            "itemsize": -(-packed.itemsize // LINE) * LINE,
        },
        align=True,
    )


def offset_of(record: np.dtype[np.void], name: str) -> int:
    """Byte offset of a field of a record type."""
    fields: Any = record.fields
    return int(fields[name][1]) if fields else 0
