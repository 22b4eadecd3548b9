"""A disk that answers with errors, or late: nothing is lost, nothing shown too early, nobody waits for it."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles

import aiohttp
import pytest

from streamwatch.demo.embedded import EmbeddedBroker
from tests.cpu_budget import OwnTime
from tests.faults.disk.injecting import attached, injected, under_strace
from tests.faults.disk.watching import Pairs, Watching, watching
from tests.faults.disk.writing import expectations, found_in, writing

ERRORS = {
    "fsync": "EIO",
    "fdatasync": "EIO",
    "write": "EIO",
    "pread64": "EIO",
    "rename": "EIO",
}
"""What each call answers with."""
NUMBERS = ("1", "2", "3", "5", "9", "14", "4..7")
"""Which calls of each thread fail."""
NUMBERS_OF_READS = ("5", "8", "12", "15..20")
"""Not the first, by which libraries are loaded; every opening has new threads that read."""
COMMITS = 15
AT_ONCE = 2
SLOW_MS = 300
MOST_MS = 100
"""What 99 of 100 requests may wait, not counting what threads wait for a processor."""
ANSWERS, BETWEEN_SECONDS, ROUNDS = 300, 0.02, 3
"""Who waits for the disk waits in every round; who is disturbed by something else does in one."""

log = logging.getLogger(__name__)

pytestmark = pytest.mark.real("strace")


@pytest.fixture
def pairs() -> Iterator[Pairs]:
    with EmbeddedBroker() as broker:
        yield Pairs(broker)


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("call", ERRORS)
def test_after_an_error_the_state_opens_again_with_every_durable_commit(tmp_path: Path, call: str) -> None:
    numbers = NUMBERS_OF_READS if call == "pread64" else NUMBERS
    ends = ("ended", "stuck") if call == "pread64" else ("ended",)  # a place may be read at each opening
    kept: dict[str, range] = {}
    wrong: list[str] = []
    with expectations(tmp_path / "expected") as expected:

        def run(when: str) -> int:
            state = tmp_path / f"state-{when}"
            injection = f"{call}:error={ERRORS[call]}:when={when}"
            with writing(state, COMMITS, under=attached(injection)) as writer:
                code = writer.wait()
            if code or not writer.said or writer.said[-1][0] not in ends:
                wrong.append(f"{when}: exit code {code}, {writer.said[-3:]}")
                return 0
            promised = 0
            for word, value in writer.said:
                if word == "found" and int(value) < promised:
                    wrong.append(f"{when}: found {value} after {promised} was durable")
                if word in ("found", "durable"):
                    promised = int(value)
            if writer.said[-1][0] == "stuck":
                kept[when] = range(
                    promised, promised + 2
                )  # the last one may be whole without having been said
            return writer.times("failed")

        with ThreadPoolExecutor(AT_ONCE) as threads:
            failures = sum(threads.map(run, numbers))
        for when in numbers:
            state = tmp_path / f"state-{when}"
            if (found := found_in(state, expected)) not in kept.get(when, [COMMITS]):
                wrong.append(f"{when}: {found} at the end, not {kept.get(when, COMMITS)}")
            shutil.rmtree(state)
    log.info("%s: %d failures", call, failures)
    assert wrong == []
    assert failures >= len(numbers) // 2, "too little went wrong"


async def test_while_nothing_can_be_made_durable_nothing_new_is_shown(tmp_path: Path, pairs: Pairs) -> None:
    state = tmp_path / "state"
    settings = [*pairs.settings, "state.commit_interval=100ms"]
    async with watching(tmp_path, state, settings, anew=True) as daemon:
        async with pairs.flowing():
            await daemon.until(lambda: daemon.shown("outcomes_total") > 0)
            with injected(daemon.process.pid, "fsync,fdatasync:error=EIO", tmp_path / "strace.log"):
                await daemon.until(lambda: len(daemon.happened("state_lost")) >= 3)
                assert await daemon.status("/healthz") == 200
                assert await daemon.status("/readyz") == 503
                answers = daemon.scraper.answers
                await daemon.until(lambda: daemon.scraper.answers > answers + 1)  # asked for since
                shown = daemon.shown("outcomes_total")
                written, answers = pairs.written, daemon.scraper.answers
                await daemon.until(lambda: pairs.written > written + 200)
                await daemon.until(lambda: daemon.scraper.answers > answers + 5)
                assert daemon.shown("outcomes_total") == shown
                assert daemon.shown("state_durable") == 0
        await daemon.until_counted(pairs.written)
        assert await daemon.status("/readyz") == 200


async def test_an_fsync_of_300_ms_keeps_nobody_waiting_for_an_answer(tmp_path: Path, pairs: Pairs) -> None:
    under = under_strace(f"fsync,fdatasync:delay_exit={SLOW_MS * 1_000}")
    async with (
        watching(tmp_path, tmp_path / "state", pairs.settings, under) as daemon,
        aiohttp.ClientSession() as session,
    ):
        async with pairs.flowing():
            await daemon.until(lambda: daemon.shown("outcomes_total") > 0)
            before = daemon.shown("outcomes_total")
            for _ in range(ROUNDS):
                waited = await waiting_for_answers(session, daemon)
                *_, p99 = quantiles(waited, n=100)
                said = f"median {median(waited):.1f} ms, p99 {p99:.1f} ms, longest {max(waited):.1f} ms"
                log.info("/metrics: %s", said)
                if prompt := p99 < MOST_MS and median(waited) < MOST_MS / 5:
                    break
            assert prompt, said
            assert daemon.shown("last_commit_seconds") >= SLOW_MS / 1_000, "the disk was not slow"
            assert daemon.shown("outcomes_total") > before
        await daemon.until_counted(pairs.written)


async def waiting_for_answers(session: aiohttp.ClientSession, daemon: Watching) -> list[float]:
    """Milliseconds, of the daemon's and this process's own, that each of many scrapes took."""
    waited: list[float] = []
    while len(waited) < ANSWERS:
        own = OwnTime(os.getpid())  # the daemon is a child
        async with session.get(f"{daemon.url()}/metrics") as answer:
            assert answer.status == 200
            await answer.read()
        waited.append(own.look().seconds * 1_000)
        await asyncio.sleep(BETWEEN_SECONDS)
    return waited
