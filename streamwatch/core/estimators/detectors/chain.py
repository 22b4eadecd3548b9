"""Chains of all kinds of detectors: one compiled call to observe an outcome, one to show the state.

There is one static loop per kind, so that `fold` need not name the kinds. Kinds that the configuration does
not use are left out when its kernel is compiled, and cost neither time nor compilation.

Every link has a name of its own. Numba distinguishes functions of one name by a number that it counts anew in
each process, so two links compiled by different processes could have the same symbol, and only the first one
loaded would be used.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.jit import hot, inner, where_filled


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
