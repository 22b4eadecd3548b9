"""A process with cold runs is killed, or the power fails: its runs are those of its last commit, whole."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random

import numpy as np
import pytest

from streamwatch.core.join.cold.contents import ColdEntries
from streamwatch.edge.stores.rocksdb.store import RocksRuns
from tests.core.join.cold.cold_model import IDS, SMALL, rows_of
from tests.edge.stores.rocksdb.cold_steps import COMMITS, Undisturbed, opened
from tests.faults.disk.cold_writer import take_steps
from tests.faults.disk.volume import volume
from tests.faults.disk.writing import Writing, running
from tests.tiers import number

KILLS = number("STREAMWATCH_KILLS", default=3, everything=100)
CUTS = number("STREAMWATCH_POWER_CUTS", default=3, everything=40)
MOST_COMMITS, LATEST_SECONDS = 60, 0.02


def writing(directory: Path, seed: int) -> AbstractContextManager[Writing]:
    """A process that takes steps with cold entries there."""
    return running(take_steps, directory, seed)


def commit_found(directory: Path, seed: int) -> int:
    """The commit that an opening finds: all that lived at it, and nothing else."""
    database = opened(directory)
    try:
        commit = int.from_bytes(database.get("meta", COMMITS) or b"", "big")
        cold = ColdEntries(RocksRuns(database), SMALL)
        model = Undisturbed(Random(seed)).until(commit)
        cold.floor = model.floor
        low, high = np.array(IDS, np.uint64).T.copy()
        found = cold.look_up(low, high)
        expected = [entry.row for id_ in IDS for entry in model.living() if entry.id == id_]
        assert rows_of(found.entries) == expected
    finally:
        database.close()
    return commit


def test_a_killed_process_leaves_the_runs_of_its_last_commit(tmp_path: Path) -> None:
    for seed in range(KILLS):
        chance = Random(seed)
        directory = tmp_path / str(seed)
        with writing(directory, seed) as writer:
            writer.until("durable", chance.randint(1, MOST_COMMITS))
            time.sleep(chance.uniform(0.0, LATEST_SECONDS))
            writer.kill()
        found = commit_found(directory, seed)
        assert writer.kept(found), (writer.promised, writer.last, found)


@pytest.mark.real("loop mount")
def test_a_power_cut_leaves_the_runs_of_a_commit_that_was_flushed(tmp_path: Path) -> None:
    with volume(tmp_path) as disk:
        for seed in range(CUTS):
            chance = Random(seed)
            directory = disk.path / str(seed)
            with writing(directory, seed) as writer:
                writer.until("durable", chance.randint(1, MOST_COMMITS))
                time.sleep(chance.uniform(0.0, LATEST_SECONDS))
                writer.lose_power(disk)
            disk.unmount()
            disk.mount()
            found = commit_found(directory, seed)
            assert writer.kept(found), (seed, writer.promised, writer.last, found)
