"""Cold runs in RocksDB are what they are in memory, and after a crash what the last commit made them."""

from __future__ import annotations

import time
from contextlib import suppress
from random import Random
from threading import Thread

import numpy as np
import pytest

from streamwatch.core.join.cold.block import PACKED_ENTRY
from streamwatch.core.join.cold.contents import ColdEntries
from streamwatch.core.join.cold.store import ENTRIES, ColdSpec, key_of
from streamwatch.edge.stores.kind import StateDamaged
from streamwatch.edge.stores.rocksdb.database import COLD_RUNS
from streamwatch.edge.stores.rocksdb.store import RocksRuns
from tests.core.join.cold.cold_model import SMALL, array_of
from tests.edge.stores.rocksdb.cold_steps import OnDisk, opened
from tests.edge.stores.rocksdb.open_copy import copy_while_open
from tests.tiers import by_tier

SEEDS = by_tier(fast=2, default=8, everything=200)
STEPS = 100


class LogCutShort(OnDisk):
    """Of the write-ahead log only what was flushed is sure to survive; a cut leaves some of the rest."""

    def __init__(self, chance, directory):
        self.flushed = {}
        super().__init__(chance, directory)

    def commit_to_store(self, changes):
        super().commit_to_store(changes)
        self.flushed = {path.name: path.stat().st_size for path in self.directory.glob("*.log")}

    def open_store(self):
        if self.database is None:
            return super().open_store()
        # as the files are while it is open: closing would write what a crash does not
        copy = copy_while_open(self.directory, self.directory.with_name(f"{self.directory.name}+"))
        self.database.close()
        self.database = None
        self.directory = copy
        for path in copy.glob("*.log"):
            size = path.stat().st_size
            flushed = min(size, self.flushed.get(path.name, 0))
            with path.open("rb+") as file:
                file.truncate(self.chance.randint(flushed, size))
        return super().open_store()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [OnDisk, LogCutShort])
def test_any_sequence_of_steps_and_crashes_gives_what_a_list_gives(kind, tmp_path):
    seen = 0
    for seed in range(SEEDS):
        steps = kind(Random(seed), tmp_path / f"state-{seed}")
        steps.walk(STEPS)
        steps.database.close()
        seen += steps.seen["entries lost"]
    assert seen > 0


@pytest.mark.slow
def test_runs_are_merged_in_a_thread_while_others_are_looked_up_and_taken_out(tmp_path):
    steps = OnDisk(Random(3), tmp_path / "state")
    merges = 0
    for _ in range(40):
        for _ in range(3):
            steps.evict()
        steps.plan_merge()
        if steps.planned is None:
            continue
        merges += 1
        thread = Thread(target=steps.planned.run)
        thread.start()
        steps.take_out()
        steps.evict()
        steps.check()
        steps.commit()
        thread.join()
        merge, steps.planned = steps.planned, None
        steps.cold.finish_merge(merge)
        steps.check()
    steps.database.close()
    assert merges > 10


def test_what_was_never_committed_is_removed_at_the_next_start(tmp_path):
    steps = OnDisk(Random(1), tmp_path / "state")
    steps.cold.evict(0, array_of(steps.new_entries(0, 50)))
    steps.open_store()
    ColdEntries(RocksRuns(steps.database), SMALL)
    assert list(steps.database.items(COLD_RUNS)) == []
    steps.database.close()


def bytes_of_files(directory):
    """Bytes of the tables; a thread of RocksDB removes those it has merged, also while this looks."""
    total = 0
    for path in directory.glob("*.sst"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def test_room_of_removed_runs_is_reclaimed_once_they_are_a_quarter_of_the_others(tmp_path):
    directory = tmp_path / "state"
    database = opened(directory)
    runs = RocksRuns(database)
    cold = ColdEntries(runs, ColdSpec(fanout=2))
    random = np.random.default_rng(1)
    for first in (0, 60_000):
        entries = np.zeros(60_000, PACKED_ENTRY)
        entries["low"], entries["high"] = random.integers(0, 2**64 - 1, (2, 60_000), dtype=np.uint64)
        entries["arrival"] = first + np.arange(60_000)
        cold.evict(0, entries)
    merge = cold.plan_merge()
    merge.run()
    cold.finish_merge(merge)
    changes = cold.changes()
    assert changes.removed_entries == cold.entries == 120_000
    with database.batch() as batch:
        runs.write_changes(changes, batch)
    assert runs.reclaimable(4 * 120_000 + 4) == []
    database._families[COLD_RUNS].flush()
    before = bytes_of_files(directory)
    ranges = runs.reclaimable(cold.entries)
    assert ranges == [(key_of(ENTRIES, 0), key_of(ENTRIES, 2))], "two runs side by side"
    runs.reclaim(ranges)
    assert runs.reclaimable(cold.entries) == []
    deadline = time.monotonic() + 60
    while bytes_of_files(directory) >= 0.7 * before and time.monotonic() < deadline:
        time.sleep(0.01)  # the files are unlinked in the thread of RocksDB
    assert bytes_of_files(directory) < 0.7 * before
    found = cold.look_up(entries["low"][:500].copy(), entries["high"][:500].copy())
    assert found.entries.tolist() == entries[:500].tolist()
    database.close()


def test_look_ups_leave_nothing_of_the_runs_in_memory_but_what_finds_a_block(tmp_path):
    directory = tmp_path / "state"
    database = opened(directory)
    runs = RocksRuns(database)
    cold = ColdEntries(runs)
    entries = np.zeros(300_000, PACKED_ENTRY)
    halves = np.random.default_rng(1).integers(0, 2**64 - 1, (2, 300_000), dtype=np.uint64)
    entries["low"], entries["high"] = halves
    entries["arrival"] = np.arange(300_000)
    cold.evict(0, entries)
    database._families[COLD_RUNS].flush()
    before = database.figure("meta", "block-cache-usage")
    assert len(cold.look_up(*halves).entries) == 300_000
    assert database.figure("meta", "block-cache-usage") <= before
    assert 0 < database.figure(COLD_RUNS, "estimate-table-readers-mem") < 0.2 * 300_000
    database.close()


def read_all(directory):
    """All blocks there are."""
    database = opened(directory)
    try:
        return list(database.items(COLD_RUNS, key_of(ENTRIES, 0)))
    finally:
        database.close()


def test_damage_of_a_file_is_named(tmp_path):
    steps = OnDisk(Random(1), tmp_path / "state")
    steps.cold.evict(0, array_of(steps.new_entries(0, 5_000)))
    steps.commit()
    steps.database.compact()
    steps.database.close()
    for path in steps.directory.glob("*.sst"):
        data = bytearray(path.read_bytes())
        for at in range(len(data) // 8, len(data) // 2, 512):
            data[at] ^= 1
        path.write_bytes(data)
    with pytest.raises(StateDamaged, match=r"the state is damaged: .*sst"):
        read_all(steps.directory)
