"""Spark on one machine, and how it is killed."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

CONFIGURATION = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
"""Of Spark, for tests on one machine."""


def run_through_kills(command: Sequence[str], folder: Path, kills: int, chance: Random) -> int:
    """Start a job until it ends by itself; its exit code. Before that it is killed so many times.

    Each time a moment after it has done another batch: driver, Java and workers at once.
    """
    for number in range(kills + 1):
        with (folder / "job.log").open("ab") as out, subprocess.Popen(command, stdout=out, stderr=out) as job:
            if number < kills:
                wanted = committed(folder) + 1
                while job.poll() is None and committed(folder) < wanted:
                    time.sleep(0.05)
                with suppress(subprocess.TimeoutExpired):
                    job.wait(chance.uniform(0, 3))
                killed(job)
    return job.returncode


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
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [pid, *(each for started in children.stdout.split() for each in tree_of(int(started)))]
