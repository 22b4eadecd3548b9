"""Measures on imbalanced classes: κ, κ_m, means of recall, normalised accuracy (Bifet et al. 2015)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.measures import measures
from streamwatch.core.estimators.measures.measures import Totals
from streamwatch.papers.comparison import Recording, read_recording
from streamwatch.papers.learners import SLIDING, accuracy_of, spec_of, totals_of, watch
from streamwatch.papers.result import (
    Cell,
    Effort,
    Experiment,
    Figure,
    Floats,
    Line,
    Measured,
    Panel,
    Result,
    Table,
    over_runs,
)

WINDOW = 1_000
MINORITIES = (0.5, 0.3, 0.1, 0.03, 0.01)
_MEASURES = (
    ("accuracy", measures.accuracy),
    ("κ", measures.kappa),
    ("κ_m", measures.kappa_majority),
    ("H", measures.harmonic_mean_recall),
    ("G", measures.geometric_mean_recall),
    ("MCC", measures.mcc),
)


def run(effort: Effort) -> Result:
    """Compare the values of each measure for useless and useful classifiers of imbalanced classes."""
    recording = read_recording(effort.recording)
    windows, figure = _windows(recording)
    return Result((_confusion(), windows, _synthetic(effort)), (figure,))


def _confusion() -> Table:
    """Reproduce the paper's Table 5: rows true, columns predicted, [[40, 30], [5, 25]]."""
    truth = np.array([0] * 70 + [1] * 30)
    totals = totals_of(truth, np.array([0] * 40 + [1] * 30 + [0] * 5 + [1] * 25))
    printed = {"accuracy": "65", "κ": "32.69", "κ_m": "−16.67", "H": "67.80", "G": "69.01", "MCC": "37.28"}
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, printed[name], Measured(100.0 * float(measure(totals)[0]), 0.0, 2))
        for name, measure in _MEASURES
    )
    note = "κ and H look good, although always naming the larger class is right in 70 %; κ_m is negative."
    return Table("The worked example, percent (Table 5)", ("measure", "paper", "found"), rows, note)


def _windows(recording: Recording) -> tuple[Table, Figure]:
    truth = recording.true_class
    named = {f"majority of the last {WINDOW:,}": _majority(truth, len(recording.labels))}
    named[recording.tree] = recording.answers[recording.tree]
    rows: list[tuple[Cell, ...]] = []
    panels: list[Panel] = []
    shown = np.arange(WINDOW - 1, len(truth), 100)
    for name, answers in named.items():
        totals = watch(spec_of(size=WINDOW), truth, answers).totals(0, SLIDING)
        kappa, kappa_m = measures.kappa(totals)[WINDOW:], measures.kappa_majority(totals)[WINDOW:]
        guessed = measures.kappa_majority_prequential(totals)[WINDOW:]
        harmonic = measures.harmonic_mean_recall(totals)[WINDOW:]
        rows.append(
            (
                name,
                *(
                    Measured(float((value > 0.01).mean()), 0.0, 3)
                    for value in (kappa, harmonic, kappa_m, guessed)
                ),
                Measured(float((kappa_m < -0.01).mean()), 0.0, 3),
            )
        )
        lines = tuple(Line(label, shown + 1.0, measure(totals)[shown]) for label, measure in _MEASURES[:4])
        panels.append(Panel(name, "outcomes", f"over the last {WINDOW:,}", lines, horizontals=(0.0,)))
    table = Table(
        f"Share of outcomes at which a measure over the last {WINDOW:,} is above .01 (Figure 2)",
        ("classifier", "κ", "H", "κ_m", "κ_m, guessing first", "κ_m below −.01"),
        tuple(rows),
        "The paper plots Elec2 and prints no numbers. Its findings: a classifier that always names the "
        "majority of its window has positive κ and H for periods, and a κ_m of zero; a Hoeffding tree has "
        "a negative κ_m for a period, which κ and H do not show. The ordinary κ_m uses the majority of the "
        "window, which is known only at its end, so it is zero or below for a classifier that names the "
        "majority so far. Guessing first is the paper's form: the baseline guesses the majority before "
        "each label, by counts faded with .999.",
    )
    return table, Figure("imbalance", "Measures on a recording", tuple(panels))


def _majority(truth: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Find the most frequent class among the `WINDOW` labels before each outcome, (n,)."""
    counts = np.eye(classes, dtype=np.int64)[truth].cumsum(axis=0)
    counts = np.concatenate([np.zeros((1, classes), np.int64), counts])
    ends = np.arange(len(truth))
    return (counts[ends] - counts[np.maximum(ends - WINDOW, 0)]).argmax(axis=1)


def _synthetic(effort: Effort) -> Table:
    n = effort.size(20_000, 5_000)
    rows: list[tuple[Cell, ...]] = []
    for minority in MINORITIES:
        found: list[list[float]] = []
        for r in effort.runs(f"unequal classes, minority {minority}", 20, 6):
            rng = effort.rng("imbalance", str(minority), r)
            truth = (rng.random(n) < minority).astype(np.int64)
            x = 1.5 * truth + rng.standard_normal(n)
            balanced = (x > 0.75).astype(np.int64)
            optimal = (x > 0.75 + np.log((1.0 - minority) / minority) / 1.5).astype(np.int64)
            totals = totals_of(truth, balanced)
            best = accuracy_of(truth, optimal)
            found.append(
                [*(float(measure(totals)[0]) for _, measure in _MEASURES), *_normalised(totals, best)]
            )
        rows.append((f"{minority:g}", *(over_runs(column, 3) for column in zip(*found, strict=True))))
    return Table(
        "A classifier made for equal classes, by the share of the smaller one",
        (
            "smaller class",
            *(name for name, _ in _MEASURES),
            "normalised: 0 to best",
            "normalised: smaller class to best",
        ),
        tuple(rows),
        "One Gaussian attribute, classes 1.5 apart; the classifier's threshold is halfway, which is "
        "optimal only for equally frequent classes. κ remains positive however unequal the classes are, "
        "and shows that answers and labels agree more than by chance. κ_m shows from which share on always "
        "naming the larger class is better. H and G do not change, because the recalls do not. The "
        "normalised accuracy (§5.1) is (p − min p)/(max p − min p), where max p is the accuracy of the "
        "optimal classifier, and min p, which the paper does not define, is either 0 or that of always "
        "naming the smaller class.",
    )


def _normalised(totals: Totals, best: float) -> list[float]:
    accuracy = float((totals.hits / totals.n)[0])
    least: Floats = totals.true_class[0] / totals.n[0]
    low = float(least[least > 0].min())
    return [accuracy / best, (accuracy - low) / (best - low)]


KIND = Experiment(
    "imbalance",
    "Measures where classes are unequal",
    "Bifet, De Francisci Morales, Read, Holmes, Pfahringer 2015, §5, Table 5, Figure 2",
    "κ and H look good for a classifier that is worse than always naming the larger class; κ_m shows it.",
    run,
)
