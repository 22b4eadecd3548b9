"""Bytes of a model, by number of classes and length of its stream, estimator by estimator.

    python -m tests.bench.kernel_memory            (some minutes the first time: each part is compiled)

`held` is what the table says a model occupies (record, ring, class rows, ADWIN blocks), `resident` what the
process grew by per model, which includes what was reserved and touched. Every model has seen all of its
classes.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.warming import warm_up
from streamwatch.core.specs import AdwinSpec, FadingSpec, LandmarkSpec, MonitorsSpec, SlidingSpec
from tests.core.estimators.kernel.footprint import footprint

NOTHING = MonitorsSpec((), (), (), shadow_max_classes=0)
PARTS = {
    "nothing": NOTHING,
    "landmark": replace(NOTHING, forgetting=(LandmarkSpec(),)),
    "fading": replace(NOTHING, forgetting=(FadingSpec(),)),
    "sliding:1000": replace(NOTHING, forgetting=(SlidingSpec(),)),
    "adwin": replace(NOTHING, forgetting=(AdwinSpec(),)),
    "shadow": replace(NOTHING, shadow_max_classes=MonitorsSpec().shadow_max_classes),
    "default set": MonitorsSpec(),
}
MODELS = 100


def resident_bytes() -> int:
    """Memory of this process that is in use."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def bytes_per_model(name: str, classes: int, outcomes: int) -> tuple[float, float]:
    """(held, resident) bytes per model after so many outcomes each."""
    spec = replace(PARTS[name], max_models=MODELS, max_classes=classes)
    warm_up(spec)
    rng = np.random.default_rng(1)
    before = resident_bytes()
    table = ModelTable(spec)
    rows = np.array([table.add_model() for _ in range(MODELS)], np.int32)
    true_class = np.arange(outcomes, dtype=np.int32) % classes
    predicted_class = np.where(rng.random(outcomes) < 0.8, true_class, 0).astype(np.int32)
    for row in rows:
        for start in range(0, outcomes, 10_000):
            part = true_class[start : start + 10_000], predicted_class[start : start + 10_000]
            table.fold(np.full(len(part[0]), row, np.int32), *part)
    grown = (resident_bytes() - before) / MODELS
    return float(np.mean([footprint(table.pools, int(row)) for row in rows])), grown


def main() -> None:
    """Print one row per part, number of classes and length."""
    print(f"{'estimators':>14} {'K':>6} {'outcomes':>10} {'held':>12} {'resident':>12}  bytes per model")
    spawn = get_context("spawn")
    for name, classes, outcomes in product(PARTS, (10, 1_000), (2_000, 100_000)):
        if outcomes == 2_000 or name in {"adwin", "default set"}:
            with ProcessPoolExecutor(1, mp_context=spawn) as process:  # a fresh one, or memory is used again
                held, resident = process.submit(bytes_per_model, name, classes, outcomes).result()
            print(f"{name:>14} {classes:>6} {outcomes:>10,} {held:>12,.0f} {resident:>12,.0f}", flush=True)


if __name__ == "__main__":
    main()
