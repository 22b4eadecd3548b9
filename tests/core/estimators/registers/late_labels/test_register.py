"""Late labels of a model as series and in the API: undefined is absent, and `assume` leaves one accuracy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.estimators.registers.late_labels.register import METRICS, LateLabelsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from tests.core.estimators.registers.late_labels.plain_late import plain_late
from tests.core.estimators.registers.late_labels.test_accuracy import HORIZON_MS, stream
from tests.layouts import TINY

KNOWN = stream(11, 900, 4 * HORIZON_MS)
OUTCOMES = [Outcome("m", "a", "a" if o.hit else "b", o.known_ms, o.delay_ms) for o in KNOWN]


def monitors(*, assumed: bool = False) -> EstimatorSet:
    return EstimatorSet(replace(TINY, registers=(LateLabelsSpec(HORIZON_MS, assumed),)))


def values(estimators: EstimatorSet) -> dict[str, float]:
    wanted = {metric.name for metric in METRICS}
    found = {family.name: dict(family.samples) for family in estimators.families() if family.name in wanted}
    return {name: samples["m",] for name, samples in found.items() if samples}


def test_series_and_details_are_those_of_the_rules_and_absent_before() -> None:
    estimators = monitors()
    estimators.fold(OUTCOMES[:50])
    assert values(estimators) == {}
    late = estimators.details()["m"]["late_labels"]
    assert isinstance(late, dict)
    assert not {"settled", "delay_corrected", "share_labelled"} & late.keys()
    assert late["delay_corrected_undefined"] == "too_few_settled"
    estimators.fold(OUTCOMES[50:])
    plain = plain_late(KNOWN, HORIZON_MS)
    assert plain.settled is not None
    assert plain.corrected is not None
    assert plain.naive is not None
    assert values(estimators) == pytest.approx(
        {
            "accuracy_settled_ratio": plain.settled[0],
            "accuracy_settled_effective_sample_size": plain.settled[3],
            "accuracy_delay_corrected_ratio": plain.corrected[0],
            "accuracy_delay_corrected_effective_sample_size": plain.corrected[3],
            "label_delay_bias": plain.naive - plain.corrected[0],
        },
        abs=1e-9,
    )
    late = estimators.details()["m"]["late_labels"]
    assert isinstance(late, dict)
    share, lower, upper, n_eff = plain.corrected
    assert late["delay_corrected"] == pytest.approx(
        {"accuracy": share, "lower": lower, "upper": upper, "effective_sample_size": n_eff}, abs=1e-9
    )
    assert late["share_labelled"]["errors"] == pytest.approx(plain.shares[False][1:], abs=1e-9)
    assert sum(late["by_prediction_time"]["outcomes"]) <= len(OUTCOMES)
    assert "delay_corrected_undefined" not in late


@pytest.mark.parametrize(("true", "absent"), [("a", "errors"), ("b", "hits")])
def test_how_late_labels_of_a_kind_are_is_undefined_without_any(true: str, absent: str) -> None:
    estimators = monitors()
    estimators.fold([Outcome("m", true, "a", o.known_ms, o.delay_ms) for o in KNOWN])
    late = estimators.details()["m"]["late_labels"]
    assert isinstance(late, dict)
    assert {"age_seconds", "errors", "hits"} - late["share_labelled"].keys() == {absent}


def test_where_missing_labels_count_as_a_class_only_settled_predictions_have_an_accuracy() -> None:
    estimators = monitors(assumed=True)
    estimators.fold(OUTCOMES)
    assert set(values(estimators)) == {"accuracy_settled_ratio", "accuracy_settled_effective_sample_size"}
    late = estimators.details()["m"]["late_labels"]
    assert isinstance(late, dict)
    assert not {"delay_corrected", "naive", "bias", "share_labelled"} & late.keys()
    assert "delay_corrected_undefined" not in late


@pytest.mark.parametrize(("late_kind", "why"), [("a", "hits_too_late"), ("b", "errors_too_late")])
def test_where_labels_of_one_kind_come_when_a_window_closes_it_is_reported_and_the_settled_accuracy_is_there(
    late_kind: str, why: str
) -> None:
    rng = np.random.default_rng(4)
    outcomes: list[Outcome] = []
    for made_ms in range(10**12, 10**12 + 4 * HORIZON_MS, 400):
        label = "a" if rng.random() < 0.8 else "b"
        delay_ms = round(HORIZON_MS * (0.7 if label == late_kind else 0.1 * rng.random()))
        outcomes.append(Outcome("m", label, "a", made_ms + delay_ms, delay_ms))
    estimators = monitors()
    estimators.fold(sorted(outcomes, key=lambda outcome: outcome.event_ms))
    assert set(values(estimators)) == {"accuracy_settled_ratio", "accuracy_settled_effective_sample_size"}
    late = estimators.details()["m"]["late_labels"]
    assert isinstance(late, dict)
    assert late["delay_corrected_undefined"] == why
    assert late["settled"]["lower"] < 0.8 < late["settled"]["upper"]


def test_recent_predictions_too_few_for_an_accuracy_are_distinguished_from_late_labels() -> None:
    known = stream(11, 900, 4 * HORIZON_MS)
    settled_ms = max(outcome.known_ms for outcome in known) + HORIZON_MS
    estimators = monitors()
    estimators.fold([*OUTCOMES, Outcome("m", "a", "a", settled_ms, 0)])
    late = estimators.details()["m"]["late_labels"]
    assert isinstance(late, dict)
    assert late["delay_corrected_undefined"] == "too_few_recent"


def test_another_horizon_begins_anew() -> None:
    assert LateLabelsSpec().horizon_ms == 14 * 86_400_000
    before, after = monitors(), EstimatorSet(replace(TINY, registers=(LateLabelsSpec(2 * HORIZON_MS),)))
    before.fold(OUTCOMES)
    after.restore(before.snapshot("m"))
    assert values(after) == {}
    assert "late labels (horizon 100 s)" in before.estimators().values()
