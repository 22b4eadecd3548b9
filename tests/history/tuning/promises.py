"""Promises and what became of them, over many histories of one kind.

    python -m tests.history.tuning.promises --histories 200          (minutes a row)
    python -m tests.history.tuning.promises --write                  the same, into docs/evidence/tuning.md

Every history gives a threshold of its own; how often that threshold alarms on the process itself, which in
life nobody knows, is read off a curve over thresholds that was simulated once at great length. `--detector`
and `--process` do one row; rows of the page that were not made anew stay as they are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from streamwatch.history.tuning.history import CannotPromise
from streamwatch.history.tuning.promise import CANDIDATES, CHUNK, TUNED, least_strict, table_of
from tests.calibration.monte_carlo import correlated

Draw = Callable[[np.random.Generator, int], NDArray[np.bool_]]


def regimes(rng: np.random.Generator, length: int) -> NDArray[np.bool_]:
    """Errors of .05 and .2 in turn, for 100 outcomes on average each: correlations that last."""
    changes = rng.random(length) < 0.01
    high = np.cumsum(changes) % 2 == 0
    return rng.random(length) < np.where(high, 0.2, 0.05)


def cycle(period: int, swing: float) -> Draw:
    """Errors that go up and down around .1 in so many outcomes, beginning anywhere."""

    def draw(rng: np.random.Generator, length: int) -> NDArray[np.bool_]:
        angle = 2.0 * np.pi * (np.arange(length) + rng.integers(period)) / period
        return rng.random(length) < 0.1 + swing * np.sin(angle)

    return draw


KINDS: dict[str, tuple[Draw, int]] = {
    "independent, error .2": (lambda rng, n: rng.random(n) < 0.2, 20_000),
    "independent, error .02": (lambda rng, n: rng.random(n) < 0.02, 20_000),
    "correlated .5, error .1": (lambda rng, n: correlated(rng, 0.1, 0.5, 1, n)[0], 20_000),
    "regimes of 100": (regimes, 60_000),
    "regimes of 100, long": (regimes, 600_000),
    "cycle of 200, error .05 to .15": (cycle(200, 0.05), 60_000),
    "cycle of 2,000, error .05 to .15": (cycle(2_000, 0.05), 60_000),
}
"""Processes, and outcomes of a history."""
DETECTORS = ("page_hinkley", "ewma")
PROMISE = 50_000.0
LENGTH = 40_000_000
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "tuning.md"
ROWS = Path(__file__).with_name("promises.json")
HEADING = "\n## Promised and achieved\n\n"
MARK = "<!-- promises: made by `python -m tests.history.tuning.promises --write` -->\n"


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of the promises made from so many histories; shares are of the promises made."""

    histories: int
    refused: int
    """Histories of which nothing was promised."""
    kept: float
    """Share in which the process alarms at most as often as promised."""
    covered: float
    """Share in which its rate lies in the interval that was reported."""
    strictest: float
    """The 5 % quantile of achieved over promised rates."""
    median: float
    loosest: float
    """The 95 % quantile."""
    printed: float = float("nan")
    """Median of achieved rates over those on resampled streams; NaN in rows made before it was looked at."""
    above: float = float("nan")
    """Share in which the process alarms more often than the resampled streams."""


def curve(kind: str, draw: Draw, length: int) -> Callable[[float], float]:
    """The rate of alarms of the process by strictness, interpolated in logarithms."""
    tuned = TUNED[kind]
    low, high = {"page_hinkley": (5.0, 300.0), "ewma": (1.8, 9.0)}[kind]
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
    least, most = grid[known][[0, -1]]
    # By lines between its points the curve, which is concave, would lie up to a sixth too low.
    log_rate = PchipInterpolator(np.log(grid[known]), np.log(counts[known] / seen))

    def rate_at(strictness: float) -> float:
        if strictness < least:
            raise ValueError(f"expected a strictness of {least:.4g} or more, got {strictness:.4g}")
        strictness = min(strictness, most)  # beyond it alarms are rarer than could be counted
        return float(np.exp(log_rate(np.log(strictness))))

    return rate_at


def promises(kind: str, process: str, histories: int, *, length: int = LENGTH, seed: int = 1) -> Kept:
    """Make a promise from each of so many histories and look what becomes of it."""
    draw, outcomes = KINDS[process]
    rate_at = curve(kind, draw, length)
    kept, covered, ratios, expected = 0, 0, [], []
    for k in range(histories):
        rng = np.random.default_rng([seed, k])
        losses = draw(rng, outcomes).astype(np.int8)
        try:
            found = least_strict(kind, TUNED[kind], losses, PROMISE, rng)
        except CannotPromise:
            continue
        achieved = rate_at(getattr(found.spec, TUNED[kind].parameter))
        kept += achieved <= 1.0 / PROMISE
        covered += found.low <= achieved <= found.high
        ratios.append(achieved * PROMISE)
        expected.append(achieved / found.rate if found.rate > 0.0 else np.inf)
    made = len(ratios)
    if not made:
        return Kept(histories, histories, *(float("nan"),) * 5)
    quantiles = np.quantile(ratios, [0.05, 0.5, 0.95]).tolist()
    reported = float(np.median(expected)), float(np.mean(np.array(expected) > 1.0))
    return Kept(histories, histories - made, kept / made, covered / made, *quantiles, *reported)


def page(rows: dict[str, dict[str, float]]) -> str:
    """The table of all rows, in Markdown."""
    lines = [
        "| detector | losses | outcomes | histories | refused | kept | covered | / promised | / resampled |",
        "|---|---|---:|---:|---:|---:|---:|---|---|",
    ]
    for detector in DETECTORS:
        for process, (_, outcomes) in KINDS.items():
            if (row := rows.get(f"{detector}, {process}")) is None:
                continue
            found = Kept(**row)  # pyright: ignore[reportArgumentType]  # counts were written as such
            made = found.histories - found.refused
            shares = f"{found.kept:.1%} | {found.covered:.1%}" if made else "– | –"
            ratios = f"{found.strictest:.2f}, {found.median:.2f}, {found.loosest:.2f}" if made else "–"
            reported = "–" if np.isnan(found.printed) else f"{found.printed:.2f} ({found.above:.0%} above 1)"
            lines.append(
                f"| {detector} | {process} | {outcomes:,} | {found.histories} | {found.refused} "
                f"| {shares} | {ratios} | {reported} |"
            )
    return "\n".join(lines) + "\n"


def write(rows: dict[str, dict[str, float]]) -> None:
    """Put the table between its marks in the page, at its end where there are none yet."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, after = (text if MARK in text else text + HEADING + MARK + MARK).split(MARK)
    PAGE.write_text(MARK.join([before, page(rows), after]), encoding="utf-8")


def main() -> None:
    """Print a line for every process, and write the page if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--histories", type=int, default=200)
    parser.add_argument("--detector", choices=DETECTORS, action="append")
    parser.add_argument("--process", choices=list(KINDS), action="append")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    for detector in given.detector or DETECTORS:
        for process in given.process or KINDS:
            found = promises(detector, process, given.histories)
            print(f"{detector}, {process}: {found}", flush=True)  # noqa: T201  (figures are printed)
            if given.write:
                rows = json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else {}
                rows[f"{detector}, {process}"] = asdict(found)
                ROWS.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n", encoding="utf-8")
                write(rows)


if __name__ == "__main__":
    main()
