"""Late labels of a model as series and in the API: undefined is absent, and `assume` leaves one accuracy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamwatch.core.estimators.registers.late_labels.register import METRICS, LateLabelsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.events import Outcome
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


def test_where_missing_labels_count_as_a_class_only_settled_predictions_have_an_accuracy() -> None:
    estimators = monitors(assumed=True)
    estimators.fold(OUTCOMES)
    assert set(values(estimators)) == {"accuracy_settled_ratio", "accuracy_settled_effective_sample_size"}
    late = estimators.details()["m"]["late_labels"]
    assert isinstance(late, dict)
    assert not {"delay_corrected", "naive", "bias", "share_labelled"} & late.keys()


def test_another_horizon_begins_anew() -> None:
    assert LateLabelsSpec().horizon_ms == 14 * 86_400_000
    before, after = monitors(), EstimatorSet(replace(TINY, registers=(LateLabelsSpec(2 * HORIZON_MS),)))
    before.fold(OUTCOMES)
    after.restore(before.snapshot("m"))
    assert values(after) == {}
    assert "late labels (horizon 100 s)" in before.estimators().values()
