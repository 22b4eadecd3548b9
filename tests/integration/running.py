"""A daemon in this process, or in a child, and what its /metrics say."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from streamwatch.assembly.build import build_daemon
from streamwatch.assembly.state import HostClocks, consume_loop_spec
from streamwatch.assembly.topics import build_topics
from streamwatch.core.ports import Decoder, Record
from streamwatch.core.records.batch import RecordBatch
from streamwatch.core.records.events import Event
from streamwatch.daemon import Topic
from streamwatch.settings import Settings
from streamwatch.telemetry import Telemetry
from tests.cpu_budget import OwnTime
from tests.integration.forked_daemon import ForkedProcess, forked_daemon

DEADLINE_SECONDS = 600.0
"""To notification what never happens; how long things take is no matter of this."""
Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


_series: dict[str, tuple[str, frozenset[tuple[str, str]]] | None] = {}
"""Name and labels by what stands before the value, None of a comment: scrapes repeat all but the values."""


def parsed(text: str) -> Samples:
    """Every sample by name (without prefix) and labels."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for line in text.splitlines():
        written, _, number = (line, "", "") if line.startswith("#") else line.rpartition(" ")
        if written not in _series:
            _series[written] = _series_of(written)
        if (series := _series[written]) is not None:
            found[series] = float(number)
    return found


def _series_of(written: str) -> tuple[str, frozenset[tuple[str, str]]] | None:
    """Name and labels of a line of /metrics without its value, as Prometheus's client reads them."""
    line = written if written.startswith("#") else f"{written} 0"
    samples = [s for family in text_string_to_metric_families(f"{line}\n") for s in family.samples]
    if not samples:
        return None
    [sample] = samples
    assert (sample.timestamp, sample.exemplar) == (None, None), "what stands last is the value"
    return sample.name.removeprefix("streamwatch_"), frozenset(sample.labels.items())


def value(samples: Samples, name: str, **labels: str) -> float:
    """One sample; NaN where there is none."""
    return samples.get((name, frozenset(labels.items())), float("nan"))


class Auditor:
    """Stands in front of a decoder and writes down which records were consumed, in order."""

    def __init__(self, decoder: Decoder, order: list[tuple[str, int, int]]) -> None:
        self._decoder = decoder
        self._order = order

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Event]:
        self._write_down(records)
        return self._decoder.decode_all(records, stamps)

    def decode_batch(self, records: Sequence[Record]) -> RecordBatch:
        self._write_down(records)
        return self._decoder.decode_batch(records)

    def _write_down(self, records: Sequence[Record]) -> None:
        self._order.extend((record.topic, record.partition, record.offset) for record in records)


class Running:
    """A daemon in this process, asked over HTTP."""

    def __init__(self, url: str, session: aiohttp.ClientSession, order: list[tuple[str, int, int]]) -> None:
        self.url = url
        self.order = order
        """(topic, partition, offset) of every record, as consumed."""
        self._session = session

    async def get(self, path: str) -> tuple[int, str]:
        async with self._session.get(self.url + path) as answer:
            return answer.status, await answer.text()

    async def metrics(self) -> Samples:
        status, text = await self.get("/metrics")
        assert status == 200
        return parsed(text)

    async def until(self, condition: Callable[[Samples], bool], seconds: float = DEADLINE_SECONDS) -> Samples:
        """Scrape until it holds."""
        async with asyncio.timeout(seconds):
            while not condition(samples := await self.metrics()):  # noqa: ASYNC110  # over HTTP
                await asyncio.sleep(0.05)
            return samples


@asynccontextmanager
async def daemon(document: Mapping[str, Any], clocks: HostClocks | None = None) -> AsyncIterator[Running]:
    """A daemon with these settings, on a host with these clocks; its own error ends the test."""
    settings = Settings(**{"http": {"listen": "127.0.0.1:0"}, "state": {"kind": "memory"}, **document})
    order: list[tuple[str, int, int]] = []
    topics = {
        name: Topic(topic.side, Auditor(topic.decoder, order))
        for name, topic in build_topics(settings).items()
    }
    telemetry = Telemetry(level="warning")
    reading = consume_loop_spec(settings, topics, telemetry, clocks=clocks)
    built = build_daemon(settings, telemetry, topics=topics, reading=reading)
    running = asyncio.create_task(built.run())
    async with aiohttp.ClientSession() as session:
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while built.url.endswith(":0") and not running.done():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            yield Running(built.url, session, order)
        finally:
            built.stop("test")
            await running


class Child:
    """`streamwatch run` as a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes] | ForkedProcess, log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def url(self) -> str:
        """Where it serves; waits for it to say so."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not (found := re.search(r"http://[\d.]+:\d+", self.log)):
            assert time.monotonic() < deadline, self.log
            self.pause()
        return found[0]

    def pause(self) -> None:
        """A moment in which it must not end."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(0.05)
            pytest.fail(f"it ended with {self.process.returncode}: {self.log}")

    def end(self, number: signal.Signals) -> tuple[int, float]:
        """Send a signal; exit code, and seconds of its own until it was gone."""
        deadline, own = time.monotonic() + DEADLINE_SECONDS, OwnTime(self.process.pid)
        self.process.send_signal(number)
        while True:
            with suppress(subprocess.TimeoutExpired):
                code = self.process.wait(0.02)
                return code, own.look().seconds
            own.look()
            assert time.monotonic() < deadline, self.log


@contextmanager
def child(
    folder: Path,
    *overrides: str,
    environment: Mapping[str, str] = MappingProxyType({}),
    module: Sequence[str] = ("streamwatch",),
    anew: bool = False,
) -> Iterator[Child]:
    """A child with these overrides, killed at the end if it is still there; `module` and arguments run it.

    It is forked from a process that has imported all it needs, or started `anew`, as it always is with an
    environment of its own.
    """
    log = folder / "daemon.log"
    arguments = ["run", "--set", "http.listen=127.0.0.1:0"]
    for override in overrides:
        arguments += ["--set", override]
    if not (anew or environment):
        with forked_daemon(folder, log, arguments, module) as forked:
            yield Child(forked, log)
        return
    command = [sys.executable, "-m", *module, *arguments]
    surroundings = {**os.environ, **environment}
    with (
        log.open("wb") as out,
        subprocess.Popen(command, stdout=out, stderr=out, cwd=folder, env=surroundings) as process,
    ):
        try:
            yield Child(process, log)
        finally:
            process.kill()
