"""`streamwatch run` as a process whose disk is the test's, fed with a stream whose totals are known."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
from confluent_kafka import Producer

from streamwatch.demo.embedded import EmbeddedBroker
from tests.faults.process_runs import Scraper
from tests.integration.forked_daemon import ForkedProcess, forked_daemon
from tests.integration.running import DEADLINE_SECONDS, Child
from tests.integration.topics import fresh

PAIRS_PER_SECOND = 400
TURN_SECONDS = 0.02


class Pairs:
    """Predictions of one model, each with its label; every third is wrong."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.topics = {"predictions": fresh("predictions"), "labels": fresh("labels")}
        for topic in self.topics.values():
            broker.create_topic(topic)
        self.settings = [
            f"kafka.bootstrap_servers={broker.bootstrap_servers}",
            *(f"topics.{side}={topic}" for side, topic in self.topics.items()),
        ]
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 10})
        self.written = 0

    def write(self, number: int) -> None:
        for _ in range(number):
            key = str(self.written)
            prediction = {"id": key, "model": "m", "prediction": "a"}
            label = {"id": key, "label": "b" if self.written % 3 == 0 else "a"}
            self._producer.produce(self.topics["predictions"], json.dumps(prediction))
            self._producer.produce(self.topics["labels"], json.dumps(label))
            self.written += 1
        self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(600) == 0

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """Written at a steady rate until the end of the block."""

        async def flow() -> None:
            began, before = time.monotonic(), self.written
            while True:
                self.write(int((time.monotonic() - began) * PAIRS_PER_SECOND) - (self.written - before))
                await asyncio.sleep(TURN_SECONDS)

        task = asyncio.create_task(flow())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})
            self.flush()


class Watching(Child):
    """A daemon, and what it has shown so far."""

    def __init__(self, process: subprocess.Popen[bytes] | ForkedProcess, log: Path) -> None:
        super().__init__(process, log)
        self.scraper = Scraper("")

    def happened(self, event: str) -> list[dict]:
        """What it logged of this kind."""
        lines = [json.loads(line) for line in self.log.splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == event]

    async def status(self, path: str) -> int:
        async with aiohttp.ClientSession() as session, session.get(self.url() + path) as answer:
            return answer.status

    def shown(self, name: str) -> float:
        """The sum over labels of what the last scrape showed."""
        return sum(value for (found, _), value in self.scraper.latest.items() if found == name)

    async def until(self, condition, seconds: float = DEADLINE_SECONDS) -> None:
        """Until it holds; it is asked after every scrape, and the daemon must not end meanwhile."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, f"it ended: {self.log}"
            assert time.monotonic() < deadline, f"waited too long: {self.log[-3_000:]}"
            await asyncio.sleep(0.05)

    async def until_counted(self, pairs: int) -> None:
        """Until all is shown, each exactly once and none ever taken back."""
        await self.until(lambda: self.shown("outcomes_total") >= pairs)
        assert self.shown("outcomes_total") == pairs
        assert self.shown("predictions_accepted_total") == pairs
        assert self.shown("errors_total") == (pairs + 2) // 3
        assert self.shown("labels_duplicate_total") == self.shown("predictions_duplicate_total") == 0
        assert self.scraper.went_back == [], self.scraper.went_back


@contextmanager
def daemon(
    folder: Path, state: Path, settings: Sequence[str], under: Sequence[str] = (), *, anew: bool = False
) -> Iterator[Watching]:
    """A daemon that keeps its state there, killed at the end.

    It is forked from a process that has imported all it needs, unless it is to be started `anew`, or by the
    command `under`.
    """
    log = folder / f"daemon-{time.monotonic_ns()}.log"
    arguments = ["run"]
    for setting in ("http.listen=127.0.0.1:0", f"state.directory={state}", *settings):
        arguments += ["--set", setting]
    if not (under or anew):
        with forked_daemon(folder, log, arguments) as forked:
            yield Watching(forked, log)
        return
    command = [*under, sys.executable, "-m", "streamwatch", *arguments]
    with (
        log.open("wb") as out,
        subprocess.Popen(command, stdout=out, stderr=out, cwd=folder, start_new_session=True) as process,
    ):
        try:
            yield Watching(process, log)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@asynccontextmanager
async def watching(
    folder: Path, state: Path, settings: Sequence[str], under: Sequence[str] = (), *, anew: bool = False
) -> AsyncIterator[Watching]:
    """A daemon that is scraped every tenth of a second."""
    with daemon(folder, state, settings, under, anew=anew) as running:
        url = await asyncio.to_thread(running.url)
        running.scraper = Scraper(f"{url}/metrics")
        scraping = asyncio.create_task(running.scraper.run())
        try:
            yield running
        finally:
            scraping.cancel()
            await asyncio.wait({scraping})
