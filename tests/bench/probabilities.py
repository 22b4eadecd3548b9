"""What measures of probabilities add to evaluation, as CPU in one run.

python -m tests.bench.probabilities [outcomes]

Columns without scores, in which the register has nothing to do, and outcomes with scores of two classes, each
with and without it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from streamwatch.core.estimators.registers.probabilities import ProbabilitiesSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from streamwatch.core.specs import MonitorsSpec

PART = 4_096
WITHOUT = MonitorsSpec(max_models=100)
WITH = replace(WITHOUT, registers=(ProbabilitiesSpec(),))


def columns(count: int) -> OutcomeBatch:
    """Outcomes of a hundred models, half of them right."""
    rng = np.random.default_rng(1)
    records = np.zeros(count, OUTCOME)
    for name, most in (("true_class", 2), ("predicted_class", 2), ("model", 100)):
        records[name] = rng.integers(most, size=count)
    records["label_at_prediction"] = records["scores"] = -1
    return OutcomeBatch(records, [f"model-{m}" for m in range(100)], ["a", "b"])


def scored(count: int) -> Sequence[Outcome]:
    """Outcomes of one model with scores."""
    scores = np.random.default_rng(2).random(count).tolist()
    return [Outcome("m", "a", "ab"[s < 0.5], i, 0, scores={"a": s, "b": 1 - s}) for i, s in enumerate(scores)]


def nanoseconds(spec: MonitorsSpec, outcomes: Sequence[Outcome]) -> float:
    """CPU an outcome takes, the least of three runs."""
    runs: list[float] = []
    for _ in range(3):
        estimators = EstimatorSet(spec)
        estimators.fold(outcomes[:PART])
        began = time.process_time()
        for start in range(0, len(outcomes), PART):
            estimators.fold(outcomes[start : start + PART])
        runs.append((time.process_time() - began) / len(outcomes) * 1e9)
    return min(runs)


def main(count: int) -> None:
    """Say both ratios."""
    cases: dict[str, Callable[[int], Sequence[Outcome]]] = {
        "without scores": columns,
        "with scores": lambda n: scored(n // 10),
    }
    for name, made in cases.items():
        outcomes = made(count)
        plain, more = nanoseconds(WITHOUT, outcomes), nanoseconds(WITH, outcomes)
        sys.stdout.write(
            f"{name}: {plain:.0f} ns an outcome, {more:.0f} with the register ({more / plain:.2f})\n"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
