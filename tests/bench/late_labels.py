"""Cost of late labels: of an outcome as it is counted, and of a model as it is reported, in one run.

    python -m tests.bench.late_labels

An outcome of one model, and of 1,000 models in turn, beside a plain `np.add.at` of as many; then the report
of models that have all changed (series, and the details with the search for a change).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from streamwatch.core.estimators.names import Batch, Classes, Slice
from streamwatch.core.estimators.registers.late_labels.register import LateLabels, LateLabelsSpec
from streamwatch.core.specs import DAY_MS

OUTCOMES = 5_000
ROUNDS = 60
MODELS = 1_000
GOAL_NANOSECONDS = 40


def batch_of(models: int, seed: int) -> Batch:
    """Outcomes in the order of labels that take a few hours."""
    rng = np.random.default_rng(seed)
    event_ms = 1_760_000_000_000 + seed * 3_600_000 + np.sort(rng.integers(0, 3_600_000, OUTCOMES))
    delay_ms = rng.exponential(5e7, OUTCOMES).astype(np.int64)
    rows = rng.integers(0, models, OUTCOMES).astype(np.int32)
    truth = rng.integers(0, 2, OUTCOMES).astype(np.int32)
    wrong = (rng.random(OUTCOMES) < 0.1).astype(np.int32)
    return Batch([], rows, truth, truth ^ wrong, truth, event_ms, delay_ms, np.zeros(OUTCOMES, np.bool_))


def least(do: Callable[[], object]) -> float:
    """CPU seconds, the least of three."""
    found = np.inf
    for _ in range(3):
        began = time.process_time()
        do()
        found = min(found, time.process_time() - began)
    return found


def main() -> None:
    """Print the figures."""
    for models in (1, MODELS):
        register = LateLabels(LateLabelsSpec(14 * DAY_MS), MODELS)
        batches = [batch_of(models, seed) for seed in range(ROUNDS)]
        register.observe(batches[0])
        own = least(lambda b=batches, r=register: [r.observe(each) for each in b])
        counts = np.zeros((MODELS, 4_096), np.int32).reshape(-1)
        places = [each.rows * 4_096 + (each.delay_ms % 4_096) for each in batches]
        plain = least(lambda c=counts, p=places: [np.add.at(c, each, 1) for each in p])
        each = 1e9 / (OUTCOMES * ROUNDS)
        print(
            f"{models:>5} models: {own * each:.1f} ns an outcome (goal {GOAL_NANOSECONDS}), "
            f"np.add.at alone {plain * each:.1f}"
        )
    classes = Classes(2)
    classes["a"] = 0
    slices = [Slice(f"m{row}", row, classes) for row in range(100)]

    def changed() -> None:
        register._known[:] = False
        register.series(slices)

    print(f"series of a model that has changed: {least(changed) / 100 * 1e6:.0f} µs")
    details = least(lambda: list(map(register.details(slices), range(100))))
    print(f"details of it: {details / 100 * 1e6:.0f} µs")


if __name__ == "__main__":
    main()
