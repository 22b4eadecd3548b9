"""A victim, a control and a prober beside an attack, and what they tell of it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

START_SECONDS = 120


class Health(NamedTuple):
    """Seconds until health answered, beyond what a bare server took in the same moment."""

    asked: int
    median: float
    p99: float
    largest: float
    unanswered: int


@dataclass
class Siege:
    """What is attacked, and what was seen."""

    url: str
    process: int
    log: Path
    rounds: list[list[float | None]] = field(default_factory=list)

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port
        return port

    @property
    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.process}/statm").read_text().split()[1]) * 4_096

    @property
    def peak_bytes(self) -> int:
        """The most memory it ever held."""
        for line in Path(f"/proc/{self.process}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1_024
        raise AssertionError("no VmHWM")

    @property
    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    def health(self) -> Health:
        """How health answered until now."""
        beyond = sorted(
            max(0.0, ours - control)
            for ours, control in self.rounds
            if ours is not None and control is not None
        )
        unanswered = sum(ours is None for ours, _ in self.rounds)
        return Health(
            len(beyond), beyond[len(beyond) // 2], beyond[len(beyond) * 99 // 100], beyond[-1], unanswered
        )


@asynccontextmanager
async def siege(*options: str) -> AsyncIterator[Siege]:
    """Start a server and everything around it."""
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "victim.log"
        with log.open("wb") as told:
            victim, url = await _started(told, *options)
        async with around(victim, url, log) as besieged:
            yield besieged


@asynccontextmanager
async def around(victim: asyncio.subprocess.Process, url: str, log: Path) -> AsyncIterator[Siege]:
    """Ask a process for its health from now on, and a control beside it; ends the process."""
    besieged, running, listening = Siege(url, victim.pid, log), [victim], None
    try:
        control, control_url = await _started(None, "--control")
        running.append(control)
        prober = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.attack.prober", url, control_url,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        running.append(prober)
        listening = asyncio.create_task(_listen(prober, besieged))
        await rounds(besieged, 5)
        besieged.rounds.clear()
        yield besieged
        assert victim.returncode is None, besieged.lines[-20:]
    finally:
        for process in running:
            if process.returncode is None:
                process.kill()
            await process.wait()
        if listening is not None:
            listening.cancel()


async def rounds(besieged: Siege, count: int) -> None:
    """Wait until the prober has asked so many more times."""
    async with asyncio.timeout(START_SECONDS):
        wanted = len(besieged.rounds) + count
        while len(besieged.rounds) < wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def _started(log: object, *options: str) -> tuple[asyncio.subprocess.Process, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.attack.victim",
        *options,
        stdout=subprocess.PIPE,
        stderr=log,  # type: ignore[arg-type]
    )
    assert process.stdout
    line = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
    return process, line.decode().strip()


async def _listen(prober: asyncio.subprocess.Process, besieged: Siege) -> None:
    assert prober.stdout
    async for line in prober.stdout:
        besieged.rounds.append(json.loads(line))
