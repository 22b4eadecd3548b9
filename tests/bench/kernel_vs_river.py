"""Time per outcome of the kernel's full default set beside the same estimators in river, in one run.

    python -m tests.bench.kernel_vs_river            (some minutes; --quick for a first impression)

Outcomes come in batches of 1,000, each of a model drawn at random, 80 % right, over K equally frequent
classes; windows are full before anything is timed. Rounds of the two alternate, so that what else the
machine does meets both; the best round of each counts (the median is beside it). The goals: at least 50
times faster than river at K = 10 and K = 1000, and at most 1.5 times slower per outcome from 1 to 10,000
models and from K = 2 to K = 1000.

The kernel keeps its default set: all agreement totals (hits, label repeats, truth, predicted and agreed per
class) under landmark, fading, sliding and ADWIN forgetting, Page-Hinkley, ADWIN drift, and drift-weighted
accuracy. river does what of it river can: a confusion matrix and one over a rolling window, accuracy and
label repeats as means (plain, rolling, exponentially weighted), Page-Hinkley, ADWIN, and the drift-weighted
accuracy as a weighted mean. It has no faded or adaptive confusion matrix, so two of four mechanisms lack
their per-class totals there.

Ten thousand models drawn at random touch about eight cache lines an outcome that no cache holds any more.
They are asked for ahead, and then what bounds the rate is how many lines a core can have on their way at
once; models that take turns in a fixed order (`in turn`), whose lines the hardware foresees, show the
difference.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.warming import warm_up
from streamwatch.core.specs import MonitorsSpec
from tests.bench.river_estimators import RiverEstimators
from tests.core.estimators.kernel.footprint import footprint

BATCH = 1_000
CLASSES = (2, 10, 100, 1_000)
MODELS = (1, 100, 10_000)


class Stream:
    """Outcomes without end: a long draw, read round and round in batches."""

    def __init__(self, models: int, classes: int, *, in_turn: bool = False) -> None:
        rng = np.random.default_rng(7)
        n = 400 * BATCH
        drawn = np.arange(n) % models if in_turn else rng.integers(0, models, n)
        self.rows = drawn.astype(np.int32)
        self.true_class = rng.integers(0, classes, n).astype(np.int32)
        wrong = rng.integers(0, classes, n).astype(np.int32)
        self.predicted_class = np.where(rng.random(n) < 0.8, self.true_class, wrong).astype(np.int32)
        self.at = 0

    def batch(self, size: int = BATCH) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The next outcomes."""
        if self.at + size > len(self.rows):
            self.at = 0
        part = slice(self.at, self.at + size)
        self.at += size
        return self.rows[part], self.true_class[part], self.predicted_class[part]


def kernel_round(table: ModelTable, stream: Stream, batches: int) -> float:
    """ns per outcome of so many batches."""
    start = time.perf_counter_ns()
    for _ in range(batches):
        table.fold(*stream.batch())
    return (time.perf_counter_ns() - start) / (batches * BATCH)


def river_round(models: list[RiverEstimators], stream: Stream, outcomes: int) -> float:
    """ns per outcome of so many outcomes; reading them from the arrays is not counted."""
    rows, true_class, predicted_class = (part.tolist() for part in stream.batch(outcomes))
    start = time.perf_counter_ns()
    for row, y, y_hat in zip(rows, true_class, predicted_class, strict=True):
        models[row].update(y, y_hat)
    return (time.perf_counter_ns() - start) / outcomes


def compare(
    models: int, classes: int, rounds: int, *, in_turn: bool
) -> tuple[float, float, float, float, float]:
    """(kernel best, kernel median, river best, river median, bytes per model) of one configuration."""
    stream = Stream(models, classes, in_turn=in_turn)
    spec = MonitorsSpec(max_models=models, max_classes=classes)
    table = ModelTable(spec)
    for _ in range(models):
        table.add_model()
    theirs = [RiverEstimators() for _ in range(models)]
    filling = max(20, 1_200 * models // BATCH)
    kernel_round(table, stream, filling)
    # filling ten thousand of river's windows takes minutes; they are timed emptier, which favours river
    river_round(theirs, stream, min(1_200 * models, 120_000))
    kernel, river = [], []
    for _ in range(rounds):
        kernel.append(kernel_round(table, stream, 40))
        river.append(river_round(theirs, stream, 2_000))
    held = [footprint(table.pools, row) for row in range(min(models, 100))]
    return min(kernel), float(np.median(kernel)), min(river), float(np.median(river)), float(np.mean(held))


def verdict(reached: bool) -> str:  # noqa: FBT001
    """A word for a goal."""
    return "reached" if reached else "NOT reached"


def main(show: Callable[[str], None] = print) -> None:
    """Run all configurations and say which goals are reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, up to 100 models")
    quick = parser.parse_args().quick
    rounds = 8 if quick else 25
    warm_up(MonitorsSpec())
    show(
        f"{'models':>7} {'K':>5} {'kernel ns':>10} {'(median)':>9} {'river ns':>9} {'(median)':>9} "
        f"{'ratio':>6} {'bytes/model':>12}"
    )
    best: dict[tuple[int, int, bool], float] = {}
    ratio: dict[int, float] = {}
    cases = [(1, k, False) for k in CLASSES]
    cases += [(m, 10, in_turn) for m in MODELS[1 : 2 if quick else None] for in_turn in (False, True)]
    for models, classes, in_turn in cases:
        ours, ours_median, theirs, theirs_median, held = compare(models, classes, rounds, in_turn=in_turn)
        best[models, classes, in_turn] = ours
        ratio.setdefault(classes, theirs / ours)
        show(
            f"{models:>7} {classes:>5} {ours:>10.1f} {ours_median:>9.1f} {theirs:>9.0f} "
            f"{theirs_median:>9.0f} {theirs / ours:>6.0f} {held:>12,.0f}{'  in turn' if in_turn else ''}"
        )
    for classes in (10, 1_000):
        times = ratio[classes]
        show(f"{times:.0f} times faster than river at K = {classes} (goal 50): {verdict(times >= 50)}")
    slower = best[1, 1_000, False] / best[1, 2, False]
    show(f"{slower:.2f} times slower from K = 2 to K = 1000 (goal 1.5): {verdict(slower <= 1.5)}")
    for in_turn in () if quick else (False, True):
        slower = best[10_000, 10, in_turn] / best[1, 10, False]
        order = "in turn" if in_turn else "at random"
        show(
            f"{slower:.2f} times slower from 1 to 10,000 models {order} (goal 1.5): {verdict(slower <= 1.5)}"
        )


if __name__ == "__main__":
    main()
