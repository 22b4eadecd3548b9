"""Histories of models for `streamwatch tune`: from recordings, a state directory or a daemon's API."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from streamwatch.cli.compile import reporting_compilation
from streamwatch.cli.options import refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamwatch.edge.daemon_api import Address
    from streamwatch.history.replay.replay import ReplaySpec
    from streamwatch.history.tuning.history import History, Unfit


def recorded(read: Callable[[], ReplaySpec]) -> dict[str, History]:
    """Replay recordings and return the outcomes of every model; ends the command at an error."""
    from rich.console import Console

    from streamwatch.history.recordings.file import RecordingError
    from streamwatch.history.replay.replay import replay
    from streamwatch.history.tuning.history import Histories, outcomes_only
    from streamwatch.settings import SettingsError

    histories = Histories()
    try:
        spec = read()
        with reporting_compilation():
            made = replace(spec, monitors=outcomes_only(spec.monitors), seen=histories.add)
            replay(made, Console(stderr=True))
    except (RecordingError, SettingsError) as error:
        refuse(str(error))
    return histories.of_models()


def kept(
    source: Path | Address, since_ms: int | None, until_ms: int | None, seed: int
) -> dict[str, History | Unfit]:
    """Read the histories that a daemon keeps, from its state directory or its API.

    Ends the command at an error.
    """
    from streamwatch.admin.state_contents import state_pasts
    from streamwatch.core.estimators.past import HOUR_S, merged
    from streamwatch.edge.daemon_api import DaemonUnreachable
    from streamwatch.edge.stores.kind import StateFailed, StateRefused
    from streamwatch.edge.web.routes.history import seamless
    from streamwatch.history.tuning.history import counts_of, counts_of_daemon, histories_of

    try:
        if isinstance(source, Path):
            pasts = state_pasts(source)
            until_s = int(time.time()) + HOUR_S  # later outcomes are left out, as by the API
            counts = {
                name: counts_of(
                    seamless(merged(views, pasts.days), pasts.days, until_s), in_folds=len(views) > 1
                )
                for name, views in pasts.views.items()
            }
        else:
            counts = counts_of_daemon(source)
    except (StateRefused, StateFailed, DaemonUnreachable, OSError) as error:
        refuse(str(error))
    return histories_of({name: each.between(since_ms, until_ms) for name, each in counts.items()}, seed)
