"""Kinds of detectors. A new kind is one file beside these and one line in `KINDS`.

Take `ddm.py` for an example. The file holds, in this order:

1. the rule and its source, in the module's docstring;
2. `DdmSpec`, a frozen dataclass: what an operator may choose, and defaults; `name` is the `detector` label;
3. `ENTRY`, its line in the catalogue: what it does, formula, source, cost, and each parameter's range;
4. `STATE`, what is kept of one model (zeros are the beginning), and `PARAMETERS`, the spec as a record;
5. `observe`, compiled: one outcome. It appends an alarm *before* it resets itself;
6. `show`, compiled: statistic, threshold, number of alarms and whether it warns, now;
7. `DDM = DetectorKind(…)`, which ties them together.

The line is `DDM,` below (beside its import). From it follow the model's record, the loop, snapshots, the
setting `monitors.detectors: [ddm: {alarm_level: 4}]` with its checks, the series `detector_statistic`,
`detector_threshold`, `detector_warning` and `alarms_total`, the columns of the trace, and what `streamwatch
catalogue` prints. The contract tests run over `KINDS`: whoever is in it must be quiet on a constant stream,
alarm at a jump, and not care how a stream is cut or resumed.
"""

from __future__ import annotations

from streamwatch.core.estimators.detectors.adwin_drift import ADWIN_DRIFT
from streamwatch.core.estimators.detectors.cusum import CUSUM
from streamwatch.core.estimators.detectors.ddm import DDM
from streamwatch.core.estimators.detectors.ewma import EWMA
from streamwatch.core.estimators.detectors.hddm_a import HDDM_A
from streamwatch.core.estimators.detectors.hddm_w import HDDM_W
from streamwatch.core.estimators.detectors.kind import DetectorKind
from streamwatch.core.estimators.detectors.kswin import KSWIN
from streamwatch.core.estimators.detectors.page_hinkley import PAGE_HINKLEY
from streamwatch.core.estimators.detectors.stepd import STEPD

KINDS: tuple[DetectorKind, ...] = (
    PAGE_HINKLEY,
    ADWIN_DRIFT,
    DDM,
    CUSUM,
    HDDM_A,
    HDDM_W,
    EWMA,
    STEPD,
    KSWIN,
)

__all__ = ["KINDS", "DetectorKind"]
