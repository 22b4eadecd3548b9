"""The program of `tests.faults.committed`, forked from a process that has all of it imported, and stopped.

To start it anew for each of some hundred kills takes seconds each, nearly all of them imports. Here a server
imports it once; every run is a fork of that, which waits for whoever will trace it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.faults.committed import COLD, commit_all

_PR_SET_PTRACER = 0x59616D61
_ANY = ctypes.c_ulong(-1 & (2 ** (8 * ctypes.sizeof(ctypes.c_ulong)) - 1))
PATIENCE_SECONDS = 120


def stopped(directory: Path, last: int, ids: int, said: Path) -> BaseProcess:
    """A process that stands still before its first line, and will write what it says to the file `said`."""
    server = get_context("forkserver")
    server.set_forkserver_preload([__name__, "tests.faults.warmed"])
    process = server.Process(
        target=_stop_then_commit,
        args=(str(directory), last, ids, str(said), os.environ.get(COLD, "0")),
        daemon=True,
    )
    process.start()
    _wait_until(process, "State", "T")
    return process


def let_go(process: BaseProcess) -> None:
    """Continue it as soon as it is traced."""
    _wait_until(process, "TracerPid", None)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGCONT)


def _stop_then_commit(directory: str, last: int, ids: int, said: str, cold: str) -> None:
    os.environ[COLD] = cold
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    # Where only ancestors may trace, that is allowed to whoever is asked to; elsewhere it changes nothing.
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    commit_all(Path(directory), last, ids)


def _wait_until(process: BaseProcess, name: str, value: str | None) -> None:
    """Wait for a line of /proc/PID/status: for this value, or for any but 0."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    status = Path(f"/proc/{process.pid}/status")
    while time.monotonic() < deadline:
        lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        if (lines[name] != "0") if value is None else lines[name].startswith(value):
            return
        time.sleep(0.002)
    raise TimeoutError(f"process {process.pid}: {name} was not {value or 'set'} in {PATIENCE_SECONDS} s")
