"""False alarms of the default detectors where the error does not change, for `notifying.false_alarms`.

    python -m tests.calibration.false_alarm_rates [--outcomes N]        (some minutes)

By error and by the correlation of a loss with the one before (losses repeat with that probability, else they
are drawn anew). Streams are long, so that rates are those between alarms and not those of a beginning.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from streamwatch.core.estimators.notifying.false_alarms import CORRELATIONS, ERRORS
from streamwatch.core.specs import AdwinDriftSpec, PageHinkleySpec
from streamwatch.history.tuning.promise import table_of

SPECS = (PageHinkleySpec(), AdwinDriftSpec())
LENGTH = 200_000
"""Outcomes of one stream."""
CHUNK = 1_000_000


def losses_of(error: float, rho: float, rows: int, length: int, rng: np.random.Generator) -> np.ndarray:
    """Losses of one error, (rows, length), each the same as the one before with probability ρ."""
    renewed = rng.random((rows, length)) >= rho
    renewed[:, 0] = True
    source = np.maximum.accumulate(np.where(renewed, np.arange(length), 0), axis=1)
    return np.take_along_axis(rng.random((rows, length)) < error, source, axis=1)


def counts(error: float, rho: float, outcomes: int, seed: int) -> list[int]:
    """Number of alarms of each detector in so many outcomes, a multiple of `LENGTH`."""
    rng = np.random.default_rng([seed, round(1e4 * error), round(100 * rho)])
    found = [0] * len(SPECS)
    rows = CHUNK // LENGTH
    for _ in range(outcomes // CHUNK):
        table = table_of(SPECS, rows)
        losses = losses_of(error, rho, rows, LENGTH, rng).astype(np.int32).reshape(-1)
        of = np.repeat(np.arange(rows, dtype=np.int32), LENGTH)
        for alarm in table.fold(of, np.zeros_like(losses), losses):
            found[alarm.detector] += 1
    return found


def main() -> None:
    """Print alarms in 100,000 outcomes, a row for each correlation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outcomes", type=int, default=10 * CHUNK)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    for rho in CORRELATIONS:
        found = [counts(error, rho, asked.outcomes, asked.seed) for error in ERRORS]
        for index, spec in enumerate(SPECS):
            rates = ", ".join(f"{1e5 * each[index] / asked.outcomes:.2f}" for each in found)
            sys.stdout.write(f"{spec.name}, {rho}: ({rates}),\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
