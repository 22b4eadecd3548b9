"""Ten million predictions that wait on Spark: checkpoint, memory, and the time until a job goes on.

    .cache/spark/bin/python -m tests.bench.spark_waiting [--predictions 10000000]

The job takes predictions of three models per id from Apache Kafka, no label among them, then ends. It is
started again for a few more: every bucket is built from Spark's log. Beside it a job that has next to nothing
is started twice in the same way; the difference of the second starts is what recovery takes. Memory is the
proportional share (Pss) of all processes of the job, as last seen every second.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from streamwatch.demo.simulate import SimulationSpec, run_simulation
from tests.bench.end_to_end.broker import broker
from tests.bench.end_to_end.costs import STREAM
from tests.bench.spark_job import BATCHES, FEW, Run, job, run

MODELS = 3


@dataclass
class Memory:
    """Most memory of a job's processes, in megabytes."""

    java: float = 0.0
    python: float = 0.0


@contextmanager
def memory_watched() -> Generator[Memory]:
    """Watch the processes of the job that is started within."""
    seen, ended = Memory(), threading.Event()

    def watch() -> None:
        while not ended.wait(1.0):
            java = python = 0.0
            for folder in Path("/proc").iterdir():
                try:
                    command = (folder / "cmdline").read_bytes()
                    if b"java" not in command and b"spark" not in command:
                        continue
                    if b"kafka.Kafka" in command or b"spark_waiting" in command:
                        continue
                    size = pss_megabytes(folder)
                except (OSError, StopIteration):
                    continue
                if command.split(b"\0")[0].endswith(b"java"):
                    java += size
                else:
                    python += size
            seen.java, seen.python = max(seen.java, java), max(seen.python, python)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def pss_megabytes(folder: Path) -> float:
    """Proportional share of a process's memory."""
    lines = (folder / "smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1_000


def send(servers: str, topics: list[str], instances: int) -> int:
    """Send predictions to the first topic, their labels to one that nobody reads; gives the predictions."""
    stream = replace(STREAM, models=MODELS)
    spec = SimulationSpec(
        servers, topics[0], topics[1], stream=stream, outcomes=instances, rate=1_000.0, flat_out=True
    )
    return asyncio.run(run_simulation(spec)).predictions


def started_twice(servers: str, topics: list[str], instances: int) -> tuple[Run, Run, int]:
    """Let a job take predictions, then start it again for a few more; both runs and checkpoint bytes."""
    predictions = send(servers, topics, instances)
    with tempfile.TemporaryDirectory() as folder:
        command = job(servers, [topics[0], topics[2]], max(1, predictions // BATCHES), folder)
        command += ["--set", f"join.max_pending={2 * predictions + 1_000}"]
        with memory_watched() as memory:
            first = run(command)
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        send(servers, topics, FEW)
        again = run(command)
    print(
        f"{predictions:,} predictions: {first.cpu:.1f} s of CPU, {first.wall:.1f} s; "
        f"checkpoint {size / 1e6:.0f} MB; "
        f"at most {memory.python:.0f} MB in Python, {memory.java:.0f} MB in Java\n"
        f"  started again: {again.cpu:.1f} s of CPU, {again.wall:.1f} s",
        flush=True,
    )
    return first, again, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--predictions", type=int, default=10_000_000)
    arguments = parser.parse_args()
    name = uuid.uuid4().hex[:6]
    few = [f"waiting-{name}-few-{kind}" for kind in ("predictions", "unread", "labels")]
    many = [f"waiting-{name}-{kind}" for kind in ("predictions", "unread", "labels")]
    with broker(embedded=False, topics=[*few, *many], partitions=4) as (servers, kind):
        print(kind, flush=True)
        _, plain, _ = started_twice(servers, few, FEW)
        _, full, _ = started_twice(servers, many, arguments.predictions // MODELS)
    print(f"recovery: {full.cpu - plain.cpu:.1f} s of CPU, {full.wall - plain.wall:.1f} s")


if __name__ == "__main__":
    main()
