"""The daemon beside its peers, all in one run: CPU per message, as multiples of the bare aiokafka loop.

    python -m tests.bench.peers [--repeats 2] [--scenarios thin,fat] [--share 1] [--out docs/speed.json]
    python -m tests.bench.peers --steady             (few scenarios, between two and five million messages)
    python -m tests.bench.peers --again --scenarios thin     (one row anew, with its own date; others stay)
    python -m tests.bench.peers.table --write        (the table in docs/speed.md, made of that file)

Everybody reads the same messages from the same broker, in turn, each time in a fresh process; CPU is that of
the process with all its threads, without the broker's. What disturbs a run only adds to it, so the lowest
counts. Only ratios travel between machines. Quix Streams has an environment of its own (`make bench` makes
it); where that is not to be had, the table says so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamwatch.demo.simulate import create_topics
from tests.bench.end_to_end.broker import broker
from tests.bench.end_to_end.daemon import SETTINGS
from tests.bench.peers.filling import fill
from tests.bench.peers.payloads import PAYLOAD
from tests.bench.peers.scenarios import BASE, SCENARIOS, Scenario
from tests.bench.peers.table import markdown

QUIX = Path(".cache/quix/bin/python")
QUIX_MESSAGES = 40_000
"""It takes as long for these as others for all."""
EVERYWHERE = ("bare", "confluent", "daemon", "durable")
ONCE = ("quix",)
"""Peers that are slow: with the first scenario only."""

Results = dict[str, list[float]]


STEADY = (2.0, 5.0)
"""Multiples of a scenario's messages between which its steady state is measured."""
STEADY_SCENARIOS = [
    "thin",
    "hundred",
    "many",
    "crowded",
    "tenants",
    "ordered",
    "everything",
    "scores-3",
    "iso",
]
WITH_SETTINGS = ("bare", "daemon", "durable")
"""Peers of a scenario with settings or a payload of its own, which the others do not have."""


def measured(
    peer: str, servers: str, topics: tuple[str, str], counts: tuple[int, int], scenario: Scenario
) -> float | None:
    """CPU µs a record in a fresh process; None where the peer is not to be had.

    `counts` are those of records and events in the topics.
    """
    messages, events = counts
    named = ",".join(topics)
    if peer == "quix":
        if not QUIX.exists():
            return None
        messages = min(messages, QUIX_MESSAGES)
        command = [str(QUIX), "-m", "tests.bench.peers.quix", servers, named, str(messages)]
    elif peer == "confluent":
        command = [sys.executable, "-m", "tests.bench.peers.confluent", servers, named, str(messages)]
    else:
        command = [sys.executable, "-m", "tests.bench.end_to_end", "--task", peer, "--servers", servers]
        command += ["--topics", named, "--messages", str(messages if peer == "bare" else events)]
    environment = os.environ | {SETTINGS: json.dumps(scenario.settings), PAYLOAD: scenario.payload}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=900, check=True, env=environment
    )
    return 1e6 * json.loads(done.stdout.splitlines()[-1])["cpu"] / messages


def run_steady(scenario: Scenario, servers: str, repeats: int) -> dict[str, object]:
    """The daemon and the bare loop between the `STEADY` multiples of a scenario's messages.

    What each takes for the fewer messages is taken off what it takes for the more, so nothing counts that a
    process does once: new names, tables that grow, state that is opened and closed.
    """
    filled = [filled_topics(scenario, servers, share) for share in STEADY]
    few, many = (counts[0] for _, counts in filled)
    results: Results = {}
    for _ in range(repeats):
        for peer in WITH_SETTINGS:
            fewer, more = (measured(peer, servers, topics, counts, scenario) for topics, counts in filled)
            if fewer is None or more is None:
                raise RuntimeError(f"{peer} was not measured")
            found = (more * many - fewer * few) / (many - few)
            results.setdefault(peer, []).append(round(found, 3))
            print(f"{scenario.name:>12} {peer:>10} {found:8.2f} µs a further message", flush=True)
    title = f"{scenario.title}, {few / 1e6:.2g} to {many / 1e6:.2g} million messages"
    return {"name": scenario.name, "title": title, "messages": many, "cpu_us": results}


def filled_topics(
    scenario: Scenario, servers: str, share: float = 1.0
) -> tuple[tuple[str, str], tuple[int, int]]:
    """New topics with messages of a scenario; how many records and events they hold."""
    made = uuid.uuid4().hex[:6]
    topics = (f"{scenario.name}-{made}-predictions", f"{scenario.name}-{made}-labels")
    asyncio.run(create_topics(servers, topics, partitions=scenario.partitions))
    return topics, fill(servers, topics, replace(scenario, messages=round(share * scenario.messages)))


def run(scenario: Scenario, servers: str, repeats: int) -> dict[str, object]:
    """Everybody on one scenario."""
    topics, counts = filled_topics(scenario, servers)
    results: Results = {}
    for _ in range(repeats):
        peers = EVERYWHERE + (ONCE if scenario.name == BASE.name else ())
        if scenario.settings or scenario.payload != "plain":
            peers = WITH_SETTINGS
        for peer in peers:
            found = measured(peer, servers, topics, counts, scenario)
            if found is not None:
                results.setdefault(peer, []).append(round(found, 3))
                print(f"{scenario.name:>12} {peer:>10} {found:8.2f} µs a message", flush=True)
    return {"name": scenario.name, "title": scenario.title, "messages": counts[0], "cpu_us": results}


def put(rows: list[dict[str, Any]], row: dict[str, Any]) -> None:
    """Replace the row of a scenario; a new one is inserted where the scenario stands among all."""
    order = [each.name for each in SCENARIOS]
    rows[:] = [each for each in rows if each["name"] != row["name"]]
    before = [each for each in rows if order.index(each["name"]) < order.index(row["name"])]
    rows.insert(len(before), row)


def machine() -> dict[str, object]:
    """Facts that figures depend on, none of which names the machine."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--scenarios", help="names, separated by commas; all, or those of --steady")
    parser.add_argument("--steady", action="store_true", help="between two and five times the messages")
    parser.add_argument("--again", action="store_true", help="keep the rows of other scenarios")
    parser.add_argument("--share", type=float, default=1.0, help="of the messages of each scenario")
    parser.add_argument("--out", type=Path, default=Path("docs/speed.json"))
    arguments = parser.parse_args()
    every = STEADY_SCENARIOS if arguments.steady else tuple(each.name for each in SCENARIOS)
    named = arguments.scenarios.split(",") if arguments.scenarios else every
    chosen = [
        replace(each, messages=round(arguments.share * each.messages))
        for each in SCENARIOS
        if each.name in named
    ]
    date = datetime.now(UTC).date().isoformat()
    before: dict[str, Any] = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    with broker(embedded=False, topics=[], partitions=1) as (servers, kind):
        rows: list[dict[str, Any]] = []
        tables: dict[str, Any] = {"date": date, "machine": machine(), "broker": kind, "scenarios": rows}
        if arguments.again:
            tables = before["steady"] if arguments.steady else before
            rows = tables["scenarios"]
        elif "steady" in before and not arguments.steady:
            tables["steady"] = before["steady"]
        document = before | {"steady": tables} if arguments.steady else tables
        for scenario in chosen:
            load = machine()["load"]
            row = (run_steady if arguments.steady else run)(scenario, servers, arguments.repeats)
            put(rows, row | {"measured": {"date": date, "load": load}} if arguments.again else row)
            arguments.out.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    print(markdown(document))


if __name__ == "__main__":
    main()
