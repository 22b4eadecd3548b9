"""All experiments, in the order of the papers that they are from."""

from __future__ import annotations

from streamwatch.lab.experiments import (
    comparison,
    dependence,
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
from streamwatch.lab.experiments.classification import experiment as classifiers
from streamwatch.lab.experiments.dependent_losses import experiment as dependent_losses
from streamwatch.lab.experiments.detection import experiment as detectors
from streamwatch.lab.experiments.result import Experiment

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
