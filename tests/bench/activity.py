"""What the join's part of a commit and of a report costs with many models, most of which are as before.

    python -m tests.bench.activity [--models 10000] [--rounds 10]

CPU is the lowest of all rounds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.events import Label, Prediction
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.edge.keys import digest_bytes


def filled(models: int) -> Pipeline:
    """Join and estimators after three predictions of each model, two of them with labels."""
    monitors = EstimatorSet(MonitorsSpec(max_models=models))
    pipeline = Pipeline(JoinSpec(max_models=models, max_pending=10 * models), monitors, digest_bytes)
    numbers = range(3 * models)
    pipeline.advance(
        [Prediction(f"id-{n}", f"model-{n % models:05}", "ab"[n % 3 == 0], 1_000 + n) for n in numbers]
    )
    reached = 1_000 + len(numbers)
    pipeline.advance([Label(f"id-{n}", "ab"[n % 2], reached + n) for n in range(2 * models)])
    return pipeline


def milliseconds(work: Callable[[], object], rounds: int) -> float:
    """CPU of the quickest round."""
    took: list[float] = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return 1e3 * min(took)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    pipeline = filled(arguments.models)
    print(f"the section 'pipeline' of {arguments.models:,} models: {len(pipeline.snapshot()):,} bytes")
    parts = {
        "encoded for a commit": pipeline.snapshot,
        "activity of models, for a report": pipeline.join.holdings,
        "series of the join": pipeline.join_families,
        "caveats": pipeline.caveats,
    }
    for name, work in parts.items():
        print(f"{name}: {milliseconds(work, arguments.rounds):.2f} ms")


if __name__ == "__main__":
    main()
