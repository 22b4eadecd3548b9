"""Print how often tests call two classifiers different, beside Bifet et al. 2015, Table 2.

python -m tests.calibration.fold_figures [runs] [outcomes]
"""

from __future__ import annotations

import sys

import numpy as np

from streamwatch.folds import Scheme
from streamwatch.papers.validation import STREAMS, TESTS_OF_FOLDS, evaluate, noisy, rejections

VALIDATIONS = ("bootstrap", "cross-validation", "split-validation")
NOISE = (0.0, 0.05, 0.10)
PRINTED = {
    (False, "McNemar"): (0.71, 0.52, 0.66, 0.86, 0.80, 0.73, 0.88, 0.84, 0.75),
    (True, "McNemar"): (0.77, 0.80, 0.42, 0.88, 0.94, 0.56, 0.90, 0.95, 0.58),
    (False, "sign"): (0.11, 0.11, 0.10, 0.77, 0.82, 0.44, 0.82, 0.88, 0.50),
    (True, "sign"): (0.12, 0.12, 0.09, 0.77, 0.83, 0.44, 0.82, 0.89, 0.50),
    (False, "Wilcoxon"): (0.11, 0.11, 0.14, 0.79, 0.84, 0.51, 0.83, 0.90, 0.55),
    (True, "Wilcoxon"): (0.11, 0.10, 0.19, 0.80, 0.84, 0.54, 0.83, 0.91, 0.59),
}
"""By prequential and test: bootstrap, cv, split without change, with noise .05, with .10."""


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    outcomes = int(sys.argv[2]) if len(sys.argv) > 2 else 3_000
    print(f"Rejected at .05, {runs} runs of each of {', '.join(STREAMS)}, {outcomes:,} outcomes, 10 folds")
    print(f"{'':32s}" + "".join(f"{'noise ' + str(noise):>21s}" for noise in NOISE))
    print(f"{'':32s}" + 3 * "  boot   cv  split".rjust(21))
    for prequential in (False, True):
        found = np.zeros((len(NOISE), len(VALIDATIONS), len(TESTS_OF_FOLDS)))
        for column, validation in enumerate(VALIDATIONS):
            for seed, stream in enumerate(STREAMS.values()):
                evaluated = evaluate(stream, Scheme(validation, 10, prequential), runs, outcomes, seed)
                for row, noise in enumerate(NOISE):
                    found[row, column] += rejections(noisy(evaluated, noise, seed)) / len(STREAMS)
        for at, test in enumerate(TESTS_OF_FOLDS):
            form = "prequential" if prequential else "non-prequential"
            print(f"{test + ', ' + form:32s}" + _cells(found[:, :, at].ravel()), flush=True)
            if (prequential, test) in PRINTED:
                print(f"{'   printed':32s}" + _cells(PRINTED[prequential, test]))
    shared_seeds(runs, outcomes)


def shared_seeds(runs: int, outcomes: int) -> None:
    """Print what the tests say of equal models when all folds of a model have one seed."""
    print("Equal models, prequential, all folds of a model with one seed")
    found = np.zeros((len(VALIDATIONS), len(TESTS_OF_FOLDS)))
    for row, validation in enumerate(VALIDATIONS):
        for seed, stream in enumerate(STREAMS.values()):
            evaluated = evaluate(stream, Scheme(validation, 10), runs, outcomes, seed, shared=True)
            found[row] += rejections(evaluated) / len(STREAMS)
    for at, test in enumerate(TESTS_OF_FOLDS):
        print(f"{test:32s}   " + "".join(f"{v:6.2f}" for v in found[:, at]))


def _cells(values: object) -> str:
    numbers = np.asarray(values).reshape(3, 3)
    return "".join("   " + "".join(f"{v:6.2f}" for v in row) for row in numbers)


if __name__ == "__main__":
    main()
