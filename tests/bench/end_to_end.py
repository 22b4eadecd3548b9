"""What an outcome costs from Kafka to estimate, beside a bare loop that only reads and decodes.

    python -m tests.bench.end_to_end [--instances 100000] [--models 3] [--partitions 4] [--repeats 5]

Both read the same messages from the same broker with the same consumer settings, in turn, each time in a
fresh process; CPU is that of the process (all its threads), without the broker's. The bare loop decodes the
fields of each topic into a msgspec struct. What disturbs a run only adds to it, so the lowest of each is
compared; all are shown. The broker is STREAMWATCH_TEST_BOOTSTRAP, else Apache Kafka in a child process, else
(or with --embedded) librdkafka's mock cluster in a child process. Only ratios travel between machines.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from rich.console import Console
from rich.table import Table

from streamwatch.assembly import build_from_document
from streamwatch.core.events import Alarm, Event, Outcome, Partition, Prediction, Progress
from streamwatch.core.monitors import Monitors
from streamwatch.core.pipeline import Pipeline
from streamwatch.core.specs import JoinSpec, MonitorsSpec, TimeSpec
from streamwatch.edge.decoders.json import JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.stores.memory import MemoryStore
from streamwatch.lab.embedded import EmbeddedBroker
from streamwatch.lab.schedule import ScheduleSpec, schedule
from streamwatch.lab.simulate import SimulationSpec, run_simulation
from streamwatch.lab.streams import DelaySpec, StreamSpec
from streamwatch.lab.topics import create_topics
from streamwatch.telemetry import Happening, Telemetry, TopicsAssigned
from tests.integration import kafka_broker

GOAL = 1.8
EMBEDDED = "librdkafka's mock cluster"
EMBEDDED_INSTANCES = 12_000  # per partition, of three predictions: the mock cluster forgets beyond 5 MB
IDLE_SECONDS = 10.0
PENDING = 500_000
STREAM = StreamSpec(models=3, delay=DelaySpec(median_s=30.0))
MODELS, CLASSES, OUTCOMES_PER_MODEL = 1_000, 10, 2_000


class PredictionFields(msgspec.Struct, gc=False):
    """What the bare loop decodes on the topic of predictions."""

    id: str
    timestamp: int
    model: str
    prediction: str


class LabelFields(msgspec.Struct, gc=False):
    """What the bare loop decodes on the topic of labels."""

    id: str
    timestamp: int
    label: str
    model: str | None = None


async def bare(servers: str, topics: list[str], messages: int) -> dict[str, float]:
    """Read and decode every message; nothing else."""
    spec = KafkaSpec(bootstrap_servers=servers)
    kinds = (PredictionFields, LabelFields)
    decoders = {t: msgspec.json.Decoder(kind).decode for t, kind in zip(topics, kinds, strict=True)}
    async with AIOKafkaConsumer(
        bootstrap_servers=servers,
        auto_offset_reset="none",
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_partition_fetch_bytes=spec.max_partition_fetch_bytes,
        request_timeout_ms=spec.request_timeout_ms,
    ) as consumer:
        cluster = await consumer._client.fetch_all_metadata()
        places = [TopicPartition(t, p) for t in topics for p in cluster.partitions_for_topic(t)]
        consumer.assign(places)
        await consumer.seek_to_beginning()
        seen = 0
        began, wall = time.process_time(), time.monotonic()
        while seen < messages:
            found = await consumer.getmany(timeout_ms=spec.poll_timeout_ms, max_records=spec.max_poll_records)
            for place, records in found.items():
                decode = decoders[place.topic]
                for record in records:
                    decode(record.value)
                seen += len(records)
            await asyncio.sleep(0)
        return {"cpu": time.process_time() - began, "wall": time.monotonic() - wall}


class Stopwatch(Telemetry):
    """Starts when partitions are assigned."""

    def __init__(self) -> None:
        super().__init__(level="error")
        self.cpu = self.wall = 0.0
        self.started = asyncio.Event()

    def emit(self, happening: Happening) -> None:
        super().emit(happening)
        if isinstance(happening, TopicsAssigned):
            self.cpu, self.wall = time.process_time(), time.monotonic()
            self.started.set()


class Meter:
    """Looks at every report for the number of records accepted; the CPU used when it was last seen to
    grow."""

    def __init__(self) -> None:
        self.accepted, self.outcomes = 0.0, 0.0
        self.cpu = self.wall = 0.0
        self.grown = asyncio.Event()

    def publish(self, report) -> None:
        total = {f.name: sum(v for _, v in f.samples) for f in report.families if f.kind == "counter"}
        self.accepted = total["predictions_accepted_total"] + total["labels_accepted_total"]
        self.outcomes = total.get("outcomes_total", 0.0)
        self.cpu, self.wall = time.process_time(), time.monotonic()
        self.grown.set()


def settings(servers: str, topics: list[str]) -> dict[str, object]:
    return {
        "kafka": {"bootstrap_servers": servers},
        "topics": {"predictions": topics[:1], "labels": topics[1:]},
        "http": {"listen": "127.0.0.1:0"},
    }


async def daemon(servers: str, topics: list[str], messages: int) -> dict[str, float]:
    """The daemon as `run` builds it, until it has evaluated every message."""
    watch, meter = Stopwatch(), Meter()
    built = build_from_document(settings(servers, topics), watch, [meter])
    running = asyncio.create_task(built.run())
    while meter.accepted < messages:
        meter.grown.clear()
        await asyncio.wait_for(meter.grown.wait(), 120)
    built.stop()
    await running
    return {"cpu": meter.cpu - watch.cpu, "wall": meter.wall - watch.wall, "outcomes": meter.outcomes}


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


async def pending(*_: object) -> dict[str, float]:
    """Memory of predictions that wait, with text UUIDs as ids."""
    place = Partition("p", 0)
    pipeline = Pipeline(JoinSpec(), TimeSpec(), Monitors(MonitorsSpec()), {place: "prediction"})
    store = MemoryStore()
    names = [f"model-{m}" for m in range(10)]
    before = resident_bytes()
    for start in range(0, PENDING, 500):
        events = [
            Prediction(str(uuid.uuid4()), names[n % 10], "yes", 1_700_000_000_000 + n, 1_700_000_000_000 + n)
            for n in range(start, start + 500)
        ]
        events.append(Progress(*place, 1_700_000_000_000 + start, False))
        store.commit(pipeline.advance(events, store.fetch(pipeline.needs(events))), {})
    return {"bytes": (resident_bytes() - before) / PENDING}


async def models(*_: object) -> dict[str, float]:
    """Memory of models under the default estimators, after each has seen more than its windows hold."""
    monitors = Monitors(replace(MonitorsSpec(), max_models=MODELS + 1))
    batch = [
        Outcome("warm-up", str(n % CLASSES), str((n * 7) % CLASSES), 0, 0) for n in range(OUTCOMES_PER_MODEL)
    ]
    monitors.fold(batch)
    before = resident_bytes()
    for model in range(MODELS):
        monitors.fold(
            [
                Outcome(f"m{model}", str(n % CLASSES), str((n * 7 + model) % CLASSES), n, 0)
                for n in range(OUTCOMES_PER_MODEL)
            ]
        )
    return {"bytes": (resident_bytes() - before) / MODELS}


class Timed(Monitors):
    """Estimators that know how much CPU evaluation took."""

    seconds = 0.0

    def fold(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        began = time.process_time()
        alarms = super().fold(outcomes)
        self.seconds += time.process_time() - began
        return alarms


async def stages(_: str, __: list[str], instances: int) -> dict[str, float]:
    """CPU of the stages of the daemon over the same kind of messages, from memory: no client, no reports."""
    places = {"prediction": Partition("prediction", 0), "label": Partition("label", 0)}
    layout = ScheduleSpec(STREAM, rate=1_000.0, start_ms=1_700_000_000_000, run="r", instances=instances)
    records = [
        SimpleNamespace(
            topic=due.side,
            partition=0,
            offset=n,
            timestamp=layout.start_ms + round(due.at_s * 1_000),
            key=due.key,
            value=due.value,
            headers=(),
        )
        for n, due in enumerate(schedule(layout))
    ]
    decoders = {side: JsonDecoder(side, side, TopicMapping()) for side in places}
    monitors = Timed(MonitorsSpec())
    pipeline = Pipeline(JoinSpec(), TimeSpec(), monitors, {p: side for side, p in places.items()})
    monitors.fold([Outcome("warm-up", "a", "b", 0, 0)])
    monitors.seconds = 0.0
    store, decoding, joining = MemoryStore(), 0.0, 0.0
    for start in range(0, len(records), 500):
        batch = records[start : start + 500]
        sides = {side: [record for record in batch if record.topic == side] for side in places}
        events: list[Event] = []
        began = time.process_time()
        for side, piece in sides.items():
            if piece:
                times = [record.timestamp for record in piece]
                stamps = pipeline.timeline.stamp_all(places[side], times, times[-1])
                events += decoders[side].decode_all(piece, stamps)
        decoded = time.process_time()
        events += [Progress(*p, batch[-1].timestamp, False) for p in places.values()]
        store.commit(pipeline.advance(events, store.fetch(pipeline.needs(events))), {})
        decoding += decoded - began
        joining += time.process_time() - decoded
    found = {"stamp and decode": decoding, "join": joining - monitors.seconds, "evaluate": monitors.seconds}
    return {stage: 1e6 * seconds / len(records) for stage, seconds in found.items()}


TASKS = {"stages": stages, "bare": bare, "daemon": daemon, "idle": idle, "pending": pending, "models": models}


def in_a_fresh_process(
    task: str, servers: str = "", topics: tuple[str, ...] = (), messages: int = 0
) -> dict[str, float]:
    command = [sys.executable, "-m", __spec__.name, "--task", task, "--servers", servers]
    command += ["--topics", ",".join(topics), "--messages", str(messages)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=600, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def broker(*, embedded: bool, topics: list[str], partitions: int) -> Iterator[tuple[str, str]]:
    """Its address and what it is; with the topics made."""
    running = os.environ.get("STREAMWATCH_TEST_BOOTSTRAP")
    if running and not embedded:
        asyncio.run(create_topics(running, topics, partitions=partitions))
        yield running, "STREAMWATCH_TEST_BOOTSTRAP"
    elif embedded or kafka_broker.unavailable_jars():
        command = [sys.executable, "-m", __spec__.name, "--task", "broker", "--topics", ",".join(topics)]
        command += ["--partitions", str(partitions)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            yield child.stdout.readline().strip(), EMBEDDED
            child.communicate("")
    else:
        with tempfile.TemporaryDirectory() as folder:
            kafka = kafka_broker.KafkaBroker(Path(folder))
            kafka.start()
            try:
                asyncio.run(create_topics(kafka.bootstrap_servers, topics, partitions=partitions))
                yield kafka.bootstrap_servers, "Apache Kafka"
            finally:
                kafka.kill()


def serve(topics: list[str], partitions: int) -> None:
    """An embedded broker until standard input ends."""
    with EmbeddedBroker() as embedded:
        for topic in topics:
            embedded.create_topic(topic, partitions)
        print(embedded.bootstrap_servers, flush=True)
        sys.stdin.read()


def measure(arguments: argparse.Namespace) -> None:
    run = uuid.uuid4().hex[:6]
    topics = [
        f"bench-{run}-{name}" for name in ("predictions", "labels", "empty-predictions", "empty-labels")
    ]
    stream = replace(STREAM, models=arguments.models)
    partitions: int = arguments.partitions
    with broker(embedded=arguments.embedded, topics=topics, partitions=partitions) as (servers, kind):
        instances: int = arguments.instances
        if kind == EMBEDDED:
            instances = min(instances, EMBEDDED_INSTANCES * 3 * partitions // arguments.models)
        spec = SimulationSpec(
            servers, *topics[:2], stream=stream, outcomes=instances, rate=1_000.0, flat_out=True
        )
        sent = asyncio.run(run_simulation(spec))
        messages = sent.predictions + sent.labels
        rounds = {"bare": [], "daemon": []}
        for _ in range(arguments.repeats):
            for task, found in rounds.items():
                found.append(in_a_fresh_process(task, servers, tuple(topics[:2]), messages))
        quiet = in_a_fresh_process("idle", servers, tuple(topics[2:]))
    parts = [in_a_fresh_process("stages", messages=instances // 2) for _ in range(arguments.repeats)]
    outcomes = rounds["daemon"][0]["outcomes"]
    cpu = {task: 1e6 * min(f["cpu"] for f in found) / messages for task, found in rounds.items()}
    wall = {task: min(f["wall"] for f in found) for task, found in rounds.items()}
    ratio = cpu["daemon"] / cpu["bare"]

    title = (
        f"{messages:,} messages, {outcomes:,.0f} outcomes of {arguments.models} models,"
        f" {partitions} + {partitions} partitions, {kind}"
    )
    table = Table(title=title, title_justify="left")
    for heading in (
        "",
        "CPU µs per message",
        "CPU µs per outcome",
        "messages/s",
        "runs (CPU µs per message)",
    ):
        table.add_column(heading, justify="right" if heading else "left")

    def add(name: str, micros: float, *more: str) -> None:
        table.add_row(name, f"{micros:.2f}", f"{micros * messages / outcomes:.2f}", *more)

    for task, name in (("bare", "bare aiokafka + msgspec loop"), ("daemon", "streamwatch")):
        runs = " ".join(f"{1e6 * f['cpu'] / messages:.2f}" for f in rounds[task])
        add(name, cpu[task], f"{messages / wall[task]:,.0f}", runs)
    alone = {stage: min(part[stage] for part in parts) for stage in parts[0]}
    for stage, micros in alone.items():
        add(f"  {stage}, from memory", micros)
    add("  all else above the bare loop", cpu["daemon"] - cpu["bare"] - sum(alone.values()))
    table.add_row("ratio", f"{ratio:.2f}", f"(goal ≤ {GOAL})", "", "", style="bold")
    console = Console(width=130)
    console.print(table)
    memory = Table(title="idle and memory", title_justify="left", show_header=False)
    memory.add_row("resident, idle on empty topics", f"{quiet['rss'] / 1e6:.0f} MB")
    memory.add_row("CPU, idle", f"{quiet['cpu']:.1%}")
    memory.add_row(
        f"pending prediction (of {PENDING:,}, UUID ids)", f"{in_a_fresh_process('pending')['bytes']:,.0f} B"
    )
    per_model = in_a_fresh_process("models")["bytes"]
    memory.add_row(
        f"model (of {MODELS:,}, {CLASSES} classes, {OUTCOMES_PER_MODEL:,} outcomes)", f"{per_model:,.0f} B"
    )
    console.print(memory)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instances", type=int, default=100_000)
    parser.add_argument("--models", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=4, help="of each topic")
    parser.add_argument("--repeats", type=int, default=5)
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
