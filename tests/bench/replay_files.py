"""Outcomes a CPU second of `streamwatch replay` of a file, beside the same row by row, in one run.

    python -m tests.bench.replay_files [--outcomes 600000]

CSV and JSON lines: rows of three models and three classes with a time each, the full default set; and the csv
module alone over the same file, which gives cells and no estimate. CPU time of this process without start-up,
the best of three rounds in turn; row by row once, over a tenth of the file. The goal: 2 million a CPU second.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from streamwatch.history.replay.replay import ReplaySpec, replay

ROUNDS = 3


def write(path: Path, outcomes: int) -> None:
    """A file as a warehouse would give it, CSV or JSON lines by its name."""
    is_csv = path.suffix == ".csv"
    rng = np.random.default_rng(1)
    true = rng.integers(0, 3, outcomes)
    predicted = np.where(rng.random(outcomes) < 0.8, true, (true + 1) % 3)
    names, models = ("legit", "fraud", "review"), rng.integers(0, 3, outcomes).tolist()
    times = (1_700_000_000_000 + np.cumsum(rng.integers(0, 90, outcomes))).tolist()
    with path.open("w") as file:
        if is_csv:
            file.write("id,model,prediction,label,timestamp\n")
        for k, (a, b) in enumerate(zip(predicted.tolist(), true.tolist(), strict=True)):
            if is_csv:
                file.write(f"order-{k},fraud-v{models[k]},{names[a]},{names[b]},{times[k]}\n")
            else:
                file.write(
                    f'{{"id": "order-{k}", "model": "fraud-v{models[k]}", "prediction": "{names[a]}", '
                    f'"label": "{names[b]}", "timestamp": {times[k]}}}\n'
                )


def cpu_seconds(do: Callable[[], object]) -> float:
    """CPU time of this process."""
    began = time.process_time()
    do()
    return time.process_time() - began


def main() -> None:
    """Print a line for every way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outcomes", type=int, default=600_000)
    outcomes = parser.parse_args().outcomes
    with tempfile.TemporaryDirectory() as folder:
        whole, tenth = Path(folder, "whole.csv"), Path(folder, "tenth.csv")
        write(whole, outcomes)
        write(tenth, outcomes // 10)
        lines = Path(folder, "whole.jsonl")
        write(lines, outcomes)

        def cells() -> None:
            with whole.open(newline="") as file:
                for _ in csv.reader(file):
                    pass

        def by_rows() -> None:
            replay(ReplaySpec([tenth], trace_comparisons=Path(folder, "none.csv")))

        ways: dict[str, tuple[int, Callable[[], object]]] = {
            "CSV, in columns": (outcomes, lambda: replay(ReplaySpec([whole]))),
            "JSON lines, in columns": (outcomes, lambda: replay(ReplaySpec([lines]))),
            "the csv module alone": (outcomes, cells),
        }
        replay(ReplaySpec([tenth]))  # loads what is compiled
        best = {name: min(cpu_seconds(do) for _ in range(ROUNDS)) for name, (_, do) in ways.items()}
        ways["CSV, row by row"] = outcomes // 10, by_rows
        best["CSV, row by row"] = cpu_seconds(by_rows)
    for name, seconds in best.items():
        print(f"{name:24} {ways[name][0] / seconds / 1e6:6.2f} M outcomes a CPU second", flush=True)


if __name__ == "__main__":
    main()
