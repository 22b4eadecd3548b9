"""A hundred million predictions that wait, in a compiled join over RocksDB: memory, disk and CPU.

    python -m tests.bench.pending [--predictions 100000000] [--json pending.json]

Every id has predictions of three models, and the table is that of the default settings. As what waits passes
.75, 3, 10, 30 and 100 million, labels of ids drawn by chance are joined, nearly all of them cold; the CPU of
a merge that falls due among so few is not counted. The bench keeps no id, so what is resident is the process
with its join and its store. `pending_picture` draws it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from streamwatch.core.join.warming import warm_up_commits, warm_up_join, warm_up_overflow
from streamwatch.core.specs import JoinSpec, table_entries
from streamwatch.edge.stores.rocksdb.database import size_on_disk
from streamwatch.settings.sections import StateSection
from tests.bench.outside import Measured, resident_megabytes

MODELS = 3
IDS_A_STEP = 250_000
LABELS = 20_000
TABLE = table_entries(1_000_000 * StateSection().join_memory_megabytes, JoinSpec())
MARKS = tuple(mark * MODELS * IDS_A_STEP for mark in (1, 4, 13, 40, 133))
COLUMNS = ("millions", "resident_megabytes", "disk_bytes", "prediction_microseconds", "label_microseconds")


def ids_of(step: int) -> np.ndarray:
    """The ids of one step, the same at every call."""
    return np.random.default_rng(step).integers(0, 2**64 - 1, (IDS_A_STEP, 2), dtype=np.uint64)


def drawn(steps: int) -> np.ndarray:
    """Ids of all steps so far, as many of each, none of which has a label."""
    each = -(-LABELS // steps)
    chosen = [
        ids_of(step)[np.random.default_rng((steps, step)).permutation(IDS_A_STEP)[:each]]
        for step in range(steps)
    ]
    return np.random.default_rng(steps).permutation(np.concatenate(chosen))[:LABELS]


def grown(directory: Path, predictions: int) -> list[dict[str, float]]:
    """A row after every step: what is resident and on disk, and the CPU of a prediction and of a label."""
    measured = Measured(directory, MODELS, TABLE)
    found: list[dict[str, float]] = []
    began = time.monotonic()
    for step in range(max(1, predictions // (MODELS * IDS_A_STEP))):
        cpu = measured.predict(ids_of(step)) / (MODELS * IDS_A_STEP)
        waiting = (step + 1) * MODELS * IDS_A_STEP
        row = (
            waiting / 1e6,
            resident_megabytes(),
            size_on_disk(directory) / waiting,
            1e6 * cpu,
            float("nan"),
        )
        found.append(dict(zip(COLUMNS, row, strict=True)))
        if waiting in MARKS:
            measured.commit()
            before = measured.merging
            labels = measured.label(drawn(step + 1)) - (measured.merging - before)
            found[-1]["label_microseconds"] = 1e6 * labels / LABELS
            said = "  ".join(f"{name} {value:,.1f}" for name, value in found[-1].items())
            print(f"{said}  after {time.monotonic() - began:.0f} s", flush=True)
    measured.store.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--predictions", type=int, default=100_000_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    warm_up_join()
    warm_up_commits()
    warm_up_overflow()
    with tempfile.TemporaryDirectory() as directory:
        found = grown(Path(directory) / "cold", arguments.predictions)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
