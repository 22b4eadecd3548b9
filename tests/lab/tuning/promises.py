"""Promises and what became of them, over many histories of one kind.

    python -m tests.lab.tuning.promises --histories 200          (minutes)

Every history gives a threshold of its own; how often that threshold alarms on the process itself, which in
life nobody knows, is read off a curve over thresholds that was simulated once at great length.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamwatch.lab.tuning.counting import CHUNK, table_of
from streamwatch.lab.tuning.promise import CANDIDATES, advise
from streamwatch.lab.tuning.strictness import TUNED
from tests.calibration.monte_carlo import correlated

Draw = Callable[[np.random.Generator, int], NDArray[np.bool_]]


def regimes(rng: np.random.Generator, length: int) -> NDArray[np.bool_]:
    """Errors of .05 and .2 in turn, for 100 outcomes on average each: correlations that last."""
    changes = rng.random(length) < 0.01
    high = np.cumsum(changes) % 2 == 0
    return rng.random(length) < np.where(high, 0.2, 0.05)


KINDS: dict[str, tuple[Draw, int]] = {
    "independent, error .2": (lambda rng, n: rng.random(n) < 0.2, 20_000),
    "independent, error .02": (lambda rng, n: rng.random(n) < 0.02, 20_000),
    "correlated .5, error .1": (lambda rng, n: correlated(rng, 0.1, 0.5, 1, n)[0], 20_000),
    "regimes of 100": (regimes, 60_000),
}
"""Processes, and outcomes of a history."""
PROMISE = 50_000.0
LENGTH = 40_000_000


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of the promises made from so many histories."""

    histories: int
    kept: float
    """Share in which the process alarms at most as often as promised."""
    covered: float
    """Share in which its rate lies in the interval that was told."""
    strictest: float
    """The 5 % quantile of achieved over promised rates."""
    loosest: float
    """The 95 % quantile."""


def curve(kind: str, draw: Draw, length: int) -> Callable[[float], float]:
    """The rate of alarms of the process by strictness, interpolated in logarithms."""
    tuned = TUNED[kind]
    low, high = {"page_hinkley": (15.0, 300.0), "ewma": (1.8, 9.0), "cusum": (15.0, 300.0)}[kind]
    grid = tuned.grid(low, high, CANDIDATES)
    table = table_of([tuned.spec(float(s), str(i)) for i, s in enumerate(grid)], 1)
    counts = np.zeros(len(grid))
    rng = np.random.default_rng(99)
    for _ in range(0, length, CHUNK):
        part = draw(rng, CHUNK).astype(np.int32)
        rows = np.zeros_like(part)
        counts += np.bincount([a.detector for a in table.fold(rows, rows, part)], minlength=len(grid))
    seen = -(-length // CHUNK) * CHUNK
    known = counts >= 5
    return lambda s: float(np.exp(np.interp(np.log(s), np.log(grid[known]), np.log(counts[known] / seen))))


def promises(kind: str, process: str, histories: int, *, length: int = LENGTH, seed: int = 1) -> Kept:
    """Make a promise from each of so many histories and look what becomes of it."""
    draw, outcomes = KINDS[process]
    rate_at = curve(kind, draw, length)
    kept, covered, ratios = 0, 0, []
    for k in range(histories):
        rng = np.random.default_rng([seed, k])
        losses = draw(rng, outcomes).astype(np.int8)
        advice = advise(kind, TUNED[kind], losses, PROMISE, rng)
        achieved = rate_at(advice.value)
        kept += achieved <= 1.0 / PROMISE
        covered += advice.low <= achieved <= advice.high
        ratios.append(achieved * PROMISE)
    return Kept(histories, kept / histories, covered / histories, *np.quantile(ratios, [0.05, 0.95]))


def main() -> None:
    """Print a line for every process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--histories", type=int, default=200)
    parser.add_argument("--detector", default="page_hinkley", choices=("page_hinkley", "ewma", "cusum"))
    given = parser.parse_args()
    for process in KINDS:
        found = promises(given.detector, process, given.histories)
        print(  # noqa: T201  (figures are printed)
            f"{given.detector}, {process}: kept {found.kept:.2f}, in the interval {found.covered:.2f}, "
            f"achieved/promised {found.strictest:.2f} … {found.loosest:.2f} ({found.histories} histories)",
            flush=True,
        )


if __name__ == "__main__":
    main()
