"""`streamwatch state backup`: requests a backup from the daemon that has the state open."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from streamwatch.edge.stores.kind import StateFailed, StateRefused
from streamwatch.edge.stores.rocksdb.backup_names import backups_in
from streamwatch.edge.stores.rocksdb.opening import holder

_LOOK_SECONDS = 0.1


def back_up(
    directory: Path,
    backups: Path,
    seconds: float,
    monotonic: Callable[[], float] = time.monotonic,
) -> Path:
    """Request a backup from the daemon by SIGUSR1, wait until it is complete, and return its directory.

    Parameters
    ----------
    directory
        Directory of the state.
    backups
        Directory of the backups.
    seconds
        Longest wait.
    monotonic
        Monotonic clock in seconds.

    Raises
    ------
    StateRefused
        If no daemon has the state open, or it is in another container, or this user may not signal it.
    StateFailed
        If there is no backup in time.
    """
    process = holder(directory)
    if process is None:
        raise StateRefused(
            f"no daemon has the state in {directory} open: copy the directory, or export the state"
        )
    if process <= 0:  # `kill` would take it for a group of processes, to which this one belongs
        raise StateRefused(
            f"a process that cannot be seen from here has the state in {directory} open: run this in its "
            "container"
        )
    before = set(backups_in(backups))
    try:
        os.kill(process, signal.SIGUSR1)
    except (PermissionError, ProcessLookupError, OverflowError) as error:
        raise StateRefused(
            f"process {process}, which has the state in {directory} open, may not be signalled ({error}): "
            "run this as its user, in its container"
        ) from error
    deadline = monotonic() + seconds
    while not (made := set(backups_in(backups)) - before):
        if monotonic() >= deadline:
            raise StateFailed(
                f"no backup in {backups} after {seconds:g} s: the log of process {process} says why"
            )
        time.sleep(_LOOK_SECONDS)
    return max(made)
