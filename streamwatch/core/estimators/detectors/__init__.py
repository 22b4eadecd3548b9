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

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
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
from streamwatch.core.jit import hot, inner, where_filled

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

__all__ = ["KINDS", "DetectorKind", "observe_all", "show_all"]


# Chains of all kinds of detectors: one compiled call to observe an outcome, one to show the state.
#
# There is one static loop per kind, so that `fold` need not name the kinds. Kinds that the configuration
# does not use are left out when its kernel is compiled, and cost neither time nor compilation.
#
# Every link has a name of its own. Numba distinguishes functions of one name by a number that it counts anew
# in each process, so two links compiled by different processes could have the same symbol, and only the
# first one loaded would be used.


@hot
def _observe_none(m, parameters, miss, position, row, alarms, count):  # noqa: ARG001
    return count


@inner
def _show_none(m, parameters, statistic, threshold, alarms, warned, t):
    pass


def _then_observe(kind, first, rest):
    def observe(m, parameters, miss, position, row, alarms, count):
        so_far = first(m, parameters, miss, position, row, alarms, count)
        return rest(m, parameters, miss, position, row, alarms, so_far)

    observe.__qualname__ = f"observe_{kind}_and_rest"
    return hot(observe)


def _then_show(kind, first, rest):
    def show(m, parameters, statistic, threshold, alarms, warned, t):
        first(m, parameters, statistic, threshold, alarms, warned, t)
        rest(m, parameters, statistic, threshold, alarms, warned, t)

    show.__qualname__ = f"show_{kind}_and_rest"
    return inner(show)


observe_all = _observe_none
"""Pass one loss to every detector of a model.

(model, parameters, miss, position, row, alarms, count) → count
"""

show_all = _show_none
"""Write the state of every detector of a model to column t.

(model, parameters, statistic, threshold, alarms, warned, t)
"""

for _kind in reversed(KINDS):
    observe_all = _then_observe(
        _kind.name, where_filled(_kind.name, _kind.observe, _observe_none), observe_all
    )
    show_all = _then_show(_kind.name, where_filled(_kind.name, _kind.show, _show_none), show_all)
