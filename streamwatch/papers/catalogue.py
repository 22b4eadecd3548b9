"""List of all experiments, in the order of their papers."""

from __future__ import annotations

from streamwatch.papers import (
    comparison,
    dependence,
    dependent_losses,
    holdout,
    imbalance,
    optimal,
    page_hinkley,
    random_alarms,
    recovery,
    validation,
    weighted,
    windows,
)
from streamwatch.papers.classification import experiment as classifiers
from streamwatch.papers.detection import experiment as detectors
from streamwatch.papers.result import Experiment

KINDS: tuple[Experiment, ...] = (
    holdout.KIND,
    comparison.KIND,
    page_hinkley.KIND,
    windows.KIND,
    dependence.KIND,
    random_alarms.KIND,
    dependent_losses.KIND,
    weighted.KIND,
    recovery.KIND,
    validation.KIND,
    imbalance.KIND,
    optimal.KIND,
    classifiers.KIND,
    detectors.KIND,
)
