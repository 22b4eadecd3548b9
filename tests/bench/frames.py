"""Outcomes a CPU second of `streamwatch.replay` and `Evaluator.update`, beside the kernel alone, in one run.

    python -m tests.bench.frames

A million outcomes of one model, three classes, the full default set, columns already in memory; classes as
whole numbers, as numpy's texts and as Python's; with a score of every class, of nine in ten, and segments
beside. The kernel is given class numbers and nothing else. CPU time of this process, the best of three rounds
in turn. The goal: 2 million a CPU second without scores.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import streamwatch
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import MonitorsSpec

OUTCOMES = 1_000_000
ROUNDS = 3


def cpu_seconds(do: Callable[[], object]) -> float:
    """CPU time of this process."""
    began = time.process_time()
    do()
    return time.process_time() - began


def main() -> None:
    """Print a line for every kind of column."""
    rng = np.random.default_rng(1)
    true = rng.integers(0, 3, OUTCOMES)
    predicted = np.where(rng.random(OUTCOMES) < 0.8, true, (true + 1) % 3)
    names = np.array(["legit", "fraud", "review"])
    columns = {
        "whole numbers": (true, predicted),
        "numpy's texts": (names[true], names[predicted]),
        "Python's texts": (names.astype(object)[true], names.astype(object)[predicted]),
    }

    def kernel() -> None:
        table = ModelTable(MonitorsSpec())
        row = np.full(OUTCOMES, table.add_model(), np.int32)
        table.fold(row, true.astype(np.int32), predicted.astype(np.int32))

    done: dict[str, Callable[[], object]] = {"kernel alone": kernel}
    for name, (a, b) in columns.items():
        frame = {"label": a, "prediction": b}
        done[f"update, {name}"] = lambda a=a, b=b: streamwatch.Evaluator().update(a, b)
        done[f"replay, {name}"] = lambda frame=frame: streamwatch.replay(frame, progress=False)
        done[f"replay without curves, {name}"] = lambda frame=frame: streamwatch.replay(
            frame, points=0, progress=False
        )
    scores = rng.dirichlet((1.0, 1.0, 1.0), OUTCOMES)
    whole = dict(enumerate(scores.T))
    parts = dict(enumerate(np.where(rng.random(scores.shape) < 0.9, scores, np.nan).T))
    country = {"country": names[rng.integers(0, 3, OUTCOMES)]}

    def update(**beside: object) -> Callable[[], object]:
        return lambda: streamwatch.Evaluator().update(true, predicted, **beside)

    done["update, scores"] = update(scores=whole)
    done["update, some scores"] = update(scores=parts)
    done["update, scores and segments"] = update(scores=whole, segments=country)
    done["replay, scores"] = lambda: streamwatch.replay(
        {"label": true, "prediction": predicted, **{str(k): v for k, v in whole.items()}},
        scores={k: str(k) for k in whole},
        progress=False,
    )
    kernel()  # loads what is compiled
    best = {name: min(cpu_seconds(do) for _ in range(ROUNDS)) for name, do in done.items()}
    for name, seconds in best.items():
        print(f"{name:38} {OUTCOMES / seconds / 1e6:6.2f} M outcomes a CPU second", flush=True)


if __name__ == "__main__":
    main()
