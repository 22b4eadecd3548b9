"""Where MOA's and river's DDM differ from ours: at the start, and after a beginning without errors.

MOA 24.07 looks for the lowest p + s from its 29th outcome on, river from its 31st, ours from its 30th, as
the paper says. After an error-free beginning s_min is 0 and the first error of all is an alarm in both;
ours counts s_min as 1/n_min at least. Everything else is the same: one plain definition, told these two
things, follows all three.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from river.drift import binary

from streamwatch.core.estimators.detectors.ddm import DdmSpec
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import MonitorsSpec

HERE = Path(__file__).parent
STARTS = {
    f"{'an error, ' if first else ''}{calm} hits, then errors": [1] * first + [0] * calm + [1] * 12
    for first, calm in ((1, 27), (1, 28), (0, 28), (1, 29), (1, 30))
}
MOA = dict(zip(STARTS, [([31], [32]), ([30], [31]), ([30], [31]), ([31], [32]), ([32], [33])], strict=True))
"""(warnings, alarms) that MOA 24.07 gives on these, recorded from it."""
CALM = [0] * 40 + [1] * 12


def golden(name):
    with gzip.open(HERE / f"{name}.csv.gz", "rt") as lines:
        return np.genfromtxt(lines, delimiter=",", names=True)


def definition(loss, start, floored):
    """(warnings, alarms) of DDM whose minimum begins at outcome `start` after each reset."""
    warnings, alarms, n, errors, best = [], [], 0, 0, None
    for step, x in enumerate(loss, 1):
        n, errors = n + 1, errors + int(x)
        if n < start:
            continue
        p = errors / n
        s = np.sqrt(p * (1 - p) / n)
        if best is None or p + s <= best[0] + best[1]:
            best = p, s, n
        spread = max(best[1], 1 / best[2]) if floored else best[1]
        if p + s > best[0] + 3 * spread:
            alarms.append(step)
            n, errors, best = 0, 0, None
        elif p + s > best[0] + 2 * spread:
            warnings.append(step)
    return warnings, alarms


def ours(loss):
    table = ModelTable(
        MonitorsSpec((), (DdmSpec(),), (), max_models=1, max_classes=2, opponents=(), shadow_max_classes=0)
    )
    predicted_class = np.array(loss, np.int32)
    rows = np.full(len(loss), table.add_model(), np.int32)
    trace = table.trace(rows, np.zeros_like(predicted_class), predicted_class)
    return steps(trace.warned[0]), steps(trace.alarmed[0])


def rivers(loss):
    peer, warnings, alarms = binary.DDM(), [], []
    for step, x in enumerate(loss, 1):
        peer.update(int(x))
        if peer.drift_detected:
            alarms.append(step)
        elif peer.warning_detected:
            warnings.append(step)
    return warnings, alarms


def steps(flags):
    return (np.flatnonzero(flags) + 1).tolist()


@pytest.mark.parametrize("start", STARTS)
def test_the_three_begin_at_the_twenty_ninth_thirtieth_and_thirty_first_outcome(start) -> None:
    loss = STARTS[start]
    assert definition(loss, 29, floored=False) == MOA[start]
    assert definition(loss, 30, floored=True) == ours(loss)
    assert definition(loss, 31, floored=False) == rivers(loss)


def test_the_first_error_after_a_beginning_without_any_is_an_alarm_in_both_but_not_here() -> None:
    assert rivers(CALM)[1] == [41]  # and MOA's
    assert definition(CALM, 29, floored=False) == ([], [41])
    warnings, alarms = ours(CALM)
    assert (warnings, alarms) == definition(CALM, 30, floored=True)
    assert 41 not in warnings + alarms
    assert alarms == [42]  # 2/42 + √(2/42·40/42/42) = .081 > 3/40


def test_on_forty_thousand_losses_all_three_warn_and_alarm_at_the_same_outcomes() -> None:
    """Stream D1; MOA's and river's flags at every step. (18,737 warnings: the error rose for good.)"""
    theirs = golden("D1_bernoulli_ddm")
    warnings, alarms = ours(golden("D1_bernoulli_input")["x"])
    for engine in ("moa", "river"):
        assert steps(theirs[f"drift_{engine}"] == 1) == alarms
        assert steps(theirs[f"warning_{engine}"] == 1) == warnings
    assert len(warnings) == 18_737
