"""CPU of evaluating outcomes by segment beside evaluating the model alone.

    python -m tests.bench.segments [OUTCOMES]

Both read the same outcomes in batches of 1,000 with the default set of estimators, as objects and in columns;
one of them has a segment of 50 values. Rounds alternate; least CPU of each.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome, segments_text
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch
from tests.layouts import DEFAULT

BATCH = 1_000
ROUNDS = 5
VALUES = 50


def main(length: int) -> None:
    """Print CPU per outcome of both, and the ratio."""
    rng = np.random.default_rng(0)
    truth, wrong = rng.integers(0, 4, length), rng.random(length) < 0.15
    values = rng.integers(0, VALUES, length)
    outcomes = [
        Outcome("m", f"c{t}", f"c{(t + w) % 4}", i, 0, segments={"country": f"v{v}"})
        for i, (t, w, v) in enumerate(zip(truth.tolist(), wrong.tolist(), values.tolist(), strict=True))
    ]
    records = np.zeros(length, OUTCOME)
    records["true_class"], records["predicted_class"] = truth, (truth + wrong) % 4
    records["event_ms"], records["scores"] = np.arange(length), SEGMENTS_FROM + values
    texts = [segments_text({"country": f"v{v}"}) for v in range(VALUES)]
    columns = OutcomeBatch(records, ["m"], [f"c{c}" for c in range(4)], segments=texts)
    for form, given in (("objects", outcomes), ("columns", columns)):
        compare(form, given)


def compare(form: str, outcomes: Sequence[Outcome]) -> None:
    """Print CPU per outcome alone and by segment, and the ratio, of outcomes in this form."""
    length = len(outcomes)
    plain = replace(DEFAULT, max_models=4)
    specs = {"alone": plain, "by segment": replace(plain, registers=(SegmentsSpec(),))}
    least = dict.fromkeys(specs, float("inf"))
    for _ in range(ROUNDS):
        for name, spec in specs.items():
            estimators = EstimatorSet(spec)
            estimators.fold(outcomes[:BATCH])
            began = time.process_time()
            for start in range(BATCH, length, BATCH):
                estimators.fold(outcomes[start : start + BATCH])
            least[name] = min(least[name], time.process_time() - began)
    for name, seconds in least.items():
        print(f"{form}, {name}: {seconds / (length - BATCH) * 1e6:.2f} µs an outcome")
    print(f"{form}, by segment / alone: {least['by segment'] / least['alone']:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
