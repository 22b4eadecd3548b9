"""Labels of known temporal dependence, and what corrections for it gain (Žliobaitė et al. 2015, §3)."""

from __future__ import annotations

from streamwatch.lab.experiments.result import Cell, Effort, Table, over_runs
from streamwatch.lab.experiments.watching import accuracy_of, totals_of
from streamwatch.lab.streams.sticky import StickySpec, sticky


def synthetic(effort: Effort) -> Table:
    """Measure temporal correction and augmentation beside the best that x and the last label allow."""
    outcomes = effort.size(20_000, 4_000)
    rows: list[tuple[Cell, ...]] = []
    for repeat in (0.0, 0.3, 0.6, 0.8, 0.9):
        found: list[list[float]] = []
        for r in effort.runs(f"synthetic labels that repeat with probability {repeat}", 20, 5):
            spec = StickySpec(repeat=repeat)
            drawn = sticky(spec, effort.rng("sticky", r, str(repeat)), outcomes)
            totals = totals_of(drawn.true_class, drawn.posterior.argmax(axis=1), drawn.posterior)
            informed = drawn.informed.argmax(axis=1)
            found.append(
                [
                    float((totals.true_class.max(axis=1) / totals.n)[0]),
                    float((totals.repeats / totals.pairs)[0]),
                    float((totals.hits / totals.n)[0]),
                    float((totals.corrected / totals.scored)[0]),
                    float((totals.augmented / totals.augmented_n)[0]),
                    accuracy_of(drawn.true_class, informed),
                ]
            )
        rows.append((f"{repeat}", *(over_runs(column) for column in zip(*found, strict=True))))
    return Table(
        "Synthetic labels of known dependence",
        (
            "repeats outright",
            "P(M)",
            "P(T)",
            "knows x",
            "temporal correction",
            "augmented",
            "best with x and the last label",
        ),
        tuple(rows),
        "A label repeats the previous one with the probability of the row, and is otherwise drawn from "
        "(.6, .4). x is one Gaussian attribute, whose means for the two classes are 1.5 apart. The "
        "classifier knows P(y | x) exactly. Temporal correction (equation 3) knows P(y | x, last label), "
        "apart from what it has to estimate, so it comes close to the best possible accuracy. The "
        "augmented classifier sees the answer instead of x and gains less. Without dependence, neither "
        "gains anything, nor loses more than its estimates cost.",
    )
