"""A join most of whose entries lie outside its table is killed, or its log is cut: it is that of a commit."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from streamwatch.edge.stores.rocksdb.opening import FORMAT
from tests.faults.committed import COLD, Committing
from tests.faults.disk.cold_committer import commit_until_killed
from tests.faults.forked import forked
from tests.tiers import by_tier

LIVES = by_tier(fast=8, default=30, everything=500)
IDS, COMMITS = 40, 12
LATEST_SECONDS = 0.05
SHARE_AT_ONCE = 0.2
"""Of the kills: before anything has become durable."""


class Said(NamedTuple):
    """Last words of a process before it was killed: its last durable commit, and the logs as flushed then."""

    commit: int
    logs: Mapping[str, int]


@pytest.fixture
def expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[int, object]:
    """What there is to be found after each commit, from none to the last."""
    monkeypatch.setenv(COLD, "1")
    committing = Committing(tmp_path / "expected", IDS)
    found = {0: committing.found(), **{number: committing.found() for number in committing.until(COMMITS)}}
    assert committing.pipeline.join.entries_outside > 100
    committing.store.close()
    return found


def killed(directory: Path, chance: Random, before: Said) -> Said:
    """Let a process commit until it is killed."""
    process, listening = forked(commit_until_killed, directory, IDS, COMMITS)
    if chance.random() >= SHARE_AT_ONCE:
        listening.poll(None)  # until something is durable, or it has ended
    process.join(chance.uniform(0.0, LATEST_SECONDS))  # at any instant after that
    process.kill()
    process.join()
    with listening, os.fdopen(os.dup(listening.fileno())) as lines:
        said = [Said(*json.loads(line)) for line in lines]
    return said[-1] if said else before


def cut_short(directory: Path, flushed: Mapping[str, int], chance: Random) -> None:
    """Lose some of what was not flushed of the write-ahead log, as a power cut does.

    Of the newest file: RocksDB flushes those before it to the disk itself, before it relies on sorted files
    that hold the same (`DBImpl::SyncClosedWals`). None of it where a directory was made whole and its
    process died before it could tell how much of the log it had flushed for that.
    """
    if not flushed and (directory / FORMAT).exists():
        return
    logs = sorted(directory.glob("*.log"))
    if logs:
        size = logs[-1].stat().st_size
        with logs[-1].open("rb+") as file:
            file.truncate(chance.randint(min(size, flushed.get(logs[-1].name, 0)), size))


def found_in(directory: Path, expected: Mapping[int, object]) -> int:
    """The commit that a start finds, all of it and nothing else."""
    committing = Committing(directory, IDS)
    try:
        assert committing.found() == expected[committing.commits]
        return committing.commits
    finally:
        committing.store.close()


@pytest.mark.parametrize("cut", [False, True], ids=["killed", "log_cut_short"])
def test_whenever_it_is_killed_a_start_finds_the_last_commit(
    expected: Mapping[int, object], tmp_path: Path, *, cut: bool
) -> None:
    chance = Random(f"lives {cut}")
    found: list[int] = []
    number, said = 0, Said(0, {})
    for _ in range(LIVES):
        directory = tmp_path / f"state-{number}"
        said = killed(directory, chance, said)
        if cut:
            cut_short(directory, said.logs, chance)
        found.append(found_in(directory, expected))
        assert said.commit <= found[-1] <= said.commit + 1
        said = Said(found[-1], {path.name: path.stat().st_size for path in directory.glob("*.log")})
        if found[-1] == COMMITS:
            shutil.rmtree(directory)
            number, said = number + 1, Said(0, {})
    assert len(set(found)) > LIVES // 4
