"""The power fails while state is written: what was held for durable is there, whole, and nothing else."""

from __future__ import annotations

import logging
import os
import shutil
import time
from pathlib import Path
from random import Random

import pytest

from streamwatch.demo.embedded import EmbeddedBroker
from streamwatch.edge.stores.kind import StateDamaged
from tests.faults.committed import COLD
from tests.faults.disk.injecting import attached
from tests.faults.disk.volume import Volume, volume
from tests.faults.disk.watching import Pairs, watching
from tests.faults.disk.writing import Expected, expectations, found_in, writing
from tests.tiers import number

CUTS = number("STREAMWATCH_POWER_CUTS", default=6, everything=24)
SEED = int(os.environ.get("STREAMWATCH_SEED", "20250131"))
UNORDERED = "data=writeback"
"""Not the default, and not promised: ext4 may then end a file with bytes that nobody wrote. RocksDB overlooks
that in its log; in its manifest, which it seldom writes to, it refuses it (once in some hundred cuts)."""
JOURNALS = ("data=ordered", UNORDERED, "data=ordered,nodelalloc")
MOST_COMMITS, LATEST_SECONDS, MAKING_SECONDS = 12, 0.004, 0.1
SHARE_NEW, SHARE_OPENING = 0.2, 0.15
"""Of the cuts: while a state is made; as soon as an opening has said what it found."""

log = logging.getLogger(__name__)

pytestmark = pytest.mark.real("loop mount")


def examine(disk: Volume, state: Path, expected: Expected, copy: Path) -> int:
    """What is found after the cut; the state itself is left as the cut left it."""
    disk.unmount()
    disk.mount()
    if not state.exists():
        return 0
    shutil.copytree(state, copy)
    found = found_in(copy, expected)
    shutil.rmtree(copy)
    return found


@pytest.mark.timeout(1_800 + 30 * CUTS)
@pytest.mark.parametrize(
    ("options", "cold"), [*((each, "0") for each in JOURNALS), (JOURNALS[0], "1"), (JOURNALS[2], "1")]
)
def test_no_commit_held_for_durable_is_lost_in_a_power_cut(
    tmp_path: Path, options: str, cold: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COLD, cold)
    chance = Random(f"{SEED} {options}")
    number, lost, refused = 0, [], []
    new = True
    with volume(tmp_path, options) as disk, expectations(tmp_path / "expected") as expected:
        for cut in range(-(-CUTS // len(JOURNALS))):
            new = new or chance.random() < SHARE_NEW
            number += new
            state = disk.path / f"state-{number}"
            with writing(state) as writer:
                if not new or chance.random() < 0.5:
                    writer.until("found")
                    if chance.random() >= SHARE_OPENING:
                        writer.until("durable", chance.randint(1, MOST_COMMITS))
                time.sleep(chance.uniform(0.0, LATEST_SECONDS if writer.said else MAKING_SECONDS))
                writer.lose_power(disk)
            new = False
            try:
                found = examine(disk, state, expected, tmp_path / f"copy-{cut}")
            except StateDamaged as error:
                refused.append(f"cut {cut}: {error}")
                new = True
                continue
            if not writer.kept(found):
                lost.append((cut, writer.promised, writer.last, found))
    log.info("%s: %d states, refused: %s", options, number, refused)
    assert lost == []
    if options == UNORDERED:
        assert all("MANIFEST-" in words for words in refused)
        assert len(refused) <= 1 + CUTS // 100
    else:
        assert refused == []


@pytest.mark.real("strace")
@pytest.mark.parametrize("when", ["3", "5..6", "9"])
def test_what_is_durable_after_a_failed_fsync_outlives_a_power_cut(tmp_path: Path, when: str) -> None:
    injection = attached(f"fdatasync:error=EIO:when={when}")
    with volume(tmp_path) as disk, expectations(tmp_path / "expected") as expected:
        state = disk.path / "state"
        with writing(state, under=injection) as writer:
            writer.until("failed")
            before = writer.times("found")
            writer.until("found", before + 1)
            writer.lose_power(disk)
        found = examine(disk, state, expected, tmp_path / "copy")
        assert writer.kept(found), (writer.promised, writer.last, found)


@pytest.mark.parametrize("attempt", range(3))
def test_what_an_opening_found_stays_although_nobody_had_flushed_it(tmp_path: Path, attempt: int) -> None:
    with volume(tmp_path) as disk, expectations(tmp_path / "expected") as expected:
        state = disk.path / "state"
        with writing(state, flush=False) as killed:
            killed.until("durable", 3 + 4 * attempt)
            killed.kill()
        with writing(state) as writer:
            writer.until("found")
            writer.lose_power(disk)
        assert int(writer.said[0][1]) >= killed.promised, "a killed process takes no written commit with it"
        assert examine(disk, state, expected, tmp_path / "copy") >= writer.promised


async def test_what_the_daemon_has_shown_outlives_a_power_cut_and_the_rest_is_read_again(
    tmp_path: Path,
) -> None:
    with volume(tmp_path) as disk, EmbeddedBroker() as broker:
        pairs = Pairs(broker)
        settings = [*pairs.settings, "state.commit_interval=50ms", "state.min_free_megabytes=1"]
        state = disk.path / "state"
        async with watching(tmp_path, state, settings) as first, pairs.flowing():
            await first.until(lambda: first.shown("outcomes_total") > 200)
            disk.cut_power()
            await first.until(lambda: len(first.happened("state_lost")) > 0)
            assert await first.status("/healthz") == 200
            assert await first.status("/readyz") == 503
        disk.unmount()
        disk.mount()
        async with watching(tmp_path, state, settings) as second:
            second.scraper.highest.update(first.scraper.highest)
            await second.until_counted(pairs.written)


def test_without_flushes_a_power_cut_does_lose_commits(tmp_path: Path) -> None:
    with volume(tmp_path) as disk, expectations(tmp_path / "expected") as expected:
        state = disk.path / "state"
        lost = []
        for _ in range(3):
            with writing(state, flush=False) as writer:
                writer.until("durable", 5)
                writer.lose_power(disk)
            lost.append(writer.promised - examine(disk, state, expected, tmp_path / "copy"))
    assert max(lost) > 0
