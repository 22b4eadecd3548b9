"""What a commit and a report take of the interpreter does not grow with the number of models.

Counted are calls of functions from Python, of others in Python or in C: that is stable from run to run, and
what many models would make slow.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.late_labels.register import LateLabelsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.pipeline.pipeline import PartialResult, Pipeline
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.keys import digest_bytes
from tests.interpreter_calls import calls_of
from tests.layouts import DEFAULT

SPEC = replace(DEFAULT, max_classes=40, registers=(LateLabelsSpec(), CohortsSpec(max_classes=40)))
OUTCOMES = 10_000
FEW, MANY = 3, 200
"""Models; so many as are taken in one turn of the event loop, as more turns call more."""


def outcomes(models: int) -> OutcomeBatch:
    """As many outcomes, of three classes, whatever the number of models."""
    chance = np.random.default_rng(models)
    records = np.zeros(OUTCOMES, OUTCOME)
    records["model"] = np.arange(OUTCOMES) % models
    for name in ("true_class", "predicted_class", "label_at_prediction"):
        records[name] = chance.integers(0, 3, OUTCOMES)
    records["event_ms"] = records["resolved_ms"] = 1_760_011_200_000 + np.arange(OUTCOMES)
    records["made"] = np.arange(OUTCOMES) // models
    records["scores"] = -1
    return OutcomeBatch(records, [f"model-{number:03}" for number in range(models)], ["a", "b", "c"])


def checkpoint_of(models: int, journal_outcomes: int) -> Checkpoint:
    """A checkpoint that has committed outcomes of so many models, and has as many for the next commit."""
    monitors = EstimatorSet(SPEC)
    pipeline = Pipeline(JoinSpec(), monitors, digest_bytes)
    checkpoint = Checkpoint(pipeline, monitors, SPEC, journal_outcomes)
    batch = outcomes(models)
    for _ in range(2):
        checkpoint.take(PartialResult(0, batch, pipeline.evaluate(batch), ()))
        checkpoint.changes({})
    checkpoint.take(PartialResult(0, batch, pipeline.evaluate(batch), ()))
    return checkpoint


@pytest.mark.parametrize("journal_outcomes", [10**9, 1], ids=["of outcomes", "of snapshots of all models"])
def test_a_commit_of_many_models_calls_no_more_than_one_of_few(journal_outcomes: int) -> None:
    found: dict[int, int] = {}
    for models in (FEW, MANY):
        checkpoint = checkpoint_of(models, journal_outcomes)
        found[models] = calls_of(lambda checkpoint=checkpoint: checkpoint.changes({}))
    assert found[MANY] - found[FEW] < MANY - FEW, found


def test_evaluation_of_many_models_calls_no_more_than_of_few() -> None:
    found: dict[int, int] = {}
    for models in (FEW, MANY):
        checkpoint, batch = checkpoint_of(models, 10**9), outcomes(models)
        checkpoint.pipeline.evaluate(batch)  # names are looked up once
        found[models] = calls_of(
            lambda checkpoint=checkpoint, batch=batch: checkpoint.pipeline.evaluate(batch)
        )
    assert found[MANY] - found[FEW] < MANY - FEW, found


def test_a_report_of_many_models_calls_no_more_than_one_of_few() -> None:
    found: dict[int, int] = {}
    for models in (FEW, MANY):
        monitors = checkpoint_of(models, 10**9).monitors

        def report(monitors: EstimatorSet = monitors) -> None:
            monitors.families()
            monitors.details()
            monitors.pasts()

        report()  # names of labels are made once, in the first report
        monitors.fold(outcomes(models))
        found[models] = calls_of(report)
    assert found[MANY] - found[FEW] < MANY - FEW, found
