"""What cold entries cost: on disk, in memory, to look up, to take, to merge; beside plain RocksDB gets.

    python -m tests.bench.cold [--entries 1000000] [--models 3]

Every id was predicted by every model, in order of time. Plain RocksDB has one value per id with all its
entries, in the family that holds the values of the join, and is asked for the same ids, in the same batches,
in turn; nobody decodes what it gives. CPU of the process with RocksDB's threads, the lowest of the rounds.
Only ratios travel between machines.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from streamwatch.core.join.cold.block import PACKED_ENTRY
from streamwatch.core.join.cold.contents import ColdEntries
from streamwatch.core.join.cold.store import ColdSpec, MemoryRuns
from streamwatch.core.join.counters import PENDING
from streamwatch.edge.stores.rocksdb.database import MEBIBYTE, Database, size_on_disk
from streamwatch.edge.stores.rocksdb.store import RocksRuns

BATCH = 500
ROUNDS = 5
ASKED = 20_000
EVICTED = 32_768
TAKEN = 2**20
WARMING = 300_000
START_MS = 1_700_000_000_000
ENTRIES = "columns"


class Clock:
    """CPU seconds of the process by what they were spent on."""

    def __init__(self):
        self.seconds: dict[str, float] = {}

    def __call__(self, name, step, *arguments):
        began = time.process_time()
        result = step(*arguments)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - began
        return result


def resident_megabytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def predictions(random, first, count, models):
    """So many entries that wait, the ids and models in turn."""
    numbers = np.arange(first, first + count)
    of_id = numbers // models - first // models
    entries = np.zeros(count, PACKED_ENTRY)
    halves = random.integers(0, 2**64 - 1, (of_id[-1] + 1, 2), dtype=np.uint64)[of_id]
    entries["low"], entries["high"] = halves.T
    entries["arrival"] = numbers
    entries["record_ms"] = START_MS + numbers // models
    entries["timestamp_ms"] = entries["record_ms"] - random.integers(0, 1_000, count)
    entries["model"] = numbers % models
    entries["predicted_class"] = random.integers(0, 3, count)
    entries["label_at_prediction"] = random.integers(0, 3, count)
    entries["true_or_scores"] = -1
    entries["state"] = PENDING
    return entries


def everything(entries, models):
    """All entries, in the parts in which they are evicted: whole ids."""
    random = np.random.default_rng(1)
    part = EVICTED // models * models
    for first in range(0, entries, part):
        yield predictions(random, first, part, models)


class Cold:
    """Cold entries over RocksDB, or in memory without a directory."""

    def __init__(self, directory, spec):
        self.directory = directory
        self.database = self.runs = None
        if directory is not None:
            self.database = Database(directory, 64 * MEBIBYTE, 48 * MEBIBYTE)
            self.runs = RocksRuns(self.database)
        self.cold = ColdEntries(self.runs or MemoryRuns(), spec)
        self.clock = Clock()
        self.merged = 0
        self.largest = 0

    def commit(self):
        changes = self.cold.changes()
        if self.database is not None:
            with self.database.batch() as batch:
                self.runs.write_changes(changes, batch)

    def fill(self, parts):
        """Evict entries as a full table does, and merge as it falls due."""
        for entries in parts:
            self.clock("evict", self.cold.evict, 0, entries)
            while (merge := self.clock("merge", self.cold.plan_merge)) is not None:
                self.clock("merge", merge.run)
                self.clock("merge", self.cold.finish_merge, merge)
                self.merged += merge.run_made.manifest.count
                self.commit()
                if self.runs is not None:
                    self.clock("reclaim", self.runs.reclaim, self.runs.reclaimable(self.cold.entries))
            if self.directory is not None:
                self.largest = max(self.largest, size_on_disk(self.directory))
        self.commit()

    def take(self):
        count = min(self.cold.alive(0), TAKEN)
        taking = self.cold.plan_oldest_search(0, count)
        self.clock("take", taking.run)
        assert len(self.clock("take", self.cold.finish_oldest_search, taking).entries) == count
        return count


def plain(directory, parts, models):
    """A family with one value per id."""
    database = Database(directory, 64 * MEBIBYTE, 48 * MEBIBYTE)
    for entries in parts:
        with database.batch() as batch:
            database.into(ENTRIES, batch)
            for start in range(0, len(entries), models):
                own = entries[start : start + models].tobytes()
                batch[own[:16]] = own[16:]
    database.compact()
    return database


def in_turn(ids, questions):
    """Microseconds an id for each of several ways to ask, in batches."""
    best = [np.inf] * len(questions)
    batches = [ids[start : start + BATCH] for start in range(0, len(ids) - BATCH + 1, BATCH)]
    for _ in range(ROUNDS):
        for place, ask in enumerate(questions):
            began = time.process_time()
            for batch in batches:
                ask(batch)
            best[place] = min(best[place], (time.process_time() - began) / len(batches) / BATCH * 1e6)
    return best


def sample_of(arguments):
    every = max(1, arguments.entries // ASKED)
    ids = [part[["low", "high"]][::every] for part in everything(arguments.entries, arguments.models)]
    found = np.concatenate(ids)
    np.random.default_rng(3).shuffle(found)
    return np.stack([found["low"], found["high"]], axis=1)


def say_what_was_built(measured, before):
    cold, seconds = measured.cold, measured.clock.seconds
    entries, merged = cold.alive(0), max(1, measured.merged)
    print(f"{entries:,} entries in {cold.runs} runs; each was merged {merged / entries:.1f} times")
    print(f"evict            {seconds['evict'] / entries * 1e9:8.0f} ns an entry")
    print(f"merge            {seconds.get('merge', 0) / merged * 1e9:8.0f} ns an entry merged")
    print(f"reclaim          {seconds.get('reclaim', 0) / merged * 1e9:8.0f} ns an entry merged")
    print(f"in memory        {cold.nbytes / entries:8.2f} bytes an entry")
    print(f"resident         {resident_megabytes():8.0f} MB, {before:.0f} before")
    now = size_on_disk(measured.directory)
    print(f"on disk          {now / entries:8.1f} bytes an entry, {measured.largest / entries:.1f} at most")
    measured.database.compact()
    print(f"after compaction {size_on_disk(measured.directory) / entries:8.1f} bytes an entry")


def measure(arguments, directory):
    spec = ColdSpec(block_entries=arguments.block_entries)
    warm = Cold(None, spec)
    warm.fill(everything(WARMING, arguments.models))
    warm.take()
    del warm
    before = resident_megabytes()
    measured = Cold(directory / "cold", spec)
    measured.fill(everything(arguments.entries, arguments.models))
    say_what_was_built(measured, before)
    began = time.process_time()
    measured.cold = ColdEntries(measured.runs, spec)
    print(f"opening          {1e3 * (time.process_time() - began):8.1f} ms")
    compare(arguments, directory, measured)
    entries = measured.cold.alive(0)
    taken = measured.take()
    print(f"take {taken:,}   {measured.clock.seconds['take'] / taken * 1e9:8.0f} ns an entry, of {entries:,}")
    measured.database.close()


def compare(arguments, directory, measured):
    database = plain(directory / "plain", everything(arguments.entries, arguments.models), arguments.models)
    size = size_on_disk(directory / "plain") / measured.cold.alive(0)
    print(f"plain RocksDB    {size:8.1f} bytes an entry")

    def look_up(ids):
        measured.cold.look_up(ids[:, 0].copy(), ids[:, 1].copy())

    def get(ids):
        database.get_all(ENTRIES, ids.view("V16").ravel().tolist())

    there = sample_of(arguments)
    strangers = np.random.default_rng(2).integers(0, 2**64 - 1, there.shape, dtype=np.uint64)
    for what, ids in (("there", there), ("not there", strangers)):
        ours, theirs = in_turn(ids, [look_up, get])
        ratio = ours / theirs
        print(f"{what:16} {ours:8.2f} µs a look-up, plain get {theirs:.2f}: {ratio:.2f} of it")
    database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--models", type=int, default=3)
    parser.add_argument("--block-entries", type=int, default=ColdSpec().block_entries)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        measure(arguments, Path(directory))


if __name__ == "__main__":
    main()
