"""System calls that fail or take long, by strace."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.disk.writing import PATIENCE_SECONDS, until


def under_strace(*injections: str) -> list[str]:
    """The beginning of a command whose calls go wrong from the start; counts are by thread."""
    strace, *arguments = attached(*injections)
    return [strace, "--seccomp-bpf", *arguments]


def attached(*injections: str, log: str = "/dev/null") -> list[str]:
    """The beginning of a command that lets calls of a process that is there go wrong: `-p` and its PID."""
    strace = shutil.which("strace")
    assert strace is not None
    command = [strace, "-f", "-qq", "-o", log]
    calls = ",".join(injection.partition(":")[0] for injection in injections)
    command += ["-e", f"trace={calls}"]
    for injection in injections:
        command += ["-e", f"inject={injection}"]
    return command


@contextmanager
def injected(pid: int, injection: str, log: Path) -> Iterator[None]:
    """Calls of a running process go wrong until the end of the block; it runs slower meanwhile."""
    with subprocess.Popen([*attached(injection, log=str(log)), "-p", str(pid)]) as strace:
        try:
            until(lambda: _traced(pid) == strace.pid)
            yield
        finally:
            strace.send_signal(signal.SIGINT)
            strace.wait(PATIENCE_SECONDS)
    until(lambda: not _traced(pid))


def _traced(pid: int) -> int:
    """Who traces all threads of a process; 0: nobody, or only some of them."""
    tracers = set()
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        tracers.add(int(fields["TracerPid"]))
    return tracers.pop() if len(tracers) == 1 else 0
