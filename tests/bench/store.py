"""What the durable store costs: per event beside the memory store, with much pending, on disk and to open.

    python -m tests.bench.store [pending in millions]     # default 1

CPU is of fetch, keep and commit only, with a commit every 20,000 events as `run` makes them. Each part runs
in a process of its own, so that its resident memory is its own.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import xxhash

from streamwatch.core.commit.batch import CommitBatch
from streamwatch.core.events import Invalid, Label, Prediction
from streamwatch.core.pipelines.pipeline import Pipeline
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.stores.memory import MemoryStore
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from streamwatch.edge.stores.rocksdb.directory.database import FAMILIES

BATCH = 500
COMMIT = 20_000
WEEK_MS = 7 * 86_400_000
START_MS = 1_750_000_000_000


class NoEstimatorSet:
    """Evaluates nothing: the store is what is measured."""

    def __init__(self):
        self.records_over_limit = {}

    def fold(self, outcomes):
        del outcomes
        return []

    def models(self):
        return []


def key_of(number):
    return xxhash.xxh3_128_digest(b"%d" % number).decode("latin-1")


def resident_megabytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


class Measured:
    """A pipeline over a store, with the CPU time its store takes."""

    def __init__(self, store, join):
        self.store = store
        self.pipeline = Pipeline(join, NoEstimatorSet())
        saved = store.load()
        if saved.commits:
            self.pipeline.restore(saved.sections["pipeline"])
        self.events = self.uncommitted = 0
        self.parts = dict.fromkeys(("fetch", "keep", "commit", "flush"), 0.0)
        self.longest_commit = 0.0
        self.join_seconds = 0.0

    def feed(self, events):
        """Where more falls due at once than is lent, part by part."""
        self.uncommitted += len(events)
        self.events += len(events)
        while events:
            events = events[len(self.take(events).events) :]
        if self.uncommitted >= COMMIT:
            self.commit()

    def take(self, events):
        clock, parts = time.thread_time, self.parts
        read_set = self.pipeline.read_set(events)
        began = clock()
        found = self.store.fetch(read_set)
        fetched = clock()
        step = self.pipeline.advance(events, found)
        advanced = clock()
        self.store.apply(step)
        kept = clock()
        parts["fetch"] += fetched - began
        self.join_seconds += advanced - fetched
        parts["keep"] += kept - advanced
        return step

    def commit(self):
        snapshot = self.pipeline.snapshot()
        began, at = time.thread_time(), time.perf_counter()
        self.store.commit(CommitBatch({"pipeline": snapshot}))
        committed = time.thread_time()
        self.longest_commit = max(self.longest_commit, time.perf_counter() - at)
        self.store.flush()
        self.parts["commit"] += committed - began
        self.parts["flush"] += time.thread_time() - committed
        self.uncommitted = 0

    def told(self, what):
        micro = {name: seconds * 1e6 / self.events for name, seconds in self.parts.items()}
        total = micro["fetch"] + micro["keep"] + micro["commit"]
        micro["join"] = self.join_seconds * 1e6 / self.events
        split = ", ".join(f"{name} {value:.2f}" for name, value in micro.items())
        print(f"{what:42} {total:6.2f} µs per event ({split})")
        longest = self.longest_commit * 1e3
        print(f"  longest commit {longest:.0f} ms; RSS {resident_megabytes():.0f} MB", flush=True)


def rocks(directory, join):
    return RocksSpec(Path(directory), join.horizon_ms, join.early_horizon_ms)


def progress(record_ms):
    """A record that lets time pass."""
    return [Invalid("p", 0, 0, "tick", record_ms)]


def short_delays(measured, pairs, per_second=50_000, delay=5000):
    """Labels come `delay` predictions after theirs."""
    half = BATCH // 2
    for start in range(0, pairs, half):
        record_ms = START_MS + start * 1000 // per_second
        events = []
        for number in range(start, start + half):
            events.append(Prediction(key_of(number), "fraud-v3", "legit", record_ms))
            if number >= delay:
                events.append(Label(key_of(number - delay), "legit", record_ms, "fraud-v3"))
        measured.feed(events + progress(record_ms))


def preload(measured, count, spread_ms):
    """Predictions without labels, evenly over `spread_ms`."""
    for start in range(0, count, BATCH):
        record_ms = START_MS + start * spread_ms // count
        events = [
            Prediction(
                key_of(number), "fraud-v3", "legit" if number % 5 else "fraud", record_ms + number % 997
            )
            for number in range(start, start + BATCH)
        ]
        measured.feed(events + progress(record_ms))


def long_delays(measured, count, spread_ms, pairs):
    """As many predictions as labels, which are for predictions of any age."""
    chance = random.Random(1)
    half = BATCH // 2
    for start in range(count, count + pairs, half):
        record_ms = START_MS + start * spread_ms // count
        events = []
        for number in range(start, start + half):
            events.append(Prediction(key_of(number), "fraud-v3", "legit", record_ms + number % 997))
            events.append(Label(key_of(chance.randrange(start)), "legit", record_ms, "fraud-v3"))
        measured.feed(events + progress(record_ms))


def sizes(store, records):
    store._database.compact()
    parts = {name: store._database.figure(name, "live-sst-files-size") for name in FAMILIES}
    split = ", ".join(f"{name} {parts[name] / records:.1f}" for name in ("entries", "expiry", "dedup"))
    return f"{sum(parts.values()) / records:.1f} bytes on disk each ({split})"


def part(name, directory, count):
    join = JoinSpec(max_pending=10**9, max_dedup_entries=10**9)
    if name == "memory":
        measured = Measured(MemoryStore(), join)
        short_delays(measured, 500_000)
        measured.told("short delays, memory store")
        return
    began = time.perf_counter()
    store = RocksStore.open(rocks(directory, join))
    opened = time.perf_counter() - began
    measured = Measured(store, join)
    restored = time.perf_counter() - began
    if name == "short":
        short_delays(measured, 500_000)
        measured.told("short delays, durable")
        measured.commit()
        print(f"  dedup entries: {sizes(store, 500_000)}")
    elif name == "preload":
        preload(measured, count, WEEK_MS)
        measured.told(f"{count / 1e6:g} M predictions without labels")
        measured.commit()
    elif name == "compact":
        print(f"  pending: {sizes(store, count)}")
    else:
        print(f"  opened in {opened:.2f} s, state restored after {restored:.2f} s")
        long_delays(measured, count, WEEK_MS, 300_000)
        measured.told(f"labels of any age, {count / 1e6:g} M pending")
    store.close()


def main():
    if len(sys.argv) > 2:
        part(sys.argv[1], sys.argv[2], int(sys.argv[3]))
        return
    count = int(float(sys.argv[1] if len(sys.argv) > 1 else 1) * 1e6)
    with tempfile.TemporaryDirectory() as directory:
        for name in ("memory", "short", "preload", "compact", "long"):
            where = f"{directory}/{'short' if name == 'short' else 'long'}"
            subprocess.run([sys.executable, "-m", "tests.bench.store", name, where, str(count)], check=True)


if __name__ == "__main__":
    main()
