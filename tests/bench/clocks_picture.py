"""Draws where alarms of either clock place changes on Elec2: a picture of `docs/evidence/late-labels.md`.

    python -m tests.bench.clocks_picture docs/pictures/clocks.png

Every 60 days levbag@8 is exchanged for nb@5, and back 15 days later. Labels come as in `elec2_late`, and the
other way round: errors late, hits soon. The detector is Page-Hinkley for a rise of the error, once with the
clock of labels and once with that of predictions. An alarm stands at its event time, or at the time of the
prediction it fell on; grey is where nb@5 predicted. Printed is how far after the exchange the first alarm
stands, and how many stand where levbag@8 predicted.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

from tests.golden.elec2_clocks import (
    BAD_DAYS,
    DELAYS,
    EVERY,
    FIRST,
    LAST,
    exchanged,
    first_alarms,
    is_bad,
    placed,
)

mpl.use("Agg")
from matplotlib import pyplot as plt


def summary(days: np.ndarray) -> str:
    """Found changes, days from a change to its first alarm (median, most), alarms where no change was."""
    late, most = first_alarms(days), len(range(FIRST, LAST, EVERY))
    outside = int(np.count_nonzero(~is_bad(days)))
    return (
        f"{len(late)} of {most} changes, first alarm {np.median(late):.1f} days after "
        f"(at most {late.max():.1f}); {outside} of {len(days)} alarms outside"
    )


def main(path: Path) -> None:
    """Write the picture."""
    mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, panels = plt.subplots(len(DELAYS), 1, figsize=(9.2, 3.6), dpi=130, sharex=True)
    for axes, (name, means) in zip(panels, DELAYS.items(), strict=True):
        found = placed(exchanged(*means))
        for begins in range(FIRST, LAST, EVERY):
            axes.axvspan(begins, begins + BAD_DAYS, color="#8b949e", alpha=0.25, linewidth=0)
        for height, clock, color in ((1, "label", "#bc4c00"), (0, "prediction", "#1f6feb")):
            days = getattr(found, clock)
            axes.plot(days, np.full(len(days), height), "|", color=color, markersize=14, markeredgewidth=1.6)
            print(f"{name}; clock {clock}: {summary(days)}")
        axes.set_yticks([0, 1], ["prediction", "label"])
        axes.set_ylim(-0.6, 1.6)
        axes.set_title(f"labels of {name}", fontsize=10, loc="left")
    panels[-1].set_xlabel("days of Elec2; grey: nb@5 predicts, elsewhere levbag@8")
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
