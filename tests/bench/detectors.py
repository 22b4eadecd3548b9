"""What every detector adds to an outcome, beside river's where it has one, in one run.

    python -m tests.bench.detectors            (a minute, and the compiler the first time)

The kernel folds batches of 1,000 outcomes of one model, 80 % right, with no estimator but the detector; what
it takes without any is taken off. Rounds alternate, and the best of each counts. CPU time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from river import drift

from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import MonitorsSpec

BATCH, BATCHES, ROUNDS = 1_000, 200, 5
RIVER_OUTCOMES = 5_000
RIVER: dict[str, Callable[[], object]] = {
    "page_hinkley": drift.PageHinkley,
    "adwin_drift": drift.ADWIN,
    "ddm": drift.binary.DDM,
    "hddm_a": drift.binary.HDDMA,
    "hddm_w": drift.binary.HDDMW,
    "kswin": lambda: drift.KSWIN(seed=1),
}


def table_of(*detectors: object) -> ModelTable:
    """One model of two classes with these detectors and nothing else."""
    table = ModelTable(
        MonitorsSpec((), detectors, (), max_models=1, max_classes=2, shadow_max_classes=0, opponents=())
    )
    table.add_model()
    return table


def kernel_round(table: ModelTable, losses: np.ndarray) -> float:
    """ns of CPU per outcome."""
    rows = np.zeros(BATCH, np.int32)
    began = time.process_time_ns()
    for at in range(0, len(losses), BATCH):
        table.fold(rows, rows, losses[at : at + BATCH])
    return (time.process_time_ns() - began) / len(losses)


def river_round(detector: object, losses: list[int]) -> float:
    """The same of river."""
    began = time.process_time_ns()
    for loss in losses:
        detector.update(loss)
    return (time.process_time_ns() - began) / len(losses)


def main() -> None:
    """Print a line for every kind."""
    losses = (np.random.default_rng(7).random(BATCH * BATCHES) < 0.2).astype(np.int32)
    bare = table_of()
    print(f"{'detector':>14} {'bytes':>6} {'kernel ns':>10} {'river ns':>9} {'ratio':>6}")
    for kind in KINDS:
        table = table_of(kind.spec())
        river = RIVER[kind.name]() if kind.name in RIVER else None
        kernel_round(table, losses)
        ours, without, theirs = [], [], []
        for _ in range(ROUNDS):
            ours.append(kernel_round(table, losses))
            without.append(kernel_round(bare, losses))
            if river is not None:
                theirs.append(river_round(river, losses[:RIVER_OUTCOMES].tolist()))
        added = max(min(ours) - min(without), 0.1)
        beside = f"{min(theirs):>9,.0f} {min(theirs) / added:>6,.0f}" if theirs else f"{'-':>9} {'-':>6}"
        print(f"{kind.name:>14} {kind.state.itemsize:>6} {added:>10.1f} {beside}")


if __name__ == "__main__":
    main()
