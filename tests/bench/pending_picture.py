"""Draws what `tests.bench.pending` measured.

python -m tests.bench.pending_picture pending.json docs/pictures/pending.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

from tests.bench.pending import MODELS

mpl.use("Agg")
from matplotlib import pyplot as plt

STEPS = 12
"""Merges come every few steps; CPU is shown as a mean over so many."""


def draw(found: list[dict[str, float]], path: Path) -> None:
    """Memory, disk and CPU beside each other, against what waits."""
    mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    waits = np.array([row["millions"] for row in found])
    figure, (memory, disk, cpu) = plt.subplots(1, 3, figsize=(9.2, 2.9), dpi=130)
    memory.plot(waits, [row["resident_megabytes"] for row in found], color="#1f6feb")
    memory.axhline(600, color="#b42318", linewidth=1, linestyle=(0, (4, 3)))
    memory.set(title="resident, MB", ylim=(0, None))
    disk.plot(waits, [row["disk_bytes"] for row in found], color="#1f6feb")
    disk.set(title="on disk, bytes a prediction", ylim=(0, None))
    steps = np.array([row["prediction_microseconds"] for row in found])
    whole = len(steps) // STEPS * STEPS
    cpu.plot(
        waits[:whole].reshape(-1, STEPS).max(axis=1),
        steps[:whole].reshape(-1, STEPS).mean(axis=1),
        color="#1f6feb",
        label="a prediction, merges included",
    )
    marked = [row for row in found if np.isfinite(row["label_microseconds"])]
    cpu.plot(
        [row["millions"] for row in marked],
        [row["label_microseconds"] / MODELS for row in marked],
        "o-",
        color="#b54708",
        label="a cold label, of one model",
    )
    cpu.set(title="CPU, µs", ylim=(0, 20))
    cpu.legend(frameon=False)
    for axes in (memory, disk, cpu):
        axes.set_xlabel("million predictions that wait")
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
