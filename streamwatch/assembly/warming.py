"""Compiling whatever `streamwatch run` calls before it is needed, or loading what was compiled before."""

from __future__ import annotations

from streamwatch.assembly import specs
from streamwatch.core.estimators.warming import WarmUpResult, warm_up
from streamwatch.core.join.compiled.warming import warm_up_commits, warm_up_join, warm_up_overflow
from streamwatch.core.merge.warming import warm_up_merge
from streamwatch.core.predictions.warming import warm_up_predictions
from streamwatch.edge.decoders.scanner.reader import compile_reader
from streamwatch.settings import Settings


def warm_up_run(settings: Settings, *, any_state: bool = False) -> WarmUpResult:
    """Warm up estimators, join, merge and reader as a daemon with these settings needs them.

    Parameters
    ----------
    settings
        Whatever the operator chose.
    any_state
        Whatever `state.kind` says, warm up for all kinds: what is kept serves any of them later.

    Returns
    -------
    Warmth
        That of the estimators.
    """
    warmth = warm_up(specs.monitors_spec(settings))
    if any_state or specs.joins_in_columns(settings):
        warm_up_join()
        warm_up_commits()
        if any_state or specs.store_kind(settings).durable:
            warm_up_overflow()
    warm_up_predictions(specs.join_spec(settings).prediction_registers)
    warm_up_merge()
    compile_reader()
    return warmth
