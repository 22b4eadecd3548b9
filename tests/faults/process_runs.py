"""A daemon that is killed and begun again, from outside: its runs, and what it shows across them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp

from tests.faults.auditing import Series
from tests.faults.crash_audit import COMMITTING, CrashMarker, read_marker

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 600.0
COMMIT_PATIENCE_SECONDS = 0.5
SCRAPE_SECONDS = 0.1
SINCE_THE_START = frozenset(
    {
        "notifications_dropped_total",
        "notifications_sent_total",
        "notifications_failed_total",
        "process_cpu_seconds_total",
        "standby_takeovers_total",
        "standby_notifications_in_doubt_total",
        "internal_events_total",
        *(f"{what}_duration_seconds" for what in ("poll", "evaluation", "commit", "notification")),
    }
)
"""Counters of the process, not of the state: a start begins them anew."""

_TYPE = re.compile(r"# TYPE streamwatch_(\w+) (\w+)")
_SERIES = re.compile(r"streamwatch_(\w+)(?:\{(.*)\})?")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class ProcessRuns:
    """Runs of one daemon, one after the other."""

    def __init__(self, server: asyncio.subprocess.Process, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._told: dict[str, str] = {}
        self.number = -1

    def log(self, life: int) -> str:
        path = self._folder / f"{life:05}.log"
        return path.read_text() if path.exists() else ""

    def marker(self, life: int) -> CrashMarker:
        return read_marker(self._folder / f"{life:05}.marker")

    async def begin(self, *, until: str = "opening") -> int:
        """Begin a life; its number."""
        self.number += 1
        self._told.clear()
        self._say("live")
        await self.hear("forked")
        await self.hear(until)
        return self.number

    async def end(self, how: signal.Signals) -> None:
        """End the life that was begun."""
        assert "ended" not in self._told, self.log(self.number)
        os.kill(int(self._told["forked"]), how)
        await self.hear("ended")
        self._say("heard")

    async def until_it_commits(self, life: int) -> None:
        """Until it is committing or flushing; for a moment at most, as it may be no further than Kafka."""
        deadline = time.monotonic() + COMMIT_PATIENCE_SECONDS
        while time.monotonic() < deadline:
            marker = self.marker(life)
            if marker.phase == COMMITTING or marker.flushing:
                return
            await asyncio.sleep(0)

    async def hear(self, word: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while word not in self._told:
                assert "ended" not in self._told, f"it ended by itself: {self.log(self.number)}"
                line = (await self._server.stdout.readline()).decode()
                assert line, "the parent of all runs ended"
                heard, _, value = line.strip().partition(" ")
                self._told[heard] = value

    def _say(self, word: str) -> None:
        self._server.stdin.write(f"{word}\n".encode())


@asynccontextmanager
async def runs_of(document: Mapping[str, Any], folder: Path) -> AsyncIterator[ProcessRuns]:
    """A parent that is ready to begin runs."""
    config = folder / "config.json"
    config.write_text(json.dumps(document))
    with (folder / "parent.log").open("wb") as log:
        server = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.faults.audited", str(config), str(folder)),
            cwd=ROOT,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # its threads would be lost in a fork
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
    runs = ProcessRuns(server, folder)
    try:
        await runs.hear("ready")
        yield runs
    finally:
        with contextlib.suppress(KeyError, ProcessLookupError):
            if "ended" not in runs._told:
                os.kill(int(runs._told["forked"]), signal.SIGKILL)
        server.kill()
        await server.wait()


class Scraper:
    """Asks /metrics every tenth of a second, whoever answers, and remembers the most of each counter."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.highest: dict[Series, float] = {}
        self.latest: dict[Series, float] = {}
        """Every sample of the last answer."""
        self.went_back: list[tuple[Series, float, float]] = []
        self.answers = 0

    @property
    def everything_is_read_and_told(self) -> bool:
        """By the last answer."""
        left = ("consumer_lag_records", "merge_held_records", "notifications_pending")
        counts = [value for (name, _), value in self.latest.items() if name in left]
        return self.latest.get(("caught_up", frozenset())) == 1 and not any(counts)

    async def run(self) -> None:
        patience = aiohttp.ClientTimeout(total=60.0)
        async with aiohttp.ClientSession(timeout=patience) as session:
            while True:
                with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                    async with session.get(self._url) as answer:
                        self._look(await answer.text())
                await asyncio.sleep(SCRAPE_SECONDS)

    def _look(self, text: str) -> None:
        self.answers += 1
        self.latest, growing = samples(text)
        for series, value in growing.items():
            before = self.highest.get(series, value)
            if value < before:
                self.went_back.append((series, before, value))
            self.highest[series] = max(before, value)


def samples(text: str) -> tuple[dict[Series, float], dict[Series, float]]:
    """Every sample of an exposition; and those of them that may only grow."""
    found: dict[Series, float] = {}
    growing: dict[Series, float] = {}
    grows = False
    for line in text.splitlines():
        if line.startswith("#"):
            grows = _kind_of(line, grows=grows)
        elif (series := _series_of((said := line.rpartition(" "))[0])) is not None:
            found[series] = float(said[2])
            if grows:
                growing[series] = found[series]
    return found, growing


@cache
def _kind_of(comment: str, *, grows: bool) -> bool:
    """Whether the samples after this comment may only grow; where it says nothing of that, as before."""
    told = _TYPE.match(comment)
    if told is None:
        return grows
    return told[1] not in SINCE_THE_START and told[2] in ("counter", "histogram")


@cache
def _series_of(name_and_labels: str) -> Series | None:
    """The series of a sample, which the next scrape says again; None where it is none of ours."""
    series = _SERIES.fullmatch(name_and_labels)
    return None if series is None else (series[1], frozenset(_LABEL.findall(series[2] or "")))
