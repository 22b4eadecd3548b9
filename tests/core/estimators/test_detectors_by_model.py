"""Detectors of some models with parameters of their own: each model has its own rates of false alarms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.pipeline.sections import document_of, spec_of
from streamwatch.core.records.events import Outcome, fold_name
from streamwatch.core.specs import AdwinDriftSpec, ModelDetectors, MonitorsSpec, PageHinkleySpec
from tests.layouts import EVERYTHING

SPEC = MonitorsSpec(
    detectors=(PageHinkleySpec(threshold=5.0), AdwinDriftSpec()), max_models=8, max_classes=10
)
STRICT = (PageHinkleySpec(threshold=12.0, tolerance=0.02, min_outcomes=300), AdwinDriftSpec(direction="down"))
BY_MODEL = replace(
    SPEC,
    detectors_by_model=(
        ModelDetectors("fraud-[12]", STRICT),
        ModelDetectors("fraud-*", (PageHinkleySpec(threshold=2.0), AdwinDriftSpec(direction="both"))),
    ),
)
ALL_ALIKE = {
    "churn": SPEC.detectors,
    "fraud-1": STRICT,
    "fraud-3": BY_MODEL.detectors_by_model[1].detectors,
}
"""Which detectors each model has, by hand: the first pattern that matches."""


def mixed(models, n, seed=0):
    """Outcomes of models by turns; the error of all of them rises at a third and falls at two thirds."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        missed = rng.random() < (0.1, 0.5, 0.05)[i * 3 // n]
        model = models[int(rng.integers(len(models)))]
        yield Outcome(model, "a", "b" if missed else "a", event_ms=i * 1_000, delay_ms=0)


def cut(outcomes, seed):
    """Batches of any length."""
    rng = np.random.default_rng(seed)
    while outcomes:
        k = int(rng.integers(1, 700))
        yield outcomes[:k]
        outcomes = outcomes[k:]


def series(monitors, model):
    names = ("detector_statistic", "detector_threshold", "alarms_total", "last_alarm_timestamp_seconds")
    return {
        (family.name, key): value
        for family in monitors.families()
        for key, value in family.samples
        if family.name in names and model in key
    }


def test_every_model_is_watched_as_if_its_detectors_were_all_models():
    outcomes = list(mixed(list(ALL_ALIKE), 9_000))
    together = EstimatorSet(BY_MODEL)
    alarms = [alarm for batch in cut(outcomes, 1) for alarm in together.fold(batch)]
    counts = set()
    for model, detectors in ALL_ALIKE.items():
        alone = EstimatorSet(replace(SPEC, detectors=detectors))
        own = alone.fold([outcome for outcome in outcomes if outcome.model == model])
        assert [alarm for alarm in alarms if alarm.model == model] == own
        assert series(together, model) == series(alone, model)
        counts.add(len(own))
    assert len(counts) == len(ALL_ALIKE), "parameters that differ had better make a difference here"


def test_the_trace_has_the_detectors_of_each_model():
    outcomes = list(mixed(["churn", "fraud-1"], 3_000))
    traced = EstimatorSet(BY_MODEL).trace(outcomes)
    threshold = traced.columns.index("detector_threshold:page_hinkley")
    first: dict[str, float | None] = {}  # before the dispersion of the losses is known
    for outcome, row in zip(outcomes, traced.rows, strict=True):
        first.setdefault(outcome.model, row[threshold])
    assert first == {"churn": 5.0, "fraud-1": 12.0}
    assert traced.alarms == EstimatorSet(BY_MODEL).fold(outcomes)


def test_folds_have_the_detectors_of_their_model():
    outcomes = list(mixed([fold_name("fraud-1", k) for k in range(3)], 3_000))
    own = EstimatorSet(replace(SPEC, detectors=STRICT))
    assert EstimatorSet(BY_MODEL).fold(outcomes) == own.fold(outcomes)


def test_a_restart_changes_nothing():
    outcomes = list(mixed(list(ALL_ALIKE), 6_000))
    whole, before, after = EstimatorSet(BY_MODEL), EstimatorSet(BY_MODEL), EstimatorSet(BY_MODEL)
    whole.fold(outcomes)
    before.fold(outcomes[:3_500])
    for model in before.models():
        after.restore(before.snapshot(model))
    after.fold(outcomes[3_500:])
    assert {m: after.snapshot(m) for m in ALL_ALIKE} == {m: whole.snapshot(m) for m in ALL_ALIKE}
    assert spec_of(document_of(BY_MODEL)) == (BY_MODEL, ())


def test_other_parameters_restart_the_detectors_of_the_models_they_are_for():
    outcomes = list(mixed(["churn", "fraud-1"], 3_000))
    before, after = EstimatorSet(SPEC), EstimatorSet(BY_MODEL)
    before.fold(outcomes)
    for model in before.models():
        after.restore(before.snapshot(model))
    assert series(after, "churn") == series(before, "churn")
    assert series(after, "fraud-1")["alarms_total", ("page_hinkley", "fraud-1")] == 0
    assert series(before, "fraud-1")["alarms_total", ("page_hinkley", "fraud-1")] > 0
    new = set(after.estimators().values()) - set(before.estimators().values())
    assert "page_hinkley of fraud-[12]" in new


def test_detectors_of_another_kind_or_name_are_refused():
    for detectors in ((PageHinkleySpec(),), (AdwinDriftSpec(), PageHinkleySpec())):
        with pytest.raises(ValueError, match=r"detectors of fraud-\* must be of the kinds and names"):
            EstimatorSet(replace(SPEC, detectors_by_model=(ModelDetectors("fraud-*", detectors),)))


@pytest.mark.slow
def test_another_delta_of_adwin_has_a_window_of_its_own():
    """As many windows as the shared layout has, or other kernels would be compiled for this."""
    index = next(i for i, d in enumerate(EVERYTHING.detectors) if d.name == "adwin_down")
    plain = list(EVERYTHING.detectors)
    plain[index] = AdwinDriftSpec("adwin_down", direction="both")
    spec = replace(EVERYTHING, detectors=tuple(plain))
    fraud = replace(spec, detectors_by_model=(ModelDetectors("fraud-*", EVERYTHING.detectors),))
    nobody = replace(spec, detectors_by_model=(ModelDetectors("nobody", EVERYTHING.detectors),))
    outcomes = list(mixed(["churn", "fraud-1"], 6_000))
    alarms = EstimatorSet(fraud).fold(outcomes)
    for model, alone in (("churn", EstimatorSet(nobody)), ("fraud-1", EstimatorSet(EVERYTHING))):
        own = alone.fold([outcome for outcome in outcomes if outcome.model == model])
        assert [alarm for alarm in alarms if alarm.model == model] == own
        assert any(alarm.detector == "adwin_down" for alarm in own)
