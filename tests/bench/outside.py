"""CPU, memory and disk of a compiled join most of whose predictions lie outside its table, over RocksDB.

    python -m tests.bench.outside [--ids 1000000] [--models 3] [--table 200000]

Predictions of new ids are joined and committed, then labels of ids drawn by chance, nearly all of them cold;
beside it the same steps of a join that has everything in its table.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from streamwatch.core.join.cold.overflow import Overflow, OverflowSpec
from streamwatch.core.join.join import DONE, LOAD_OLDEST, CompiledJoin
from streamwatch.core.join.layout import LABEL, NO_TIME, PREDICTION, ROW
from streamwatch.core.join.warming import warm_up_commits, warm_up_join, warm_up_overflow
from streamwatch.core.ports import CommitBatch
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.keys import bytes_of_keys
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from streamwatch.edge.stores.rocksdb.database import size_on_disk

BATCH, PER_COMMIT = 4_096, 20
HORIZON_MS = 10**12
LABELS = 60_000
START_MS = 1_700_000_000_000
LIMIT = 10**9
JOIN = JoinSpec(HORIZON_MS, HORIZON_MS, HORIZON_MS, LIMIT, LIMIT, LIMIT)


def resident_megabytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


class Measured:
    """A join over a directory, and the CPU it took."""

    def __init__(self, directory, models, table):
        self.store = RocksStore.open(RocksSpec(directory, HORIZON_MS, HORIZON_MS))
        self.join = CompiledJoin(JOIN, bytes_of_keys, Overflow(self.store.load().runs, OverflowSpec(table)))
        self.models = [self.join.models[f"m{number}"] for number in range(models)]
        self.shown = self.join.classes["x"]
        self.commits = self.batches = 0
        self.merging = 0.0
        """CPU seconds of merges so far, the threads of RocksDB included."""

    def feed(self, rows):
        """CPU seconds of one batch, with its share of commits and merges."""
        began = time.process_time()
        for work in self.join.prepare(rows):
            work()
        at, why = 0, -1
        while why != DONE:
            at, why = self.join.take(rows, at)
            list(self.join.take_outcomes(0))
            if why == LOAD_OLDEST:
                for work in self.join.load_oldest(rows, at):
                    work()
        for work in self.join.finish():
            work()
        self.batches += 1
        if self.batches % PER_COMMIT == 0:
            self.commit()
        return time.process_time() - began

    def commit(self):
        began = time.process_time()
        while (merge := self.join.plan_merge()) is not None:
            merge.run()
            self.join.finish_merge(merge)
        self.merging += time.process_time() - began
        self.commits += 1
        columns, runs = self.join.changes(self.commits), self.join.run_changes()
        self.store.commit(CommitBatch(columns=columns, runs=runs))
        self.store.flush()

    def rows(self, ids, side):
        """Predictions of every model, or a label for all of them, of each id."""
        each = len(self.models) if side == PREDICTION else 1
        rows = np.zeros(len(ids) * each, ROW)
        rows["low"], rows["high"] = np.repeat(ids, each, axis=0).T
        rows["record_ms"], rows["timestamp_ms"] = START_MS + self.batches, NO_TIME
        rows["model"] = np.tile(self.models, len(ids)) if side == PREDICTION else -1
        rows["class"], rows["scores"], rows["side"] = self.shown, -1, side
        self.join._with_room(rows)
        return rows

    def predict(self, ids):
        step = BATCH // len(self.models)
        return sum(
            self.feed(self.rows(ids[start : start + step], PREDICTION)) for start in range(0, len(ids), step)
        )

    def label(self, ids):
        return sum(
            self.feed(self.rows(ids[start : start + BATCH], LABEL)) for start in range(0, len(ids), BATCH)
        )


def measure(directory, arguments, table):
    before = resident_megabytes()
    measured = Measured(directory, arguments.models, table)
    ids = np.random.default_rng(1).integers(0, 2**64 - 1, (arguments.ids, 2), dtype=np.uint64)
    predictions = arguments.ids * arguments.models
    predicted = measured.predict(ids) / predictions
    measured.commit()
    outside = measured.join.entries_outside
    size = size_on_disk(directory) / predictions
    resident = resident_megabytes() - before - ids.nbytes / 1e6
    chosen = np.random.default_rng(2).permutation(ids)[:LABELS]
    labelled = measured.label(chosen) / len(chosen)
    assert int(measured.join.counters.predictions_resolved) == len(chosen) * arguments.models
    print(f"table of {table:,}: {outside:,} of {predictions:,} outside")
    print(f"  memory     {resident:8.0f} MB more resident")
    print(f"  disk       {size:8.1f} B a prediction")
    print(f"  prediction {predicted * 1e6:8.2f} µs")
    print(f"  label      {labelled * 1e6:8.2f} µs, of {arguments.models} models each")
    measured.store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", type=int, default=1_000_000)
    parser.add_argument("--models", type=int, default=3)
    parser.add_argument("--table", type=int, default=200_000)
    arguments = parser.parse_args()
    warm_up_join()
    warm_up_commits()
    warm_up_overflow()
    with tempfile.TemporaryDirectory() as directory:
        measure(Path(directory) / "cold", arguments, arguments.table)
        measure(Path(directory) / "hot", arguments, 10**9)


if __name__ == "__main__":
    main()
