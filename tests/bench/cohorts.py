"""What verdicts by cohorts cost an outcome, beside the default estimators without verdicts, in one run.

    python -m tests.bench.cohorts [models …]

Labels come after days (of 40 days of predictions) or after seconds (of 400 seconds), of a horizon of 14 days.
The stream is repeated, each time later, and the first time does not count. Outcomes come in short parts,
and of each part the least of all rounds counts: what else the machine did is in few of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.registers.cohorts import CohortsSpec, bytes_of
from streamwatch.core.estimators.registers.cohorts.register import Cohorts
from streamwatch.core.specs import DAY_MS, MonitorsSpec, UtilitySpec

OUTCOMES = 200_000
PARTS = 40
ROUNDS = 6
GOAL = 1.25


def stream(models: int, span_ms: int, slow_ms: float, fast_ms: float) -> Batch:
    """Outcomes of models in random turn, in the order of labels; hits are labelled slowly."""
    rng = np.random.default_rng(1)
    made_at = 1_700_000_000_000 + np.sort(rng.integers(0, span_ms, OUTCOMES))
    rows = rng.integers(0, models, OUTCOMES)
    label = (rng.random(OUTCOMES) < 0.3).astype(np.int64)
    hit = rng.random(OUTCOMES) < 0.85
    delay = np.minimum(rng.exponential(np.where(hit, slow_ms, fast_ms)), 14 * DAY_MS).astype(np.int64)
    order = np.argsort(made_at + delay, kind="stable")
    at, delay, rows = (made_at + delay)[order], delay[order], rows[order]
    label, hit = label[order], hit[order]
    made = np.zeros(OUTCOMES, np.uint32)
    known = np.full(OUTCOMES, -1)
    by_row = np.argsort(rows, kind="stable")
    for own in np.split(by_row, np.flatnonzero(np.diff(rows[by_row])) + 1):
        made[own] = np.arange(1, len(own) + 1)
        known[own[1:]] = label[own[:-1]]
    predicted = np.where(hit, label, 1 - label)
    return Batch(
        [],
        rows.astype(np.int32),
        label.astype(np.int32),
        predicted.astype(np.int32),
        known.astype(np.int32),
        at,
        delay,
        np.zeros(OUTCOMES, np.bool_),
        made,
        at,
        delay,
    )


def repeated(whole: Batch, number: int) -> list[Batch]:
    """Parts of the stream when it comes for the `number`-th time, after all that came before."""
    span = int(whole.resolved_ms[-1] - whole.resolved_ms[0]) + 1
    counted = np.bincount(whole.rows).astype(np.uint32)
    later = replace(
        whole,
        resolved_ms=whole.resolved_ms + number * span,
        made=whole.made + np.uint32(number) * counted[whole.rows],
    )
    step = OUTCOMES // PARTS
    return [part(later, slice(k * step, (k + 1) * step)) for k in range(PARTS)]


def part(batch: Batch, chosen: slice) -> Batch:
    """Some of a batch."""
    names = [name for name in Batch.__dataclass_fields__ if name not in {"outcomes", "scores"}]
    return replace(batch, **{name: getattr(batch, name)[chosen] for name in names})


def least(whole: Batch, jobs: tuple[Callable[[Batch], object], ...]) -> list[float]:
    """Nanoseconds an outcome of each of some jobs: the sum over parts of the least of all rounds.

    Each part is done by one after the other, as a batch is.
    """
    rounds = np.zeros((ROUNDS, PARTS, len(jobs)))
    for number in range(ROUNDS):
        for k, each in enumerate(repeated(whole, number)):
            for j, do in enumerate(jobs):
                began = time.process_time()
                do(each)
                rounds[number, k, j] = time.process_time() - began
    return (rounds[1:].min(axis=0).sum(axis=0) / OUTCOMES * 1e9).tolist()


def table_of(models: int) -> Callable[[Batch], object]:
    """The default estimators without verdicts."""
    table = ModelTable(replace(MonitorsSpec(), opponents=(), max_models=models))
    for _ in range(models):
        table.add_model(UtilitySpec())
    return lambda b: table.fold(
        b.rows, b.true_class, b.predicted_class, b.label_at_prediction, event_ms=b.event_ms
    )


def main() -> None:
    """Print the figures."""
    print(f"a model of two classes: {bytes_of(2):,} B, of many: {bytes_of(8):,} B, and 8 B for each class")
    for models in [int(each) for each in sys.argv[1:]] or [1, 100, 10_000]:
        for said, span_ms, slow_ms, fast_ms in (
            ("days", 40 * DAY_MS, 3.0 * DAY_MS, 0.5 * DAY_MS),
            ("seconds", 400_000, 5_000.0, 5_000.0),
        ):
            whole = stream(models, span_ms, slow_ms, fast_ms)
            cohorts = Cohorts(CohortsSpec(max_classes=10), models)
            without, own = least(whole, (table_of(models), cohorts.observe))
            print(
                f"{models:6,} models, labels after {said}: {without:.0f} ns without verdicts, "
                f"{own:.0f} ns for cohorts: {1 + own / without:.2f} (goal {GOAL})",
                flush=True,
            )


if __name__ == "__main__":
    main()
