"""Metrics of the process and its interpreter, under the names every exporter gives them."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from contextlib import suppress

from streamwatch.core.metrics import family, single
from streamwatch.core.series import Family

_STATM = "/proc/self/statm"
_FDS = "/proc/self/fd"


def process_families(started_s: float) -> Sequence[Family]:
    """CPU time, memory, open files and start of this process; without what the system does not tell.

    Parameters
    ----------
    started_s
        Start of the process in seconds since the epoch.
    """
    interpreter = platform.python_implementation(), platform.python_version()
    return [
        single("process_cpu_seconds_total", time.process_time()),
        single("process_resident_memory_bytes", _resident_bytes()),
        single("process_start_time_seconds", started_s),
        single("process_open_fds", _open_files()),
        family("python_info", [(interpreter, 1.0)]),
    ]


def _resident_bytes() -> float | None:
    """Resident memory in bytes; None where the system does not tell it (Linux does)."""
    with suppress(OSError), open(_STATM, encoding="ascii") as statm:  # noqa: PTH123 - a third of Path.open's time
        return float(int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    return None


def _open_files() -> float | None:
    """File descriptors held open, the one of this look left out; None where the system does not tell it."""
    with suppress(OSError):
        return float(len(os.listdir(_FDS)) - 1)  # noqa: PTH208 - names are not asked for
    return None
