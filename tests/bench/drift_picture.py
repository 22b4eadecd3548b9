"""Draws the README's picture: a simulated model, the classifier that repeats the last label, and the alarms.

python -m tests.bench.drift_picture docs/pictures/drift.png
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

import matplotlib as mpl

from streamwatch.core.estimators.names import TraceChunk
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import MonitorsSpec
from streamwatch.demo.simulated import BLOCK, StreamSpec, blocks

mpl.use("Agg")
from matplotlib import pyplot as plt

OUTCOMES = 9_000
MODEL = 1  # drifting-v2: fitted to the first concept and never again
SHOWN = {
    "accuracy_ratio:fading:0.999": ("accuracy, fading 0.999", "#1f6feb", "-"),
    "accuracy_ratio:landmark": ("accuracy, all outcomes alike", "#8b949e", ":"),
    "accuracy_ratio:adwin:0.05": ("accuracy, ADWIN's window", "#1a7f37", "-"),
    "baseline_accuracy_ratio:persistent:fading:0.999": (
        "repeating the last label, fading 0.999",
        "#bc4c00",
        "--",
    ),
}


def traced() -> TraceChunk:
    """Every estimate after every outcome of the simulated model."""
    spec = StreamSpec(seed=1, drift_every=5_000)
    names = spec.classes
    outcomes = [
        Outcome(spec.model_names[MODEL], names[y], names[p], 0, 0)
        for block in islice(blocks(spec), OUTCOMES // BLOCK)
        for y, p in zip(block.true_class.tolist(), block.predicted_class[MODEL].tolist(), strict=True)
    ]
    return EstimatorSet(MonitorsSpec(max_models=1)).trace(outcomes)


def main(path: Path) -> None:
    """Write the picture."""
    chunk = traced()
    column = {name: index for index, name in enumerate(chunk.columns)}
    outcome = [row[column["outcome"]] for row in chunk.rows]
    mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(figsize=(9.2, 3.9), dpi=130)
    for name, (label, colour, style) in SHOWN.items():
        values = [row[column[name]] for row in chunk.rows]
        axes.plot(outcome, values, style, color=colour, label=label, linewidth=1.6)
    for alarm in (alarm for alarm in chunk.alarms if alarm.judgement is None):
        text = f"{alarm.detector.replace('_', '-')} alarm, outcome {alarm.outcome:,}"
        axes.axvline(alarm.outcome, color="#cf222e", linewidth=0.9, label=text)
    axes.set(xlabel="outcome", ylabel="accuracy", ylim=(0.35, 1.0), xlim=(0, OUTCOMES))
    axes.set_title(
        "drifting-v2: good for 5,000 outcomes, then worse than guessing what came last", fontsize=11
    )
    axes.legend(loc="lower left", frameon=False, fontsize=8.5)
    axes.grid(axis="y", alpha=0.25)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
