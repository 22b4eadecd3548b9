"""What an outcome costs from Kafka to estimate, beside a bare loop that only reads and decodes.

    python -m tests.bench.end_to_end [--instances 100000] [--models 3] [--partitions 4] [--repeats 5]
                                     [--pending 10000000]

Both read the same messages from the same broker with the same consumer settings, in turn, each time in a
fresh process; CPU is that of the process (all its threads), without the broker's. The bare loop decodes the
fields of each topic into a msgspec struct. The daemon runs with its state in memory, on disk, and (with
--pending) on disk beside so many predictions that wait already, nearly all of them cold. What disturbs a run
only adds to it, so the lowest of each is compared; all are shown. The broker is STREAMWATCH_TEST_BOOTSTRAP,
else Apache Kafka in a child process, else (or with --embedded) librdkafka's mock cluster in a child process.
Only ratios travel between machines.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from streamwatch.demo.simulate import SimulationSpec, run_simulation
from tests.bench.end_to_end.bare import bare
from tests.bench.end_to_end.broker import EMBEDDED, ENTRY, broker, serve
from tests.bench.end_to_end.costs import (
    CLASSES,
    MODELS,
    OUTCOMES_PER_MODEL,
    PENDING,
    STREAM,
    models,
    pending,
    stages,
)
from tests.bench.end_to_end.daemon import PRELOADED, WAITING, daemon, durable, idle, preload, preloaded

GOALS = {"daemon": 1.8, "durable": 2.2, "preloaded": 8.0}
NAMES = {
    "bare": "bare aiokafka + msgspec loop",
    "daemon": "streamwatch, state in memory",
    "durable": "streamwatch, state on disk",
    "preloaded": "state on disk beside {:,} that wait",
}
EMBEDDED_INSTANCES = 12_000  # per partition, of three predictions: the mock cluster forgets beyond 5 MB

TASKS = {
    "stages": stages,
    "bare": bare,
    "daemon": daemon,
    "durable": durable,
    "preload": preload,
    "preloaded": preloaded,
    "idle": idle,
    "pending": pending,
    "models": models,
}


def in_a_fresh_process(
    task: str, servers: str = "", topics: tuple[str, ...] = (), messages: int = 0
) -> dict[str, float]:
    command = [sys.executable, "-m", ENTRY, "--task", task, "--servers", servers]
    command += ["--topics", ",".join(topics), "--messages", str(messages)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=3_600, check=True)
    return json.loads(done.stdout.splitlines()[-1])


Rounds = dict[str, list[dict[str, float]]]


def run(arguments: argparse.Namespace, servers: str, topics: list[str], kind: str) -> tuple[Rounds, int]:
    """Write the messages, read them in turn by each; results by task, and how many messages there were."""
    instances: int = arguments.instances
    if kind == EMBEDDED:
        instances = min(instances, EMBEDDED_INSTANCES * 3 * arguments.partitions // arguments.models)
    stream = replace(STREAM, models=arguments.models)
    spec = SimulationSpec(
        servers, *topics[:2], stream=stream, outcomes=instances, rate=1_000.0, flat_out=True
    )
    sent = asyncio.run(run_simulation(spec))
    messages = sent.predictions + sent.labels
    rounds: Rounds = {"bare": [], "daemon": [], "durable": []}
    read = tuple(topics[:2])
    made: dict[str, float] = {}
    if arguments.pending:
        os.environ[PRELOADED] = tempfile.mkdtemp()
        os.environ[WAITING] = str(arguments.pending)
        made = in_a_fresh_process("preload", servers, read, arguments.pending)
        rounds["preloaded"] = []
    for _ in range(arguments.repeats):
        for task, found in rounds.items():
            found.append(in_a_fresh_process(task, servers, read, messages))
    if arguments.pending:
        shutil.rmtree(os.environ[PRELOADED])
    rounds["idle"] = [in_a_fresh_process("idle", servers, tuple(topics[2:]))]
    rounds["preload"] = [made] if made else []
    rounds["stages"] = [
        in_a_fresh_process("stages", messages=instances // 2) for _ in range(arguments.repeats)
    ]
    return rounds, messages


def measure(arguments: argparse.Namespace) -> None:
    """Everything, and two tables."""
    name = uuid.uuid4().hex[:6]
    kinds = ("predictions", "labels", "empty-predictions", "empty-labels")
    topics = [f"bench-{name}-{kind}" for kind in kinds]
    with broker(embedded=arguments.embedded, topics=topics, partitions=arguments.partitions) as (
        servers,
        kind,
    ):
        rounds, messages = run(arguments, servers, topics, kind)
    console = Console(width=130)
    outcomes = rounds["daemon"][0]["outcomes"]
    partitions = f"{arguments.partitions} + {arguments.partitions} partitions"
    title = (
        f"{messages:,} messages, {outcomes:,.0f} outcomes of {arguments.models} models, {partitions}, {kind}"
    )
    console.print(speed(title, rounds, messages, arguments.pending))
    console.print(memory(rounds, arguments.pending))


def speed(title: str, rounds: Rounds, messages: int, waiting: int) -> Table:
    """CPU per message and per outcome, and ratios."""
    table = Table(title=title, title_justify="left")
    headings = ("", "CPU µs per message", "CPU µs per outcome", "messages/s", "runs (CPU µs per message)")
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left")
    outcomes = rounds["daemon"][0]["outcomes"]
    cpu: dict[str, float] = {}

    def add(name: str, micros: float, *more: str) -> None:
        table.add_row(name, f"{micros:.2f}", f"{micros * messages / outcomes:.2f}", *more)

    for task, name in NAMES.items():
        if found := rounds.get(task):
            cpu[task] = 1e6 * min(each["cpu"] for each in found) / messages
            wall = min(each["wall"] for each in found)
            runs = " ".join(f"{1e6 * each['cpu'] / messages:.2f}" for each in found)
            add(name.format(waiting), cpu[task], f"{messages / wall:,.0f}", runs)
    parts = rounds["stages"]
    alone = {stage: min(part[stage] for part in parts) for stage in parts[0]}
    for stage, micros in alone.items():
        add(f"  {stage}, from memory", micros)
    add("  all else above the bare loop", cpu["daemon"] - cpu["bare"] - sum(alone.values()))
    for task, goal in GOALS.items():
        if task in cpu:
            ratio = f"{cpu[task] / cpu['bare']:.2f}"
            table.add_row(f"ratio, {NAMES[task].format(waiting)}", ratio, f"(goal ≤ {goal})", style="bold")
    return table


def memory(rounds: Rounds, waiting: int) -> Table:
    """What is resident, and what one of each takes."""
    table = Table(title="idle and memory", title_justify="left", show_header=False)
    (quiet,) = rounds["idle"]
    table.add_row("resident, idle on empty topics", f"{quiet['rss'] / 1e6:.0f} MB")
    table.add_row("CPU, idle", f"{quiet['cpu']:.1%}")
    for task, name in NAMES.items():
        found = rounds.get(task)
        if found and "rss" in found[0]:
            largest = max(each["rss"] for each in found)
            table.add_row(f"resident, {name.format(waiting)}", f"{largest / 1e6:.0f} MB")
    for made in rounds["preload"]:
        table.add_row("disk, per prediction that waits", f"{made['bytes']:.1f} B")
        table.add_row("opening that state", f"{made['open']:.2f} s")
    one = in_a_fresh_process("pending")["bytes"]
    table.add_row(f"pending prediction (of {PENDING:,}, UUID ids, in memory)", f"{one:,.0f} B")
    one = in_a_fresh_process("models")["bytes"]
    table.add_row(
        f"model (of {MODELS:,}, {CLASSES} classes, {OUTCOMES_PER_MODEL:,} outcomes)", f"{one:,.0f} B"
    )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instances", type=int, default=100_000)
    parser.add_argument("--models", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=4, help="of each topic")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--pending", type=int, default=0, help="predictions that wait on disk beforehand")
    parser.add_argument(
        "--embedded", action="store_true", help="librdkafka's mock cluster even where Kafka is there"
    )
    for internal in ("--task", "--servers", "--topics"):
        parser.add_argument(internal, default="", help=argparse.SUPPRESS)
    parser.add_argument("--messages", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    topics = arguments.topics.split(",")
    if not arguments.task:
        measure(arguments)
    elif arguments.task == "broker":
        serve(topics, arguments.partitions)
    else:
        print(json.dumps(asyncio.run(TASKS[arguments.task](arguments.servers, topics, arguments.messages))))


if __name__ == "__main__":
    main()
