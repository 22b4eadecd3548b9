"""Draws the picture of docs/segments.md: a stream classifier on Elec2, by the time of day it predicts for.

python -m tests.bench.segments_picture docs/pictures/segments.png

Elec2 has a price every half hour; the segment is the three hours of the day in which it falls. Prints what
docs/segments.md quotes.
"""

from __future__ import annotations

import gzip
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np

from streamwatch import Evaluator
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.specs import FadingSpec, MonitorsSpec

mpl.use("Agg")
from matplotlib import pyplot as plt

PREDICTIONS = Path(__file__).parents[1] / "golden" / "elec2_three_models.csv.gz"
MODEL = "nb@5"
A_DAY, WEEK = 48, 7 * 48
HOURS = [f"{hour:02}–{hour + 3:02} h" for hour in range(0, 24, 3)]
ALPHA = 0.995
"""Of a value's outcomes, six a day: about 33 days are remembered."""


def main(path: Path) -> None:
    """Write the picture, and say the numbers."""
    with gzip.open(PREDICTIONS, "rt") as lines:
        names = lines.readline().strip().split(",")
        table = np.loadtxt(lines, delimiter=",", dtype=np.str_)
    truth, answer = table[:, 0], table[:, names.index(MODEL)]
    hours = np.array(HOURS)[np.arange(len(table)) % A_DAY // 6]
    segments = SegmentsSpec(alpha=ALPHA)
    spec = replace(MonitorsSpec(max_models=1), forgetting=(FadingSpec(ALPHA),), registers=(segments,))
    evaluator = Evaluator(spec)
    curve = evaluator.curve(truth, answer, every=WEEK, segments={"hours": hours})
    days = curve["outcome"] / A_DAY
    accuracy, kappa = (
        np.array([curve[f"segment_{measure}:hours:{value}"] for value in HOURS])
        for measure in ("accuracy_ratio", "kappa_persistent")
    )
    mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, both = plt.subplots(1, 2, figsize=(9.2, 3.6), dpi=130, sharey=True)
    shown = ((accuracy, "accuracy", "viridis", 0.5, 1.0), (kappa, "κ against no change", "RdBu", -1.0, 1.0))
    for axes, (values, title, colours, low, high) in zip(both, shown, strict=True):
        edges = np.append(0.0, days), np.arange(len(HOURS) + 1) - 0.5
        mesh = axes.pcolormesh(*edges, values, cmap=colours, vmin=low, vmax=high)
        figure.colorbar(mesh, ax=axes)
        axes.set(title=f"{title} of {MODEL}", xlabel="days of Elec2")
        axes.set_yticks(range(len(HOURS)), HOURS)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})
    right = truth == answer
    repeated = np.concatenate([[False], truth[1:] == truth[:-1]])
    for value, last, k in zip(HOURS, accuracy, kappa, strict=True):
        mine = hours == value
        sys.stdout.write(
            f"{value}: right in {right[mine].mean():.3f}, the label before in {repeated[mine].mean():.3f}; "
            f"at its best {np.nanmax(last):.2f}, at its worst {np.nanmin(last):.2f}, worse than no change in "
            f"{np.mean(k < 0):.0%} of the weeks\n"
        )
    sys.stdout.write(
        f"all: right in {right.mean():.3f}, the previous label {(truth[1:] == truth[:-1]).mean():.3f}\n"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
