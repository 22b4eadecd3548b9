"""Cost of comparing first and last predictions (`join.conflicts: both`), beside the same outcomes without.

    python -m tests.bench.revisions

Outcomes as the join row by row gives them, an object each, every third of them revised; default estimators
with and without the register, in one run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from streamwatch.core.estimators.registers.revisions import RevisionsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import MonitorsSpec

OUTCOMES = 5_000
ROUNDS = 20


def outcomes(seed: int) -> list[Outcome]:
    """Outcomes of ten models that took up to two weeks."""
    rng = np.random.default_rng(seed)
    models, truths, firsts, lasts = (rng.integers(0, most, OUTCOMES).tolist() for most in (10, 2, 2, 6))
    delays = rng.integers(0, 14 * 86_400_000, OUTCOMES).tolist()
    return [
        Outcome(f"m{model}", "ab"[truth], "ab"[first], i, delay, last_class="ab"[last] if last < 2 else None)
        for i, (model, truth, first, last, delay) in enumerate(
            zip(models, truths, firsts, lasts, delays, strict=True)
        )
    ]


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
    batches = [outcomes(seed) for seed in range(ROUNDS)]
    spec = replace(MonitorsSpec(), max_models=10)
    costs: dict[str, float] = {}
    for name, registers in (("without", ()), ("with", (RevisionsSpec(),))):
        estimators = EstimatorSet(replace(spec, registers=registers))
        estimators.fold(batches[0])
        costs[name] = least(lambda e=estimators: [e.fold(batch) for batch in batches])
    without, beside = (1e6 * costs[name] / (OUTCOMES * ROUNDS) for name in ("without", "with"))
    print(
        f"{without:.2f} µs an outcome, {beside:.2f} with the register: {beside - without:.2f} µs more, "
        f"{beside / without:.2f} times"
    )


if __name__ == "__main__":
    main()
