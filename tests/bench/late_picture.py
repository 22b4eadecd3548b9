"""Draws the picture of `docs/late-labels.md`: Elec2 with labels that come late, errors sooner than hits.

python -m tests.bench.late_picture docs/pictures/late-labels.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

from streamwatch.core.estimators.registers.late_labels.accuracy import late_accuracy
from streamwatch.core.estimators.registers.late_labels.observe import geometry_of
from streamwatch.core.estimators.registers.late_labels.ring import LabelRing
from streamwatch.core.specs import DAY_MS
from tests.golden.elec2_late import BEGAN_MS, HORIZON_MS, late_elec2

mpl.use("Agg")
from matplotlib import pyplot as plt

MODEL = "nb@5"
DAYS = range(20, 300)


def main(path: Path) -> None:
    """Write the picture."""
    elec2 = late_elec2(MODEL)
    order = elec2.by_label()
    known = elec2.known_ms[order]
    geometry = geometry_of(HORIZON_MS)
    ring, at = LabelRing(1, geometry), 0
    rows: list[list[float]] = []
    for day in DAYS:
        now = BEGAN_MS + day * DAY_MS
        upto = int(np.searchsorted(known, now, side="right"))
        part = order[at:upto]
        at = upto
        given = elec2.hit[part], elec2.known_ms[part], elec2.delay_ms[part]
        ring.observe(np.zeros(len(part), np.int32), *given)
        late = late_accuracy(ring.view(np.zeros(1, np.int64)), geometry)
        recent = (elec2.predicted_ms > now - HORIZON_MS // 2) & (elec2.predicted_ms <= now)
        c = late.corrected
        values = (elec2.hit[recent].mean(), late.naive[0], c.value[0], c.lower[0], c.upper[0])
        rows.append([*map(float, values), float(late.settled.value[0])])
    truth, naive, corrected, lower, upper, settled = np.array(rows).T
    mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(figsize=(9.2, 3.9), dpi=130)
    axes.fill_between(DAYS, lower, upper, color="#1f6feb", alpha=0.18, linewidth=0)
    axes.plot(DAYS, truth, color="#24292f", label="hindsight: predictions of the last 7 days", linewidth=1.2)
    axes.plot(DAYS, corrected, color="#1f6feb", label="corrected for labels to come, 95 %", linewidth=1.8)
    axes.plot(
        DAYS, settled, color="#1a7f37", label="settled: 14 to 21 days old", linewidth=1.4, linestyle=":"
    )
    axes.plot(DAYS, naive, color="#bc4c00", label="as labelled so far", linewidth=1.4, linestyle="--")
    axes.set_xlabel("days of Elec2; hits are labelled after 4 days on average, errors after 0.8")
    axes.set_ylabel("accuracy of nb@5")
    axes.set_ylim(bottom=0.1)
    axes.legend(frameon=False, ncols=2, loc="lower left", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
