"""When errors are independent: Proposition 8 of Žliobaitė et al. 2015, its conditions one by one."""

from __future__ import annotations

import numpy as np

from streamwatch.lab.experiments.dependent_losses.streams import by_class, losses_by_class
from streamwatch.lab.experiments.detection.streams import Losses
from streamwatch.lab.experiments.result import Cell, Effort, Measured, Table, over_runs

_PRIORS = (0.9, 0.1)
_CASES: tuple[tuple[str, float, tuple[float, float]], ...] = (
    ("1: labels are independent", 0.0, (0.45, 0.05)),
    ("2: classes err equally", 0.8, (0.41, 0.41)),
    ("3: e_A/e_B = (P(B|B) − P(B))/(P(A|A) − P(A))", 0.8, (0.45, 0.05)),
    ("none", 0.8, (0.05, 0.45)),
)
"""Condition, probability that a label repeats outright, errors of classes A and B.

Where labels repeat so, P(B|B) − P(B) is repeat · π_A and P(A|A) − P(A) is repeat · π_B: the third condition
is e_A/e_B = π_A/π_B = 9.
"""


def correlation(losses: Losses) -> float:
    """Correlation of a loss with the one before; NaN where losses never change."""
    x = losses.astype(np.float64)
    return float(np.corrcoef(x[1:], x[:-1])[0, 1]) if 0.0 < x.mean() < 1.0 else float("nan")


def table(effort: Effort) -> Table:
    """Measure the correlation of errors under each condition, beside what it must be."""
    outcomes = effort.size(100_000, 20_000)
    rows: list[tuple[Cell, ...]] = []
    for name, repeat, errors in _CASES:
        found: list[float] = []
        for r in effort.runs(f"Proposition 8, {name}", 10, 4):
            rng = effort.rng("proposition", name, r)
            found.append(correlation(losses_by_class(np.tile(errors, (outcomes, 1)), repeat, _PRIORS, rng)))
        rows.append(
            (
                name,
                f"{errors[0]:g}, {errors[1]:g}",
                "0" if name[0].isdigit() else "not 0",
                Measured(by_class(errors, repeat, _PRIORS)),
                over_runs(found),
            )
        )
    return Table(
        "Correlation of an error with the one before, by condition (Proposition 8)",
        ("condition", "errors of A, B", "paper", "by formula", "found"),
        tuple(rows),
        "Class A has prior .9; labels repeat with probability .8, except in the first row; given the "
        "class, errors are independent. The covariance is then .8 · π_A · π_B · (e_A − e_B)². The first "
        "two conditions make errors independent; the third one, as it is printed, does not.",
    )
