"""Kinds of drift detectors. To add a kind, add a module like these and one line to `KINDS`.

Take `ddm.py` as an example. The module contains, in this order:

1. the rule and its source, in the module's docstring;
2. `DdmSpec`, a frozen dataclass with the parameters and their defaults; `name` is the `detector` label;
3. `ENTRY`, its catalogue entry: effect, formula, source, cost, and each parameter's range;
4. `STATE`, the state for one model (initially zeros), and `PARAMETERS`, the spec as a record;
5. `observe`, compiled: takes one outcome. It appends an alarm *before* it resets itself;
6. `show`, compiled: writes the current statistic, threshold, number of alarms and warning;
7. `DDM = DetectorKind(…)`, which combines these.

The line in `KINDS` is `DDM,` below (besides its import). Everything else is derived from the list: the
model's record, the loop, snapshots, the setting `monitors.detectors: [ddm: {alarm_level: 4}]` with its
checks, the series `detector_statistic`, `detector_threshold`, `detector_warning` and `alarms_total`, the
columns of the trace, and the output of `streamwatch catalogue`. The contract tests run over `KINDS`: every
kind must be quiet on a constant stream, alarm at a jump, and give the same results however a stream is cut or
resumed.
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
