"""Recorded predictions of three models on Elec2, as lines of outcomes."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).parents[2] / "golden"
ELEC2_MODELS = ("nb@5", "ht@5", "levbag@8")


def elec2(limit=None):
    with gzip.open(GOLDEN / "elec2_three_models.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))[:limit]
    true_class = np.array([r["y_true"] == "UP" for r in rows], float)
    return true_class, {m: np.array([r[m] == "UP" for r in rows], float) for m in ELEC2_MODELS}


def as_csv(true_class, models):
    name = ("DOWN", "UP")
    lines = ["id,model,prediction,label"]
    for i, y in enumerate(true_class.astype(int).tolist()):
        lines += [f"{i},{m},{name[int(p[i])]},{name[y]}" for m, p in models.items()]
    return "\n".join(lines) + "\n"
