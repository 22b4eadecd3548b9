"""What verdicts cost an outcome: the default estimators with four opponents beside none, in one run.

    python -m tests.bench.verdicts

The streams differ in how often the model and the previous label are not both right or both wrong, which is
when there is work: 10 % where a good model meets labels that repeat, 50 % where labels do not. By the
balanced utility, a lead is of another size at nearly every step.

Outcomes are folded in short parts, and of each part the least of all rounds counts: what else the machine did
is in few of them. Before, every model gets enough outcomes for its evidence to start, up to a φ of 2.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.verdicts.state import START
from streamwatch.core.specs import MonitorsSpec, Opponent, UtilitySpec

FOUR: tuple[Opponent, ...] = ("persistent", "majority", "transition", "temporal_correction")
OUTCOMES = 200_000
PARTS = 20
ROUNDS = 12
GOAL = 1.3


def stream(
    rows: NDArray[np.int32], repeats: float, accuracy: float
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Two classes; each model's labels repeat with one probability, it is right with another."""
    rng = np.random.default_rng(1)
    switches = rng.random(OUTCOMES) >= repeats
    true_class = np.zeros(OUTCOMES, np.int32)
    for row in range(int(rows.max()) + 1):
        own = np.flatnonzero(rows == row)
        true_class[own] = switches[own].cumsum() % 2
    wrong = rng.random(OUTCOMES) >= accuracy
    return true_class, np.where(wrong, 1 - true_class, true_class).astype(np.int32)


def tables(models: int, utility: UtilitySpec) -> list[ModelTable]:
    """Without opponents, and with four."""
    monitors = replace(MonitorsSpec(), utilities=(utility,), max_models=models)
    made = [ModelTable(replace(monitors, opponents=opponents)) for opponents in ((), FOUR)]
    for table in made:
        for _ in range(models):
            table.add_model(utility)
    return made


def nanoseconds(table: ModelTable, rows: NDArray[np.int32], true_class, predicted_class) -> list[float]:
    """CPU time of each part, over the number of all outcomes."""
    took: list[float] = []
    for part in np.array_split(np.arange(OUTCOMES), PARTS):
        columns = [column[part] for column in (rows, true_class, predicted_class)]
        began = time.process_time()
        table.fold(*columns)
        took.append((time.process_time() - began) / OUTCOMES * 1e9)
    return took


def warm_up(table: ModelTable, rows: NDArray[np.int32], true_class, predicted_class) -> None:
    """Fold the stream until the model with the fewest outcomes has evidence, if φ is 2 or less."""
    for _ in range(2 * START // int(np.bincount(rows).min()) + 1):
        table.fold(rows, true_class, predicted_class)


def main() -> None:
    """Print the table; rounds alternate."""
    for models, kind in product((1, 100, 10_000), ("accuracy", "balanced")):
        rows = np.random.default_rng(2).integers(0, models, OUTCOMES).astype(np.int32)
        for repeats, accuracy in ((0.95, 0.95), (0.85, 0.85), (0.5, 0.8)):
            true_class, predicted_class = stream(rows, repeats, accuracy)
            pair = tables(models, UtilitySpec(kind=kind))
            for table in pair:
                warm_up(table, rows, true_class, predicted_class)
            rounds = [
                [nanoseconds(table, rows, true_class, predicted_class) for table in pair]
                for _ in range(ROUNDS)
            ]
            without, judged = np.min(rounds, axis=0).sum(axis=1).tolist()
            ratio = judged / without
            print(
                f"{models:6,} models by {kind}, labels repeat {repeats:.2f}, model right {accuracy:.2f}: "
                f"{without:.0f} ns without, {judged:.0f} ns with four opponents: {ratio:.2f} (goal {GOAL})",
                flush=True,
            )


if __name__ == "__main__":
    main()
