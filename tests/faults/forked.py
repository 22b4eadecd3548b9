"""Programs that write to a disk, forked from a process that has all they need imported and compiled.

To start one anew for each of some hundred kills takes seconds each, nearly all of them imports. Here a server
imports everything once; every run is a fork of that. One server serves all tests of a process: what it has
loaded is fixed when the first of them asks for a fork.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.faults.committed import COLD

_PR_SET_PTRACER = 0x59616D61
_ANY = ctypes.c_ulong(-1 & (2 ** (8 * ctypes.sizeof(ctypes.c_ulong)) - 1))
PATIENCE_SECONDS = 120
PRELOADED = [__name__, "tests.faults.warmed", "tests.integration.warmed_daemon"]
"""Imported by the server, whoever asks first."""


def forked(
    program: Callable[..., None], *arguments: object, stops: bool = False
) -> tuple[BaseProcess, Connection]:
    """A process that runs the program, and where to read what that writes to its standard output.

    One that `stops` stands still before the first line of the program, for whoever will trace it.
    """
    server = get_context("forkserver")
    server.set_forkserver_preload(PRELOADED)
    reading, writing = server.Pipe(duplex=False)
    cold = os.environ.get(COLD, "0")
    process = server.Process(target=_run, args=(program, arguments, writing, cold, stops), daemon=True)
    process.start()
    writing.close()
    if stops:
        _wait_until(process, "State", "T")
    return process, reading


def let_go(process: BaseProcess) -> None:
    """Continue it as soon as it is traced."""
    _wait_until(process, "TracerPid", None)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGCONT)


def _run(
    program: Callable[..., None],
    arguments: tuple[object, ...],
    said: Connection,
    cold: str,
    stops: bool,  # noqa: FBT001 - arguments of a process have no names
) -> None:
    os.environ[COLD] = cold
    os.dup2(said.fileno(), 1)
    said.close()
    # Where only ancestors may trace, that is allowed to whoever is asked to; elsewhere it changes nothing.
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)
    if stops:
        os.kill(os.getpid(), signal.SIGSTOP)
    program(*arguments)
    os._exit(0)  # as it would end otherwise: without a goodbye to the disk


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
