"""The daemon as `run` builds it, on the same messages; with its state in memory and on disk."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from streamwatch.assembly.build import build_from_document
from streamwatch.assembly.state import state_opening
from streamwatch.assembly.topics import build_topics
from streamwatch.core.records.events import Prediction
from streamwatch.daemon import POSITIONS, SourcePositions
from streamwatch.edge.keys import digest_ids
from streamwatch.settings import Settings
from streamwatch.settings.sections import StateSection
from streamwatch.telemetry import InternalEvent, StartedServing, Telemetry, TopicsAssigned
from tests.bench.end_to_end.onlookers import onlookers
from tests.bench.peers.payloads import payload_of

IDLE_SECONDS = 10.0
SPREAD_MS = 3_600_000
"""What waits was predicted over an hour."""
PRELOADED = "STREAMWATCH_BENCH_STATE"
WAITING = "STREAMWATCH_BENCH_PENDING"


class Stopwatch(Telemetry):
    """Starts when partitions are assigned."""

    def __init__(self) -> None:
        super().__init__(level="error")
        self.cpu = self.wall = 0.0
        self.started = asyncio.Event()
        self.address = ""

    def emit(self, event: InternalEvent) -> None:
        super().emit(event)
        if isinstance(event, StartedServing):
            self.address = event.address
        elif isinstance(event, TopicsAssigned):
            self.cpu, self.wall = time.process_time(), time.monotonic()
            self.started.set()


class Meter:
    """Looks at every report for the number of records accepted, and when it was last seen to grow."""

    def __init__(self) -> None:
        self.accepted, self.outcomes = 0.0, 0.0
        self.wall = 0.0
        self.grown = asyncio.Event()

    def publish(self, report) -> None:
        total = {f.name: sum(v for _, v in f.samples) for f in report.families if f.kind == "counter"}
        self.accepted = total["predictions_accepted_total"] + total["labels_accepted_total"]
        self.outcomes = total.get("outcomes_total", 0.0)
        self.wall = time.monotonic()
        self.grown.set()


ALL_IN_MEMORY = 1_000_000
SETTINGS = "BENCH_SETTINGS"
DEFAULT = StateSection().join_memory_megabytes


def settings(servers: str, topics: list[str], state: str = "", megabytes: int = DEFAULT) -> dict[str, object]:
    """Those of the environment (`SETTINGS`, a JSON document) come in addition, and what its payload asks."""
    payload = payload_of()
    durable = {"kind": "rocksdb", "directory": state, "join_memory_megabytes": megabytes}
    document: dict[str, Any] = {
        "state": durable if state else {"kind": "memory"},
        "join": {"max_pending": 100_000_000, "max_dedup_entries": 100_000_000, "max_labels": 100_000_000},
        "kafka": {"bootstrap_servers": servers},
        "topics": {
            "predictions": [{"name": topics[0], **payload.predictions}],
            "labels": [{"name": name, **payload.labels} for name in topics[1:]],
        },
        "http": {"listen": "127.0.0.1:0"},
    }
    for section, more in json.loads(os.environ.get(SETTINGS, "{}")).items():
        document[section] = {**document.get(section, {}), **more}
    return document


async def daemon(
    servers: str, topics: list[str], messages: int, state: str = "", megabytes: int = DEFAULT
) -> dict[str, float]:
    """The daemon as `run` builds it, until what it shows has every message and its state is closed.

    It is scraped, and its page is open, as in production.
    """
    watch, meter = Stopwatch(), Meter()
    built = build_from_document(settings(servers, topics, state, megabytes), watch, [meter])
    running = asyncio.create_task(built.run())
    await asyncio.wait_for(watch.started.wait(), 120)
    with onlookers(watch.address):
        while meter.accepted < messages:
            meter.grown.clear()
            await asyncio.wait_for(meter.grown.wait(), 120)
        rss = resident_bytes()
        built.stop()
        await running
        cpu = time.process_time() - watch.cpu
    return {
        "cpu": cpu,
        "wall": meter.wall - watch.wall,
        "outcomes": meter.outcomes,
        "rss": rss,
    }


async def durable(servers: str, topics: list[str], messages: int) -> dict[str, float]:
    """As `daemon`, with state on disk."""
    with tempfile.TemporaryDirectory() as state:
        return await daemon(servers, topics, messages, state)


async def preloaded(servers: str, topics: list[str], messages: int) -> dict[str, float]:
    """As `durable`, with a copy of the state that `preload` made, and the default room in memory."""
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        shutil.copytree(os.environ[PRELOADED], state)
        accepted = float(os.environ[WAITING])
        return await daemon(servers, topics, messages + int(accepted), str(state), DEFAULT)


async def preload(_: str, topics: list[str], number: int) -> dict[str, float]:
    """A state in which so many predictions wait, merged as one that has been there for long.

    Those for which the default settings have no room in memory are cold. Otherwise whoever reads a copy of it
    first pays for merging all of it.
    """
    document = settings("nowhere:9092", topics, os.environ[PRELOADED], DEFAULT)
    chosen = Settings(**document)
    opened = state_opening(chosen, build_topics(chosen), Telemetry(level="error"))()
    core, store = opened.checkpoint, opened.store
    now_ms = round(time.time() * 1_000) - 3_600_000
    for start in range(0, number, 5_000):
        ids = digest_ids([f"{n:032x}-{n % 7:04x}" for n in range(start, min(start + 5_000, number))])
        events = [
            Prediction(id, f"model-{n % 3}", "yes", now_ms + n * SPREAD_MS // number)
            for n, id in enumerate(ids, start)  # noqa: A001
        ]
        step = core.pipeline.advance(events)
        core.take(step)
        while (merge := core.pipeline.join.plan_merge()) is not None:
            merge.run()
            core.pipeline.join.finish_merge(merge)
        store.commit(core.changes({POSITIONS: SourcePositions().encode()}))
    store.flush()
    store._database.compact()
    store.close()
    began = time.monotonic()
    again = state_opening(chosen, build_topics(chosen), Telemetry(level="error"))()
    opened_in = time.monotonic() - began
    again.store.close()
    return {"bytes": size_of(Path(os.environ[PRELOADED])) / number, "open": opened_in}


def size_of(directory: Path) -> int:
    """Bytes of its files."""
    return sum(file.stat().st_size for file in directory.iterdir())


async def idle(servers: str, topics: list[str], _: int) -> dict[str, float]:
    """The daemon on empty topics."""
    watch = Stopwatch()
    built = build_from_document(settings(servers, topics), watch, [])
    running = asyncio.create_task(built.run())
    await watch.started.wait()
    await asyncio.sleep(2.0)  # let it settle: the point is what it costs to wait
    began = time.process_time()
    await asyncio.sleep(IDLE_SECONDS)
    found = {"cpu": (time.process_time() - began) / IDLE_SECONDS, "rss": resident_bytes()}
    built.stop()
    await running
    return found


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
