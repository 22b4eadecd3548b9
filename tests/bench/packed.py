"""What commits of a compiled join cost: CPU per event, bytes per entry on disk, seconds of a start.

    python -m tests.bench.packed [EVENTS]

Predictions of three models, 5,000 a commit; then a label of each. Beside it a value per id, as commits are
written row by row. CPU is that of the process.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from streamwatch.core.commit.batch import CommitBatch
from streamwatch.core.join.compiled.warming import warm_up_join
from streamwatch.core.pipelines.column_pipeline import ColumnPipeline
from streamwatch.core.pipelines.pipeline import Pipeline
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.keys import bytes_of_keys
from streamwatch.edge.stores.rocksdb import ColumnStore, RocksSpec, RocksStore
from tests.core.join.join_stream import RecordingEstimatorSet, label, predict
from tests.edge.stores.rocksdb.stream import digested

SPEC = JoinSpec()
BATCH = 5_000


class Forgetful(RecordingEstimatorSet):
    """Estimators that cost nothing."""

    def fold(self, outcomes):
        del outcomes
        return []


def opened(directory: Path, *, columns: bool):
    spec = RocksSpec(directory, SPEC.horizon_ms, SPEC.early_horizon_ms)
    if columns:
        return ColumnPipeline(SPEC, Forgetful(), bytes_of_keys), ColumnStore.open(spec)
    return Pipeline(SPEC, Forgetful()), RocksStore.open(spec)


def measure(number: int, *, columns: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pipeline, store = opened(Path(folder) / "state", columns=columns)
        family = "columns" if columns else "entries"
        spent = {"predictions": 0.0, "labels": 0.0}
        longest = 0.0
        commit = 0
        for kind in ("predictions", "labels"):
            for start in range(0, number, BATCH):
                events = digested(an_event(kind, n) for n in range(start, start + BATCH))
                store.apply(pipeline.advance(events, store.fetch(pipeline.read_set(events))))
                began = time.process_time()
                commit += 1
                changed = pipeline.changes(commit) if columns else {}
                store.commit(CommitBatch({"pipeline": pipeline.snapshot()}, columns=changed))
                took = time.process_time() - began
                spent[kind] += took
                longest = max(longest, took)
                store.flush()
            store._database.compact()
            size = store._database.figure(family, "live-sst-files-size")
            if not columns:
                size += sum(
                    store._database.figure(name, "live-sst-files-size") for name in ("expiry", "dedup")
                )
            print(
                f"  {kind}: {1e6 * spent[kind] / number:.2f} µs an event, {size / number:.1f} B each on disk"
            )
        print(f"  the longest commit: {1e3 * longest:.1f} ms")
        if columns:
            print(f"  {pipeline._join.nbytes / number:.0f} B each in memory, without places")
        store.close()
        began = time.process_time()
        pipeline, store = opened(Path(folder) / "state", columns=columns)
        saved = store.load()
        if columns:
            pipeline.restore(saved.sections["pipeline"], saved.columns)
        else:
            pipeline.restore(saved.sections["pipeline"])
        print(f"  a start: {time.process_time() - began:.2f} s of CPU")
        store.close()


def an_event(kind: str, n: int):
    if kind == "predictions":
        return predict(f"{n:032x}", "yes", 10**12 + n // 5, f"model-{n % 3}")
    return label(f"{n:032x}", "no", 10**12 + 10_000_000 + n // 5, f"model-{n % 3}")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    warm_up_join()
    for chosen in (True, False):
        print("packed commits" if chosen else "a value per id")
        measure(count, columns=chosen)
