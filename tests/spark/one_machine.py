"""Spark on one machine, and how it is killed."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

CONFIGURATION = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Of Spark, for tests on one machine."""
DEADLINE_SECONDS = 3_600.0
"""To notice what never happens; how long things take is no matter of this."""


def run_through_kills(command: Sequence[str], folder: Path, kills: int, chance: Random) -> int:
    """Start a job until it ends by itself; its exit code. Before that it is killed so many times.

    Each time a moment after it has done another batch: driver, Java and workers at once.
    """
    for number in range(kills + 1):
        with (folder / "job.log").open("ab") as out, subprocess.Popen(command, stdout=out, stderr=out) as job:
            if number < kills:
                wanted = committed(folder) + 1
                until(job, lambda: committed(folder) >= wanted)  # noqa: B023  # asked at once
                with suppress(subprocess.TimeoutExpired):
                    job.wait(chance.uniform(0, 3))
                killed(job)
    return job.returncode


def until(job: subprocess.Popen[bytes], condition: Callable[[], bool], pause: float = 0.05) -> bool:
    """Wait until something holds; whether it did before the job ended by itself."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        with suppress(subprocess.TimeoutExpired):
            job.wait(pause)
            return condition()
        assert time.monotonic() < deadline, "the job neither ends nor gets on"
    return True


def committed(folder: Path) -> int:
    """Batches that Spark counts as done."""
    commits = folder / "checkpoint" / "commits"
    return sum(each.name.isdigit() for each in commits.iterdir()) if commits.is_dir() else 0


def killed(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started at once."""
    for pid in tree_of(process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
    process.wait()


def tree_of(pid: int) -> list[int]:
    """A process and all that it started."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            children.setdefault(parent_of(int(folder.name)), []).append(int(folder.name))
    found = [pid]
    for each in found:  # grows as it is gone through
        found += children.get(each, [])
    return found


def parent_of(pid: int) -> int:
    """The process that started it; raises OSError where there is none."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
