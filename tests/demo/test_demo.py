"""`streamwatch demo` as a person starts it: a child process that narrates a drift being caught."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, Queue

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from rich.console import Console

from streamwatch.demo.demo import CHAMPION, SPARED, DemoSpec, run_demo, things_to_try
from streamwatch.telemetry import StartedServing, Telemetry
from tests.cpu_budget import OwnTime
from tests.ports import free_port

pytestmark = pytest.mark.slow

ALARM_SECONDS = 60.0
"""After reading began, of the stream's own time: a busy machine writes and reads it more slowly."""
PATIENCE_SECONDS = 600.0


class RunningDemo:
    """A running demo and the lines it has printed."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.child = child
        self.lines: list[str] = []
        self._arriving: Queue[str] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def until(self, words: str) -> str:
        """The next line that has these words."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (left := deadline - time.monotonic()) > 0.0:
            try:
                line = self._arriving.get(timeout=left)
            except Empty:
                break
            self.lines.append(line)
            if words in line:
                return line
        pytest.fail(f"expected {words!r}, got:\n{''.join(self.lines)}")

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self._arriving.put(line)


@contextmanager
def demo(*options: str) -> Iterator[tuple[RunningDemo, int]]:
    """A child process, and its port."""
    port = free_port()
    child = subprocess.Popen(
        [sys.executable, "-m", "streamwatch", "demo", "--port", str(port), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"},
    )
    try:
        yield RunningDemo(child), port
    finally:
        child.kill()
        child.wait(PATIENCE_SECONDS)
        if child.stdout is not None:
            child.stdout.close()


def get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_SECONDS) as answer:
        return answer.read().decode()


def test_the_demo_catches_a_drift_within_a_minute_and_leaves_when_asked():
    with demo("--compare") as (watched, port):
        watched.until(f"look at http://127.0.0.1:{port}/")
        watched.until("reading 4 partitions of predictions, labels")
        found = re.search(r"at outcome ([\d,]+)", watched.until("ALARM drifting-v2"))
        assert found is not None
        spec = DemoSpec()
        assert int(found[1].replace(",", "")) < spec.head_start + spec.rate * ALARM_SECONDS
        watched.until("drifting-v2 is now worse than no change")
        metrics = get(port, "/metrics")
        assert 'streamwatch_alarms_total{detector="adwin",model="drifting-v2"}' in metrics
        assert "streamwatch_kafka_up 1" in metrics
        models = json.loads(get(port, "/api/v1/models"))["models"]
        assert models.keys() == {"stable-v1", "drifting-v2", "adaptive-v3"}
        assert models["stable-v1"]["metrics"]["outcomes_total"] > 2_000
        window = {name: m["metrics"]["accuracy_ratio"]["adwin:0.05"] for name, m in models.items()}
        assert window["drifting-v2"] < 0.75 < window["stable-v1"]
        compared = json.loads(get(port, "/api/v1/comparisons"))["comparisons"]
        assert {(each["champion"], each["challenger"]) for each in compared} == {
            (CHAMPION, "stable-v1"),
            (CHAMPION, "adaptive-v3"),
        }
        assert min(each["pairs"] for each in compared) > 1_000
        details = json.loads(get(port, "/api/v1/models/drifting-v2"))["details"]
        recent = {
            value["value"]: value["error_now_ratio"] for value in details["segments"]["channel"]["values"]
        }
        assert recent[SPARED] < 0.15
        assert min(recent["web"], recent["app"]) > 0.3
        labelled = details["label_delays"]
        quick = {name: shares[1] for name, shares in labelled["classes"].items()}
        assert quick["normal"] > 0.5
        own = OwnTime(watched.child.pid)
        watched.child.send_signal(signal.SIGINT)
        while watched.child.poll() is None:
            own.look()
            time.sleep(0.02)
        assert watched.child.returncode == 0
        assert own.look().seconds < 10.0


class StandIn:
    """Instead of the daemon: says it serves, and runs until stopped or until what it is given to raise."""

    url = "http://127.0.0.1:0"

    def __init__(self, telemetry: Telemetry, error: Exception | None = None) -> None:
        self._telemetry = telemetry
        self._error = error
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        if self._error is not None:
            raise self._error
        self._telemetry.emit(StartedServing(self.url))
        await self._stopped.wait()

    def stop(self, cause: str = "") -> None:
        del cause
        self._stopped.set()


async def test_the_demo_ends_by_itself_and_has_written_its_stream_to_the_topics_it_names():
    seen: list[tuple[str, int]] = []

    class Counting(StandIn):
        async def run(self) -> None:
            await super().run()
            seen.extend(await counts(self.servers))

    def build(document, telemetry, sinks):
        assert len(sinks) == 1
        assert document["http"]["listen"] == "127.0.0.1:9"
        daemon = Counting(telemetry)
        daemon.servers = document["kafka"]["bootstrap_servers"]
        return daemon

    out = io.StringIO()
    for seconds in (1.0, 10.0, 100.0):  # enough for the head start, also where everything takes longer
        seen.clear()
        spec = DemoSpec(port=9, seconds=seconds, head_start=200, drift_every=400)
        summary = await run_demo(spec, build, Console(file=out, width=200))
        assert (summary.alarms, summary.first_alarm_seconds) == (0, None)
        written = dict(seen)
        if written["predictions"] >= 3 * 200:
            break
    assert written["predictions"] >= 3 * 200
    assert 0 < written["labels"] <= written["predictions"] / 3
    shown = out.getvalue()
    assert "in 2 s the world changes under drifting-v2" in shown
    assert [line in shown for line in things_to_try(StandIn.url, compare=False)] == [True] * 4


async def test_what_the_daemon_raises_ends_the_demo_at_once():
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(OSError, match="port 9 is taken"):
            await run_demo(
                DemoSpec(port=9),
                lambda _, telemetry, __: StandIn(telemetry, OSError("port 9 is taken")),
                Console(file=io.StringIO()),
            )


async def counts(servers: str) -> list[tuple[str, int]]:
    """How many records each topic has been given."""
    found = []
    async with AIOKafkaConsumer(bootstrap_servers=servers) as consumer:
        for topic in ("predictions", "labels"):
            ends = await consumer.end_offsets([TopicPartition(topic, p) for p in range(2)])
            found.append((topic, sum(ends.values())))
    return found
