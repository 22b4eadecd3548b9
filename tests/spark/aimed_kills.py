"""SIGKILLs of the job's processes at chosen moments of a batch."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, islice, zip_longest
from pathlib import Path
from random import Random
from typing import Final

from tests.spark.one_machine import DEADLINE_SECONDS, killed, parent_of, tree_of, until

MOMENTS: Final = ("planned", "stored", "sent", "written", "committed")
"""Of a batch: its end is written down; the first bucket's state is; its results are with the brokers, in
an open transaction; that is over; Spark counts it as done."""
HOLDS: Final = ("sent", "written")
"""At which the job stands still until it is hit (`held_job`)."""
WHOLE: Final = ("everything", "python", "java")
"""Of which the job ends: all its processes at once, the driver's Python, the driver's Java."""
PARENT: Final = "spark_workers pyspark.worker"
"""In the command of the parent of workers, and of all that are forked from it."""
TASKS: Final = ("worker", "holder", "executor")
"""Processes of tasks: Python, the object of a bucket, and Java apart from the driver's (with
`local-cluster`)."""
_PAUSE_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class Aim:
    """What is killed, when."""

    victim: str
    moment: str
    seconds: float
    """From the moment on."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A kill."""

    aim: Aim
    batch: int
    """Of Spark, that was at hand at the moment."""
    unfinished: bool
    """It did not count as done when its processes were gone."""


def aims(victims: Sequence[str], number: int, chance: Random) -> list[Aim]:
    """So many aims: every pair of victim and moment comes before one comes again.

    Two of others, those of tasks at work first, then one at the sink that ends the job, and so on: a start
    takes longer than a batch.
    """
    pairs = [(victim, moment) for moment in MOMENTS for victim in victims]
    chance.shuffle(pairs)
    at_sink = [(victim, moment) for victim, moment in pairs if victim in WHOLE and moment in HOLDS]
    others = [pair for pair in pairs if pair not in at_sink]
    at_sink.sort(key=lambda pair: pair[1] != "written")
    others.sort(key=lambda p: (p[0] not in TASKS, p[1] not in {"planned", "stored"}, p[0] != "executor"))
    rows = zip_longest(others[::2], others[1::2], at_sink)
    mixed = [pair for row in rows for pair in row if pair is not None]
    return [Aim(*pair, chance.uniform(0, 1.5)) for pair in islice(cycle(mixed), number)]


def run_through_aims(command: Sequence[str], folder: Path, wanted: Sequence[Aim]) -> list[Hit]:
    """Start a job until it ends by itself, and every aim has been hit; each in another batch.

    A job whose tasks were hit goes on, or ends with an error, as Spark has it; then it is started again.
    """
    left, hits = list(wanted), list[Hit]()
    while True:
        before = len(hits)
        with (folder / "job.log").open("ab") as out, subprocess.Popen(command, stdout=out, stderr=out) as job:
            try:
                while left and (hit := _hit(job, folder, left[0], hits)) is not None:
                    hits.append(hit)
                    del left[0]
                _release(folder)
                code = job.wait(DEADLINE_SECONDS)
            finally:
                if job.poll() is None:
                    killed(job)
        if code == 0:
            assert not left, f"the job was done with {len(left)} aims left: write more batches"
            return hits
        assert len(hits) > before, f"ended by itself: {(folder / 'job.log').read_text()[-3_000:]}"


def planned(folder: Path) -> int:
    """Newest batch whose end is written down; -1 before the first."""
    return _newest(folder / "checkpoint" / "offsets")


def done(folder: Path) -> int:
    """Newest batch that Spark counts as done; -1 before the first."""
    return _newest(folder / "checkpoint" / "commits")


def _newest(directory: Path) -> int:
    names = [each.name for each in directory.iterdir()] if directory.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=-1)


def _stored(folder: Path) -> bool:
    """Whether some bucket's state of the batch at hand is written, the batch not done."""
    batch = planned(folder)
    states = (folder / "checkpoint" / "state").glob(f"*/*/{batch + 1}*.changelog")
    return batch > done(folder) and any(states)


def _hit(job: subprocess.Popen[bytes], folder: Path, aim: Aim, hits: Sequence[Hit]) -> Hit | None:
    """Wait for the moment, in a batch after the last that was hit, and kill; None if the job ended first."""
    last = max((hit.batch for hit in hits), default=0)  # batch 0 reads nothing
    moments: dict[str, Callable[[], bool]] = {
        "planned": lambda: planned(folder) > max(last, done(folder)),
        "stored": lambda: planned(folder) > last and _stored(folder),
        "committed": lambda: done(folder) > last,
    }
    if aim.moment in HOLDS:
        if not until(job, lambda: done(folder) >= last, _PAUSE_SECONDS):
            return None
        (folder / "held").unlink(missing_ok=True)
        (folder / "hold").write_text(aim.moment)
    if not until(job, moments.get(aim.moment, (folder / "held").exists), _PAUSE_SECONDS):
        return None
    batch = done(folder) if aim.moment == "committed" else planned(folder)
    if aim.moment not in HOLDS:
        with suppress(subprocess.TimeoutExpired):
            job.wait(aim.seconds)
    tree = tree_of(job.pid)
    struck = _victims(tree, aim.victim)
    while not struck and job.poll() is None:  # workers come with the first task
        with suppress(subprocess.TimeoutExpired):
            job.wait(_PAUSE_SECONDS)
        tree = tree_of(job.pid)
        struck = _victims(tree, aim.victim)
    if job.poll() is not None:
        return None
    for pid in struck:
        os.kill(pid, 9)
    if aim.victim in WHOLE:
        _release(folder)
        job.wait(DEADLINE_SECONDS)
        _all_gone(tree)
    hit = Hit(aim, batch, done(folder) < batch)
    _release(folder)
    return hit


def _release(folder: Path) -> None:
    (folder / "hold").unlink(missing_ok=True)


def _victims(tree: Sequence[int], victim: str) -> list[int]:
    if victim == "everything":
        return list(tree)
    commands = {pid: _command(pid) for pid in tree}
    if victim == "python":
        return [tree[0]]
    if victim == "java":
        return [pid for pid, line in commands.items() if "org.apache.spark.deploy.SparkSubmit" in line][:1]
    if victim == "executor":
        return [pid for pid, line in commands.items() if "CoarseGrainedExecutorBackend" in line][-1:]
    assert victim in {"worker", "holder"}
    forked = {pid: parent for pid, line in commands.items() if PARENT in line and (parent := _parent(pid))}
    holders = [pid for pid, parent in forked.items() if forked.get(parent) in forked]
    if victim == "holder":
        return sorted(holders)[-1:]
    hosts = {forked[pid] for pid in holders}
    workers = [pid for pid, parent in forked.items() if parent in forked and pid not in {*hosts, *holders}]
    return sorted(workers)[-1:] if holders else []


def _parent(pid: int) -> int:
    """Its parent; 0 where it ended meanwhile."""
    with suppress(OSError):
        return parent_of(pid)
    return 0


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def _all_gone(tree: Sequence[int]) -> None:
    """Wait until nothing of a job is left: what outlives its driver notices, and ends."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while any(_alive(pid) for pid in tree):
        assert time.monotonic() < deadline, [_command(pid) for pid in tree if _alive(pid)]
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
