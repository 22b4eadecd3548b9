"""CPU of writing outcomes to their topic, beside the same daemon without.

    python -m tests.bench.outcomes_topic [--instances 100000] [--models 3] [--partitions 4] [--repeats 3]

A broker has predictions and labels; a fresh process with its state on disk reads all of them, in turn without
a topic of outcomes and with one, until everything is evaluated, and is in the topic if there is one. CPU is
that of the process with all its threads, without the broker's; the lowest of the repetitions counts.
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
from dataclasses import replace
from typing import Any

from streamwatch.assembly.build import build_daemon
from streamwatch.demo.simulate import SimulationSpec, create_topics, run_simulation
from streamwatch.settings import Settings
from tests.bench.end_to_end.broker import EMBEDDED, broker
from tests.bench.end_to_end.costs import STREAM
from tests.bench.end_to_end.daemon import SETTINGS, Meter, Stopwatch, settings

WAIT_SECONDS = 300


async def measured(servers: str, topics: list[str], messages: int) -> dict[str, float]:
    """The daemon as `run` builds it, until it has evaluated and written everything."""
    watch, meter = Stopwatch(), Meter()
    with tempfile.TemporaryDirectory() as state:
        built = build_daemon(Settings(**settings(servers, topics, state)), watch, [meter])
        publisher = built._attachments.publisher
        running = asyncio.create_task(built.run())
        while meter.accepted < messages:
            meter.grown.clear()
            await asyncio.wait_for(meter.grown.wait(), WAIT_SECONDS)
        evaluated = time.monotonic()
        if publisher is not None:
            await publisher.drain(WAIT_SECONDS)
        cpu, ended = time.process_time() - watch.cpu, time.monotonic()
        built.stop()
        await running
    return {"cpu": cpu, "wall": ended - watch.wall, "behind": ended - evaluated, "outcomes": meter.outcomes}


def in_a_fresh_process(
    servers: str, topics: list[str], messages: int, outcomes: str | None
) -> dict[str, float]:
    more: dict[str, Any] = {} if outcomes is None else {"outcomes": {"topic": outcomes}}
    command = [sys.executable, "-m", "tests.bench.outcomes_topic", "--servers", servers]
    command += ["--topics", ",".join(topics), "--messages", str(messages)]
    environment = os.environ | {SETTINGS: json.dumps(more)}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=3_600, check=True, env=environment
    )
    return json.loads(done.stdout.splitlines()[-1])


def measure(arguments: argparse.Namespace) -> None:
    """Both in turn, and what an outcome costs."""
    name = uuid.uuid4().hex[:6]
    topics = [f"bench-{name}-predictions", f"bench-{name}-labels"]
    with broker(embedded=False, topics=topics, partitions=arguments.partitions) as (servers, kind):
        assert kind != EMBEDDED, "the embedded broker has no transactions"
        stream = replace(STREAM, models=arguments.models)
        spec = SimulationSpec(
            servers, *topics, stream=stream, outcomes=arguments.instances, rate=1_000.0, flat_out=True
        )
        sent = asyncio.run(run_simulation(spec))
        messages = sent.predictions + sent.labels
        found: dict[bool, list[dict[str, float]]] = {False: [], True: []}
        for number in range(arguments.repeats):
            found[False].append(in_a_fresh_process(servers, topics, messages, None))
            written = f"bench-{name}-outcomes-{number}"
            asyncio.run(create_topics(servers, [written], partitions=1))
            found[True].append(in_a_fresh_process(servers, topics, messages, written))
    outcomes = found[False][0]["outcomes"]
    without, with_topic = (min(each["cpu"] for each in found[which]) for which in (False, True))
    load = os.getloadavg()[0]
    print(f"{messages:,} messages, {outcomes:,.0f} outcomes of {arguments.models} models, load {load:.1f}")
    print(f"without a topic   {1e6 * without / messages:5.2f} µs per message")
    times = with_topic / without
    print(f"with a topic      {1e6 * with_topic / messages:5.2f} µs per message, {times:.2f} times")
    print(f"of an outcome     {1e6 * (with_topic - without) / outcomes:5.2f} µs")
    walls = [min(each["wall"] for each in found[which]) for which in (False, True)]
    print(f"messages/s        {messages / walls[0]:,.0f} and {messages / walls[1]:,.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="CPU of writing outcomes to their topic.")
    parser.add_argument("--instances", type=int, default=100_000)
    parser.add_argument("--models", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--servers")
    parser.add_argument("--topics")
    parser.add_argument("--messages", type=int, default=0)
    given = parser.parse_args()
    if given.servers:
        result = asyncio.run(measured(given.servers, given.topics.split(","), given.messages))
        print(json.dumps(result))
    else:
        measure(given)
