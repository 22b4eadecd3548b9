"""`streamwatch run`, forked from a process that has imported and compiled what it needs.

A start takes seconds of processor time, nearly all of them imports; a fork takes none of these. Tests of what
belongs to a process of its own, as what ends it, start one anew.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.faults.forked import forked


class ForkedProcess:
    """A fork, with as much of `subprocess.Popen` as tests of daemons use."""

    def __init__(self, folder: Path, log: Path, module: Sequence[str], arguments: Sequence[str]) -> None:
        log.write_bytes(b"")  # nobody is to read what the one before wrote
        environment = dict(os.environ)
        self._process, said = forked(_run, str(folder), str(log), environment, [*module], [*arguments])
        said.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(f"streamwatch, {self.pid}", timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@contextmanager
def forked_daemon(
    folder: Path, log: Path, arguments: Sequence[str], module: Sequence[str] = ("streamwatch",)
) -> Iterator[ForkedProcess]:
    """A fork that runs the module in a folder, and writes what it says to a file; killed at the end."""
    process = ForkedProcess(folder, log, module, arguments)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _run(
    folder: str, log: str, environment: Mapping[str, str], module: Sequence[str], arguments: Sequence[str]
) -> None:
    """Run the module as `python -m` does, in a folder, with what it writes in a file."""
    os.environ.clear()
    os.environ.update(environment)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(written, 1)
    os.dup2(written, 2)
    os.close(written)
    os.chdir(folder)
    name, *before = module
    sys.argv[1:] = [*before, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)
