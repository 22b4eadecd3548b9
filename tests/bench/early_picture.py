"""Draws the picture of docs/early-hints.md: predictions on the Elec2 electricity prices, labels a week late.

python -m tests.bench.early_picture docs/pictures/early-hints.png

An online logistic regression on six published stream classifiers' answers says "up" or "down" with a score,
and learns from each label a week later. Prints what docs/early-hints.md quotes.
"""

from __future__ import annotations

import gzip
import math
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

from streamwatch.core.predictions.early_hints import EarlyHints, EarlyHintsSpec
from streamwatch.core.predictions.kind import batch_of
from streamwatch.core.records.events import Outcome, Prediction

mpl.use("Agg")
from matplotlib import pyplot as plt

ANSWERS = Path(__file__).parents[1] / "golden" / "elec2_five_attributes.csv.gz"
STEP = 0.02
HALF_HOUR_MS = 1_800_000
DELAY = 336  # half hours of a week
DAY_MS = 86_400_000


def main(path: Path) -> None:
    """Write the picture, and say the numbers."""
    with gzip.open(ANSWERS, "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", skiprows=1, dtype=np.int64)
    features = np.column_stack([np.ones(len(table)), 2.0 * table[:, 1:] - 1.0])
    weights = np.zeros(features.shape[1])
    watch = EarlyHints(EarlyHintsSpec(bucket_ms=15 * DAY_MS))
    hints: list[tuple[float, str]] = []
    made: list[tuple[str, float]] = []
    for i, row in enumerate(features):
        if i >= DELAY:  # the label of a week ago is in
            j = i - DELAY
            answer, score = made[j]
            truth = "up" if table[j, 0] else "down"
            scores = {answer: score, "other": 1.0 - score}
            watch.learn([Outcome("m", truth, answer, i * HALF_HOUR_MS, DELAY * HALF_HOUR_MS, scores=scores)])
            learned = 1.0 / (1.0 + math.exp(-float(weights @ features[j])))
            weights += STEP * (table[j, 0] - learned) * features[j]
        up = 1.0 / (1.0 + math.exp(-float(weights @ row)))
        made.append(("up", up) if up >= 0.5 else ("down", 1.0 - up))
        answer, score = made[i]
        event = Prediction(
            str(i), "m", answer, i * HALF_HOUR_MS, scores={answer: score, "other": 1.0 - score}
        )
        watch.observe(batch_of([event]))
        if i % 64 == 63 and watch.views()["m"].hints > len(hints):
            hint = watch.views()["m"].hint
            assert hint is not None
            what = "score" if hint.predicted_class is None else hint.predicted_class
            hints.append((hint.record_ms / DAY_MS, f"{what} {'more' if hint.more else 'less'}"))
    view = watch.views()["m"]
    known = [s for s in view.stretches if not math.isnan(s.expected)]
    days = [(s.start_ms + s.end_ms) / 2 / DAY_MS for s in known]
    mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(figsize=(9.2, 3.6), dpi=130)
    axes.plot(days, [s.accuracy for s in known], "-", color="#57606a", label="by labels, a week later")
    axes.plot(days, [s.expected for s in known], "-", color="#1f6feb", label="expected by scores")
    axes.plot(days, [s.unchanged for s in known], ":", color="#8b949e", label="by labels before")
    for number, (day, _) in enumerate(hints):
        axes.axvline(day, color="#bc4c00", linewidth=1, label=None if number else "early hint")
    axes.set(xlabel="day of the prediction", ylabel="accuracy of 15 days")
    axes.legend(frameon=False, fontsize=8.5, loc="lower left", ncols=2)
    axes.grid(alpha=0.25)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    sys.stdout.write(f"hints: {', '.join(f'day {day:.0f} ({what})' for day, what in hints)}\n")
    off = view.expectation_errors
    sys.stdout.write(f"off by: expected {off.expected:.4f}, unchanged {off.unchanged:.4f}\n")
    expected, accuracy = [s.expected for s in known], [s.accuracy for s in known]
    right = sum(not math.isnan(a) for a in accuracy)
    both = [(e, a) for e, a in zip(expected, accuracy, strict=True) if not math.isnan(a)]
    correlation = float(np.corrcoef(np.array(both).T)[0, 1])
    sys.stdout.write(f"stretches: {len(known)}, labelled {right}, correlation {correlation:.2f}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
