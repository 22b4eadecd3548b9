"""Errors of the testbed's optimal classifiers, updated or never changed (Cervantes et al., Table 3)."""

from __future__ import annotations

import numpy as np

from streamwatch.papers.learners import LANDMARK, SLIDING, spec_of, watch
from streamwatch.papers.result import (
    Effort,
    Experiment,
    Figure,
    Line,
    Panel,
    Result,
    Table,
    over_runs,
)
from streamwatch.papers.streams.gaussians import draw
from streamwatch.papers.streams.testbed import KINDS

OUTCOMES = 10_000


def run(effort: Effort) -> Result:
    """Evaluate the optimal classifier of every stream, and the one that is optimal at its first instance."""
    runs = effort.size(10, 3)
    rows, optimal, first = [], [], []
    shown = np.arange(499, OUTCOMES, 100)
    for kind in KINDS:
        effort.progress(f"optimal classifiers: {kind.name}")
        drawn = [
            draw(kind.mixture, OUTCOMES, int(effort.rng(kind.name, r).integers(2**31))) for r in range(runs)
        ]
        truth = np.stack([each.true_class for each in drawn])
        begin = np.zeros(OUTCOMES, np.int64)
        answers = np.stack([each.optimal_class for each in drawn])
        stale = np.stack([kind.mixture.posterior(begin, each.x).argmax(axis=1) for each in drawn])
        spec = spec_of(size=500)
        at_best, at_first = watch(spec, truth, answers), watch(spec, truth, stale)
        rows.append(
            (
                kind.name,
                f"{kind.printed_optimal:.2f}",
                over_runs(100.0 * at_best.error(LANDMARK)[:, -1], 2),
                over_runs([100.0 * each.optimal_risk.mean() for each in drawn], 3),
                over_runs(100.0 * at_first.error(LANDMARK)[:, -1], 2),
            )
        )
        optimal.append(Line(kind.name, shown + 1.0, at_best.error(SLIDING).mean(axis=0)[shown]))
        first.append(Line(kind.name, shown + 1.0, at_first.error(SLIDING).mean(axis=0)[shown]))
    table = Table(
        "Errors over 10,000 instances, percent (Table 3, column Opt.)",
        ("stream", "paper", "found", "expected, given x", "optimal at the first instance, for ever"),
        tuple(rows),
        "The paper's column is the mean loss over ten streams, and so is the next one. The third is the "
        "mean probability of an error, which varies less. The last column shows the cost of not learning: "
        "the error of the classifier that was optimal at the first instance, if it is never changed.",
    )
    panels = (
        Panel("optimal at every instance", "instances", "error over the last 500", tuple(optimal)),
        Panel("optimal at the first instance", "instances", "error over the last 500", tuple(first)),
    )
    return Result((table,), (Figure("optimal", "The testbed, mean over runs", panels),))


KIND = Experiment(
    "optimal",
    "Optimal errors of the testbed",
    "Cervantes, Gagné, Isasi, Parizeau, Table 3",
    "Optimal errors are the printed ones within .11 points.",
    run,
)
