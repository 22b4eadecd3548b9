"""Time per outcome of the kernel's full default set beside MOA's own evaluators and detectors, in one run.

    python -m tests.bench.kernel_vs_moa            (a minute; needs a JDK, and Maven the first time)

MOA 24.07 (resolved with Maven, compiled with javac, in `tests/bench/moa`; kept in `.cache/moa`) runs its
Basic, FadingFactor, Window and Adwin classification evaluators with Page-Hinkley, ADWIN and DDM on the
loss. The kernel runs its default forgetting, detectors and weighting, whatever they are: `MonitorsSpec()`.
Both read outcomes already in memory, 80 % right over K equally frequent classes; nothing is read from
either while it is timed.

Estimators live through all rounds, and windows are full before anything is timed. Rounds of the two
alternate, so that what else the machine does meets both; the best round of each counts (medians are
beside). Fewer outcomes go into a round of MOA's the slower it is: its evaluators keep an estimator per
class, so their time grows with K where the kernel's does not. The goals: at least 100 times faster at K =
10, and at most 1.5 times slower at K = 1000 than at K = 2.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.warming import warm_up
from streamwatch.core.specs import MonitorsSpec

HERE = Path(__file__).parent / "moa"
BUILD = Path(__file__).parents[2] / ".cache" / "moa"
BATCH = 1_000
KERNEL_BATCHES = 100
MOA_OUTCOMES = {2: 20_000, 10: 10_000, 100: 2_000, 1000: 300}
"""Outcomes in a round of MOA's, by number of classes."""
FILLING = 3
"""Rounds, of at least 1,200 outcomes together, before anything is timed: windows fill, code is compiled."""
ROUNDS = 10


def build_peer(source: Path = HERE / "MoaPeer.java") -> None:
    """Resolve MOA and compile a harness, if its source is newer than what is there."""
    compiled = BUILD / "classes" / f"{source.stem}.class"
    if compiled.exists() and compiled.stat().st_mtime > source.stat().st_mtime:
        return
    libs = BUILD / "libs"
    if not libs.exists():
        target = f"-DoutputDirectory={libs}"
        resolve = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", target]
        subprocess.run(resolve, cwd=HERE, check=True)
    compiler = ["javac", "-cp", f"{libs}/*", "-d", str(compiled.parent), str(source)]
    subprocess.run(compiler, check=True)


class MoaPeer:
    """A running MOA that evaluates so many outcomes when asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def nanoseconds(self, outcomes: int) -> float:
        """Time per outcome of one round."""
        asked, told = self._process.stdin, self._process.stdout
        if asked is None or told is None:
            raise ValueError("MOA must be started with pipes")
        asked.write(f"{outcomes}\n")
        asked.flush()
        return int(told.readline()) / outcomes


@contextmanager
def moa_peer(classes: int) -> Iterator[MoaPeer]:
    """MOA for so many classes; it waits, idle, between rounds."""
    java = ["java", "-cp", f"{BUILD / 'libs'}/*:{BUILD / 'classes'}", "MoaPeer", str(classes), "50000"]
    with subprocess.Popen(java, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield MoaPeer(process)
        process.communicate()  # the end of its input is the end of it


class KernelPeer:
    """One model with the default set, and a stream it reads round and round."""

    def __init__(self, classes: int) -> None:
        rng = np.random.default_rng(7)
        length = KERNEL_BATCHES * BATCH
        self._truth = rng.integers(0, classes, length).astype(np.int32)
        other = rng.integers(0, classes, length).astype(np.int32)
        self._predicted = np.where(rng.random(length) < 0.8, self._truth, other).astype(np.int32)
        self._table = ModelTable(MonitorsSpec(max_models=1, max_classes=classes))
        self._rows = np.full(BATCH, self._table.add_model(), np.int32)

    def nanoseconds(self) -> float:
        """Time per outcome of one round, in batches of 1,000."""
        start = time.perf_counter_ns()
        for cut in range(0, len(self._truth), BATCH):
            self._table.fold(self._rows, self._truth[cut : cut + BATCH], self._predicted[cut : cut + BATCH])
        return (time.perf_counter_ns() - start) / len(self._truth)


def compare(classes: int, rounds: int) -> tuple[list[float], list[float]]:
    """ns per outcome of every round of (kernel, MOA)."""
    kernel, outcomes = KernelPeer(classes), MOA_OUTCOMES[classes]
    with moa_peer(classes) as moa:
        for _ in range(FILLING):
            kernel.nanoseconds()
            moa.nanoseconds(max(outcomes, 1_200 // FILLING))
        pairs = [(kernel.nanoseconds(), moa.nanoseconds(outcomes)) for _ in range(rounds)]
    return [ours for ours, _ in pairs], [theirs for _, theirs in pairs]


def verdict(reached: bool) -> str:  # noqa: FBT001
    """A word for a goal."""
    return "reached" if reached else "NOT reached"


def main() -> None:
    """Print one row per number of classes, and which goals are reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 3 if parser.parse_args().quick else ROUNDS
    build_peer()
    warm_up(MonitorsSpec())
    print(f"{'K':>6} {'kernel ns':>10} {'(median)':>9} {'MOA ns':>11} {'(median)':>11} {'ratio':>8}")
    best: dict[int, tuple[float, float]] = {}
    for classes in MOA_OUTCOMES:
        ours, theirs = compare(classes, rounds)
        best[classes] = min(ours), min(theirs)
        print(
            f"{classes:>6} {min(ours):>10.1f} {statistics.median(ours):>9.1f} {min(theirs):>11,.0f} "
            f"{statistics.median(theirs):>11,.0f} {min(theirs) / min(ours):>7,.0f}×"
        )
    times = best[10][1] / best[10][0]
    print(f"{times:.0f} times faster than MOA at K = 10 (goal 100): {verdict(times >= 100)}")
    slower = best[1000][0] / best[2][0]
    print(f"{slower:.2f} times slower from K = 2 to K = 1000 (goal 1.5): {verdict(slower <= 1.5)}")


if __name__ == "__main__":
    main()
