"""A system that refuses memory: the daemon ends and says so, and a restart goes on exactly."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamwatch.demo.embedded import EmbeddedBroker
from tests.faults.disk.watching import Pairs, daemon, watching
from tests.integration.running import DEADLINE_SECONDS

BURST = 1_000
"""Pairs written at once, until the join's table must grow for them."""
SPARE_BYTES = 1_000_000
LEAST_KILOBYTES = 900_000
"""Addresses of a process in which the estimators' table has no room."""

pytestmark = pytest.mark.timeout(1_800)


@pytest.fixture
def pairs() -> Iterator[Pairs]:
    with EmbeddedBroker() as broker:
        yield Pairs(broker)


def limit_addresses(pid: int) -> None:
    """Refuse a process all but a little more than what it has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + SPARE_BYTES
    resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))


async def ended(process: subprocess.Popen[bytes], pairs: Pairs | None = None) -> int:
    """Its exit code, at the end; pairs are written meanwhile."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (code := process.poll()) is None:
        assert time.monotonic() < deadline, "it goes on without the memory that it asked for"
        if pairs is not None:
            pairs.write(BURST)
        await asyncio.sleep(0.05)
    return code


async def test_memory_that_is_refused_ends_the_process_and_a_restart_counts_everything_once(
    tmp_path: Path, pairs: Pairs
) -> None:
    async with watching(tmp_path, tmp_path / "state", pairs.settings, anew=True) as limited:
        pairs.write(BURST)
        await limited.until(lambda: limited.shown("outcomes_total") > 0)
        limit_addresses(limited.process.pid)
        code = await ended(limited.process, pairs)
        pairs.flush()
        assert code == 1 or code < 0, "an error that is said, or the end of a library that can not go on"
        if code == 1:
            [end] = limited.happened("out_of_memory") + limited.happened("crashed")
            assert limited.log.splitlines()[-1].count(end["event"]) == 1, "nothing comes after it"
            if end["event"] == "out_of_memory":
                assert "streamwatch check" in end["remedy"]
        before = limited.shown("outcomes_total")
    assert before < pairs.written
    async with watching(tmp_path, tmp_path / "state", pairs.settings) as again:
        await again.until_counted(pairs.written)
        assert again.happened("state_opened")[0]["refolded_outcomes"] >= before


async def test_too_few_addresses_for_a_start_are_said_with_what_to_do(tmp_path: Path, pairs: Pairs) -> None:
    under = ["sh", "-c", f'ulimit -v {LEAST_KILOBYTES}; exec "$@"', "sh"]
    with daemon(tmp_path, tmp_path / "state", pairs.settings, under) as limited:
        assert await ended(limited.process) == 1
        [end] = limited.happened("out_of_memory")
        assert "Unable to allocate" in end["error"]
        assert "ulimit -v" in end["remedy"]
