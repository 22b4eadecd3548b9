"""What commits of a compiled join cost: CPU per event, bytes per entry on disk, seconds of a start.

    python -m tests.bench.packed [EVENTS]

Predictions of three models, 5,000 a commit; then a label of each. CPU is that of the process.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from streamwatch.core.join.warming import warm_up_join
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.ports import CommitBatch
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.keys import bytes_of_keys
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from tests.core.join.join_stream import RecordingEstimatorSet, label, predict
from tests.edge.stores.rocksdb.stream import digested

SPEC = JoinSpec()
BATCH = 5_000


class Forgetful(RecordingEstimatorSet):
    """Estimators that cost nothing."""

    def fold(self, outcomes):
        del outcomes
        return []


def opened(directory: Path):
    return Pipeline(SPEC, Forgetful(), bytes_of_keys), RocksStore.open(RocksSpec(directory))


def measure(number: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pipeline, store = opened(Path(folder) / "state")
        spent = {"predictions": 0.0, "labels": 0.0}
        longest = 0.0
        commit = 0
        for kind in ("predictions", "labels"):
            for start in range(0, number, BATCH):
                pipeline.advance(digested(an_event(kind, n) for n in range(start, start + BATCH)))
                began = time.process_time()
                commit += 1
                changed = pipeline.join.changes(commit)
                store.commit(CommitBatch({"pipeline": pipeline.snapshot()}, columns=changed))
                took = time.process_time() - began
                spent[kind] += took
                longest = max(longest, took)
                store.flush()
            store._database.compact()
            size = store._database.figure("columns", "live-sst-files-size")
            print(
                f"  {kind}: {1e6 * spent[kind] / number:.2f} µs an event, {size / number:.1f} B each on disk"
            )
        print(f"  the longest commit: {1e3 * longest:.1f} ms")
        print(f"  {pipeline.join.nbytes / number:.0f} B each in memory, without places")
        store.close()
        began = time.process_time()
        pipeline, store = opened(Path(folder) / "state")
        saved = store.load()
        pipeline.restore(saved.sections["pipeline"], saved.columns)
        print(f"  a start: {time.process_time() - began:.2f} s of CPU")
        store.close()


def an_event(kind: str, n: int):
    if kind == "predictions":
        return predict(f"{n:032x}", "yes", 10**12 + n // 5, f"model-{n % 3}")
    return label(f"{n:032x}", "no", 10**12 + 10_000_000 + n // 5, f"model-{n % 3}")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    warm_up_join()
    measure(count)
