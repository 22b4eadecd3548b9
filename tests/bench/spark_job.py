"""The job on Spark beside the durable daemon and beside a job row by row, on the same messages, in one run.

    .cache/spark/bin/python -m tests.bench.spark_job [--instances 60000] [--rows 8000]

Job and daemon read the same topics of Apache Kafka, four partitions each, three models an id, labels 30 s
later. CPU is that of the process and all it starts, Java and Python workers, as last seen every fifth of a
second, without the broker's. Of the job, what its start, a batch and a message take are told apart: by a run
with next to no messages, one with the same few in many more batches, and the whole. The job row by row
(`peers/spark_rows`) reads files of the first messages, keeps the same estimates, and knows no expiry.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from streamwatch.demo.simulate import ScheduleSpec, SimulationSpec, run_simulation, schedule
from tests.bench.end_to_end.__main__ import in_a_fresh_process
from tests.bench.end_to_end.broker import broker
from tests.bench.end_to_end.costs import STREAM
from tests.spark.one_machine import CONFIGURATION

TICK = os.sysconf("SC_CLK_TCK")
SEEN_SECONDS = 0.2
FEW, FILES, BATCHES, MANY_BATCHES = 30, 4, 6, 30
ID_BUCKETS, MODEL_BUCKETS = 4, 3


@dataclass(frozen=True)
class Run:
    """What one process and all it started took."""

    cpu: float
    java: float
    """Of it, in Java."""
    wall: float
    said: str


def of_session(leader: int) -> dict[tuple[int, bool], float]:
    """CPU seconds so far of every process of a session, by its number and whether it is Java."""
    found: dict[tuple[int, bool], float] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            head, _, rest = (entry / "stat").read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        fields = rest.split()
        if int(fields[3]) == leader:
            found[int(entry.name), "java" in head] = (int(fields[11]) + int(fields[12])) / TICK
    return found


def run(command: list[str]) -> Run:
    """Run it in a session of its own; raises where it fails."""
    began = time.monotonic()
    seen: dict[tuple[int, bool], float] = {}
    with (
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=out, stderr=errors, start_new_session=True) as process,
    ):
        while process.poll() is None:
            seen |= of_session(process.pid)
            time.sleep(SEEN_SECONDS)
        out.seek(0)
        errors.seek(0)
        if process.returncode:
            raise RuntimeError(errors.read()[-3_000:])
        java = sum(cpu for (_, is_java), cpu in seen.items() if is_java)
        return Run(sum(seen.values()), java, time.monotonic() - began, out.read().strip())


def job(servers: str, topics: list[str], batch_records: int, folder: str) -> list[str]:
    """The command of the job."""
    settings = [
        f"kafka.bootstrap_servers={servers}",
        f"topics.predictions={topics[0]}",
        f"topics.labels={topics[1]}",
        f"spark.checkpoint={folder}/checkpoint",
        f"spark.results_topic={topics[0]}-{uuid.uuid4().hex[:6]}",
        f"spark.batch_records={batch_records}",
        f"spark.id_buckets={ID_BUCKETS}",
        f"spark.model_buckets={MODEL_BUCKETS}",
        f"spark.configuration={json.dumps(CONFIGURATION)}",
    ]
    command = [sys.executable, "-m", "streamwatch", "spark", "--master", "local[2]", "--available-now"]
    return command + [option for each in settings for option in ("--set", each)]


@dataclass(frozen=True)
class Taken:
    """A run of the job."""

    run: Run
    batches: int
    bytes: int
    """Size of all files of the checkpoint."""

    def __str__(self) -> str:
        cpu, java, wall = self.run.cpu, self.run.java, self.run.wall
        return f"{cpu:8.1f} s of CPU, {java:.1f} of them in Java; {self.batches} batches, {wall:.1f} s"


def taken(servers: str, topics: list[str], messages: int, batches: int) -> Taken:
    """Let the job read all there is in about so many batches."""
    with tempfile.TemporaryDirectory() as folder:
        done = run(job(servers, topics, max(1, messages // batches), folder))
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        commits = Path(folder, "checkpoint", "commits")
        return Taken(done, sum(each.name.isdigit() for each in commits.iterdir()), size)


def written(folder: Path, instances: int) -> int:
    """Write the messages of the same stream as files; how many."""
    layout = ScheduleSpec(STREAM, rate=1_000.0, start_ms=1_700_000_000_000, run="r", instances=instances)
    lines: dict[str, list[str]] = {"predictions": [], "labels": []}
    for due in schedule(layout):
        side = f"{due.side}s"
        said = json.loads(due.value) | {f"{side}_ms": layout.start_ms + round(due.at_s * 1_000)}
        lines[side].append(json.dumps(said))
    for side, every in lines.items():
        (folder / side).mkdir()
        each = -(-len(every) // FILES)
        for number in range(FILES):
            text = "\n".join(every[number * each : (number + 1) * each])
            (folder / side / f"{number}.json").write_text(text)
    return sum(map(len, lines.values()))


def by_rows(instances: int) -> tuple[Run, int]:
    """The job row by row, over so many ids; and its messages."""
    with tempfile.TemporaryDirectory() as folder:
        messages = written(Path(folder), instances)
        return run([sys.executable, "-m", "tests.bench.peers.spark_rows", folder]), messages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=60_000)
    parser.add_argument("--rows", type=int, default=8_000, help="ids for the job row by row; 0 leaves it out")
    arguments = parser.parse_args()
    name = uuid.uuid4().hex[:6]
    topics = [f"bench-{name}-{kind}" for kind in ("predictions", "labels", "few-predictions", "few-labels")]
    counts: list[int] = []
    with broker(embedded=False, topics=topics, partitions=4) as (servers, kind):
        for instances, pair in ((arguments.instances, topics[:2]), (FEW, topics[2:])):
            stream = replace(STREAM, models=3)
            spec = SimulationSpec(
                servers, *pair, stream=stream, outcomes=instances, rate=1_000.0, flat_out=True
            )
            sent = asyncio.run(run_simulation(spec))
            counts.append(sent.predictions + sent.labels)
        messages, few = counts
        print(f"{messages:,} messages, {kind}, load {os.getloadavg()[0]:.1f}", flush=True)
        daemon = in_a_fresh_process("durable", servers, tuple(topics[:2]), messages)
        alone = 1e6 * daemon["cpu"] / messages
        print(f"durable daemon        {alone:8.2f} µs a message", flush=True)
        start = taken(servers, topics[2:], few, BATCHES)
        print(f"job, next to nothing  {start}", flush=True)
        often = taken(servers, topics[2:], few, MANY_BATCHES)
        print(f"job, in more batches  {often}", flush=True)
        further = often.batches - start.batches
        a_batch = (often.run.cpu - start.run.cpu) / further
        a_batch_in_java = (often.run.java - start.run.java) / further
        print(f"job, a batch          {a_batch:8.2f} s of CPU")
        whole = taken(servers, topics[:2], messages, BATCHES)
        further = whole.batches - start.batches
        more = whole.run.cpu - start.run.cpu - a_batch * further
        java = whole.run.java - start.run.java - a_batch_in_java * further
        seconds = whole.run.wall - start.run.wall
        print(f"job                   {whole}; checkpoint {whole.bytes / 1e6:.1f} MB")
        print(
            f"job, a message        {1e6 * more / messages:8.2f} µs, {1e6 * java / messages:.2f} in Java; "
            f"{messages / seconds:,.0f}/s",
            flush=True,
        )
        print(f"job beside the daemon {1e6 * more / messages / alone:8.2f} times its CPU", flush=True)
    if not arguments.rows:
        return
    start_of_rows, few_rows = by_rows(FEW)
    rows, many = by_rows(arguments.rows)
    each = 1e6 * (rows.cpu - start_of_rows.cpu) / (many - few_rows)
    times = each / (1e6 * more / messages)
    print(f"row by row, start-up  {start_of_rows.cpu:8.1f} s of CPU; {many:,} messages, {rows.said} outcomes")
    print(f"row by row            {each:8.2f} µs a message, {times:.1f} times the job's")


if __name__ == "__main__":
    main()
