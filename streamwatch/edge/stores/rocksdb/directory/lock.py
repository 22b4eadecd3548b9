"""Who has a state directory open, and how to keep it closed for a while.

RocksDB takes a record lock on `LOCK` for writing. A process that looks at a state takes it for reading:
several may look at once, and a daemon that is started meanwhile says that the directory is in use.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path
from typing import Final

from streamwatch.edge.stores.errors import StateInUse

LOCK: Final = "LOCK"
_FLOCK: Final = struct.Struct("hhqqi4x")
"""`struct flock` of 64-bit Linux: type, whence, start, length, process."""


def holder(directory: Path) -> int | None:
    """The process that has the state open for writing; None if none has, or if that cannot be found out.

    The caller's own locks are not seen, and are lost by asking: ask before taking any.
    """
    try:
        opened = os.open(directory / LOCK, os.O_RDONLY)
    except OSError:
        return None
    try:
        asked = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = _FLOCK.unpack(fcntl.fcntl(opened, fcntl.F_GETLK, asked))
    except OSError:
        return None
    finally:
        os.close(opened)
    return None if kind == fcntl.F_UNLCK else process


def keep_closed(directory: Path) -> int | None:
    """A file descriptor: nobody writes to the state until it is closed. None where there is nothing to lock.

    Raises
    ------
    StateInUse
        If somebody writes to it already.
    """
    process = holder(directory)
    if process is not None:
        raise in_use(directory, process)
    try:
        opened = os.open(directory / LOCK, os.O_RDONLY)
    except OSError:  # a copy without it, which nobody has open
        return None
    try:
        fcntl.lockf(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(opened)
        raise in_use(directory, 0) from None
    except OSError:  # a file system without locks
        os.close(opened)
        return None
    return opened


def in_use(directory: Path, process: int) -> StateInUse:
    """Describe a state that a daemon has open; process 0 is one in another container."""
    by = f"process {process}" if process > 0 else "another process"
    return StateInUse(
        f"the state in {directory} is in use by {by}: stop the daemon first; "
        "what a running one holds is in its /metrics, and shown by `streamwatch state show`"
    )
