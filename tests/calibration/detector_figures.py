"""The table of `docs/detectors.md`: false alarms of every detector at its defaults, and its delays.

    python -m tests.calibration.detector_figures            (a minute or two)

False alarms: in a million outcomes of a model that does not change, over 8 streams of 500,000, independent
and with a lag-1 correlation of .5. Delays: outcomes from a jump of the error to the next alarm, the median of
200 streams that had 5,000 outcomes before the jump; inf where half of them had none within 10,000.
"""

from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.detectors import KINDS
from tests.calibration.monte_carlo import Losses, correlated, feed, table_of

STREAMS, LENGTH, CHUNK = 8, 500_000, 100_000
STATIONARY = ((0.005, 0.0), (0.02, 0.0), (0.1, 0.0), (0.2, 0.0), (0.3, 0.0), (0.5, 0.0), (0.2, 0.5))
JUMPS = ((0.02, 0.04), (0.1, 0.15), (0.2, 0.22), (0.2, 0.25), (0.2, 0.3), (0.2, 0.5))
RUNS, BEFORE, AFTER = 200, 5_000, 10_000
SPECS = tuple(kind.spec() for kind in KINDS)


def false_alarms(losses: Losses) -> np.ndarray:
    """Alarms of every detector in a million outcomes."""
    table = table_of(len(losses), (), SPECS)
    counts = np.zeros(len(SPECS))
    for start in range(0, losses.shape[1], CHUNK):
        found = [alarm.detector for alarm in feed(table, losses[:, start : start + CHUNK])]
        counts += np.bincount(found, minlength=len(SPECS))
    return counts / losses.size * 1e6


def delays(losses: Losses) -> np.ndarray:
    """Median outcomes from the jump to the next alarm of every detector."""
    first = np.full((len(SPECS), len(losses)), np.inf)
    for alarm in feed(table_of(len(losses), (), SPECS), losses):
        late = alarm.outcome - BEFORE
        if late > 0:
            first[alarm.detector, alarm.row] = min(first[alarm.detector, alarm.row], late)
    return np.median(first, axis=1)


def main() -> None:
    """Print a line for every detector."""
    rng = np.random.default_rng(1)
    columns: dict[str, np.ndarray] = {}
    for p, rho in STATIONARY:
        columns[f"{p} ρ{rho}"] = false_alarms(correlated(rng, p, rho, STREAMS, LENGTH))
    for p, risen in JUMPS:
        calm, worse = rng.random((RUNS, BEFORE)) < p, rng.random((RUNS, AFTER)) < risen
        columns[f"{p}→{risen}"] = delays(np.concatenate([calm, worse], axis=1))
    print(" " * 14, *(f"{name:>9}" for name in columns))
    for index, spec in enumerate(SPECS):
        print(f"{spec.name:14}", *(f"{values[index]:>9.1f}" for values in columns.values()), flush=True)


if __name__ == "__main__":
    main()
