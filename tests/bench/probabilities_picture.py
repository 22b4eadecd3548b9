"""Draws the picture of docs/probabilities.md: scores of two models on the Elec2 electricity prices.

python -m tests.bench.probabilities_picture docs/pictures/probabilities.png

The first model's score of "price goes up" is the share of six published stream classifiers that say so; the
second's is an online logistic regression on the same six answers and the label before. Each is scored before
it learns. Prints what docs/probabilities.md quotes.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from streamwatch.core.estimators.registers.probabilities import ProbabilitiesSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import MonitorsSpec

mpl.use("Agg")
from matplotlib import pyplot as plt

ANSWERS = Path(__file__).parents[1] / "golden" / "elec2_five_attributes.csv.gz"
STEP = 0.02
VOTES, LEARNED = "share of six votes", "logistic regression"
COLOURS = {VOTES: "#bc4c00", LEARNED: "#1f6feb"}


def outcomes() -> Iterator[Outcome]:
    """Each price twice: as the votes and as the regression saw it."""
    with gzip.open(ANSWERS, "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", skiprows=1, dtype=np.int64)
    weights = np.zeros(table.shape[1] + 1)
    before = 0
    for i, (truth, *answers) in enumerate(table.tolist()):
        features = np.array([1.0, 2.0 * before - 1.0, *(2.0 * a - 1.0 for a in answers)])
        learned = float(1.0 / (1.0 + np.exp(-weights @ features)))
        for model, score in ((VOTES, float(np.mean(answers))), (LEARNED, learned)):
            answer = "up" if score >= 0.5 else "down"
            scores = {"up": score, "down": 1.0 - score}
            yield Outcome(model, "up" if truth else "down", answer, i * 1_800_000, 0, scores=scores)
        weights += STEP * (truth - learned) * features
        before = truth


def main(path: Path) -> None:
    """Write the picture, and say the numbers."""
    estimators = EstimatorSet(MonitorsSpec(max_models=2, registers=(ProbabilitiesSpec(),)))
    estimators.fold(list(outcomes()))
    values = {family.name: dict(family.samples) for family in estimators.families()}
    details: dict[str, Any] = {model: said["probabilities"] for model, said in estimators.details().items()}
    mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, (reliability, curve) = plt.subplots(1, 2, figsize=(9.2, 4.1), dpi=130)
    reliability.plot([0.5, 1], [0.5, 1], ":", color="#8b949e", linewidth=1)
    for model, colour in COLOURS.items():
        said = details[model]
        bins = [b for b in said["reliability"] if b["mean_score"] is not None]
        sizes = [12 + 0.25 * b["outcomes"] for b in bins]
        points = [b["mean_score"] for b in bins], [b["hit_share"] for b in bins]
        error = said["calibration_error"]
        reliability.plot(*points, "-", color=colour, linewidth=1.3, label=f"{model}: off by {error:.3f}")
        reliability.scatter(*points, sizes, color=colour)
        up = said["curves"]["up"]
        curve.plot(said["thresholds"], up["precision"], "-", color=colour, label=f"{model}: precision")
        curve.plot(said["thresholds"], up["recall"], "--", color=colour, label=f"{model}: recall")
        told = " ".join(
            f"{name} {values[name]['landmark', model]:.3f} (faded {values[name]['fading:0.999', model]:.3f}),"
            for name in ("log_loss", "brier_score", "accuracy_ratio")
        )
        sys.stdout.write(f"{model}: {told} calibration error {error:.3f}, AUC {said['auc']:.3f}\n")
        at = said["thresholds"].index(0.3)
        sys.stdout.write(f"  up from 0.3 on: precision {up['precision'][at]}, recall {up['recall'][at]}\n")
    reliability.set(
        xlabel="score of the answer (mean of a bin)", ylabel="share that was right", title="Reliability"
    )
    curve.set(xlabel="“up” from this score on", title="Another threshold", ylim=(0, 1.02))
    for axes in (reliability, curve):
        axes.legend(frameon=False, fontsize=8.5, loc="lower left" if axes is curve else "upper left")
        axes.grid(alpha=0.25)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
