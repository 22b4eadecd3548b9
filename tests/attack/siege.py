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
from urllib.parse import urlsplit

START_SECONDS = 120


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

    def health(self) -> tuple[float, float, int]:
        """Median and largest seconds of health beyond the control's, and how often there was no answer."""
        answered = sorted(
            max(0.0, ours - control)
            for ours, control in self.rounds
            if ours is not None and control is not None
        )
        missing = sum(ours is None for ours, _ in self.rounds)
        return answered[len(answered) // 2], answered[-1], missing


@asynccontextmanager
async def siege(*options: str) -> AsyncIterator[Siege]:
    """Start everything; the prober asks from now on."""
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "victim.log"
        with log.open("wb") as told:
            victim, url = await _started(told, *options)
            control, control_url = await _started(None, "--control")
        prober = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.attack.prober", url, control_url,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        besieged = Siege(url, victim.pid, log)
        listening = asyncio.create_task(_listen(prober, besieged))
        try:
            await rounds(besieged, 5)
            besieged.rounds.clear()
            yield besieged
            assert victim.returncode is None, besieged.lines[-20:]
        finally:
            for process in (prober, victim, control):
                if process.returncode is None:
                    process.kill()
                await process.wait()
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
