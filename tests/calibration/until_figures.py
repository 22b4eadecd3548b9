"""How many labels until a verdict: outcomes until a model is called better or worse, by its lead.

`python -m tests.calibration.until_figures 40` prints the table of docs/how-many-labels.md. Labels are drawn
independently, 85 % of one class, so no change is right in 74.5 %; whether the model is right is drawn
independently too.
"""

from __future__ import annotations

import sys

import numpy as np

from streamwatch import Evaluator

SHARE = 0.85
NO_CHANGE = SHARE**2 + (1 - SHARE) ** 2
LEADS = (0.01, 0.02, 0.05, 0.1, 0.2)
MOST = 200_000
STEP = 5_000
OPPONENT = "persistent"


def until(lead: float, seed: int) -> float:
    """Outcomes until the verdict on no change is no longer open; infinite where it stays so."""
    rng = np.random.default_rng(seed)
    evaluator = Evaluator()
    for _ in range(0, MOST, STEP):
        true = (rng.random(STEP) < SHARE).astype(np.int64)
        right = rng.random(STEP) < NO_CHANGE + lead
        for alarm in evaluator.update(true, np.where(right, true, 1 - true)):
            if alarm.judgement is not None and alarm.judgement.opponent == OPPONENT:
                assert alarm.judgement.verdict == np.sign(lead)
                return alarm.outcome
    return float("inf")


def figures(runs: int) -> list[tuple[float, float, float]]:
    """Median and 90th percentile by lead; where more than half stay open, infinite."""
    found: list[tuple[float, float, float]] = []
    for size in LEADS:
        for lead in (size, -size):
            seen = sorted(until(lead, seed) for seed in range(runs))
            found.append((lead, seen[(runs - 1) // 2], seen[int(0.9 * (runs - 1))]))
    return found


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    for lead, median, late in figures(runs):
        print(f"| {lead:+.2f} | {median:,.0f} | {late:,.0f} |")


if __name__ == "__main__":
    main()
