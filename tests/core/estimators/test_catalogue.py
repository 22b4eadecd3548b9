"""The catalogue is complete, its names are exportable, and its ranges are given in words."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import get_args

import pytest

from streamwatch.core.estimators import catalogue
from streamwatch.core.estimators.catalogue import (
    BASELINES,
    BOUNDS,
    DETECTORS,
    DRIFT_WEIGHTED,
    MEASURES,
    MECHANISMS,
    PER_CLASS,
)
from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.estimators.detectors.ddm import DdmSpec
from streamwatch.core.estimators.detectors.hddm_a import HddmASpec
from streamwatch.core.specs import (
    AdwinSpec,
    DriftWeightedSpec,
    FadingSpec,
    ForgettingSpec,
    LandmarkSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
)
from tests.core.estimators.measures import plain_measures, plain_uncertainty

ENTRIES = (*MECHANISMS, *DETECTORS, *DRIFT_WEIGHTED)


def test_every_kind_an_operator_can_configure_has_one_line():
    assert [e.spec for e in MECHANISMS] == list(get_args(ForgettingSpec))
    assert [e.spec for e in DETECTORS] == [kind.spec for kind in KINDS]
    assert {type(d) for d in MonitorsSpec().detectors} <= {e.spec for e in DETECTORS}
    assert [e.spec for e in DRIFT_WEIGHTED] == [DriftWeightedSpec]


def test_a_mechanism_and_a_detector_are_named_as_their_labels_are():
    defaults = MonitorsSpec()
    assert [e.name for e in MECHANISMS] == [f.name.split(":")[0] for f in defaults.forgetting]
    assert [e.name for e in DETECTORS] == [e.spec().name for e in DETECTORS]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.spec.__name__)
def test_every_field_of_a_spec_is_a_parameter_with_a_default_in_its_range(entry):
    names = {f.name for f in fields(entry.spec)} - {"name"}
    assert {p.name for p in entry.parameters} == names
    for parameter in entry.parameters:
        assert parameter.problem(entry.defaults()[parameter.name]) is None
    assert catalogue.problems(entry.spec()) == []


def test_every_measure_bound_and_baseline_has_a_plain_twin():
    assert {m.name for m in MEASURES} == {*plain_measures.MEASURES, *plain_uncertainty.MEASURES}
    assert {b.name for b in BOUNDS} == set(plain_uncertainty.BOUNDS)
    assert {b.name for b in BASELINES} == {*plain_measures.BASELINES, *plain_measures.MARKED}
    assert {m.name for m in PER_CLASS} == set(plain_measures.PER_CLASS)


def test_series_names_follow_the_conventions_of_prometheus():
    names = [m.name for m in catalogue.metrics()]
    assert len(set(names)) == len(names)
    for metric in catalogue.metrics():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name)
        assert (metric.kind == "counter") == metric.name.endswith("_total")
        assert list(metric.labels) == sorted(metric.labels)
        assert metric.help
        assert "\n" not in metric.help


def test_help_of_what_forgets_says_that_decay_is_per_outcome():
    for metric in catalogue.metrics():
        if "forgetting" in metric.labels and metric.name != "adwin_window_outcomes":
            assert "per outcome, not per second" in metric.help, metric.name


@pytest.mark.parametrize(
    ("spec", "parameter", "problem"),
    [
        (FadingSpec(1.2), "alpha", "fading factor must be in [0.001, 1), got 1.2"),
        (FadingSpec(0.0), "alpha", "fading factor must be in [0.001, 1), got 0.0"),
        (FadingSpec(float("nan")), "alpha", "fading factor must be in [0.001, 1), got nan"),
        (SlidingSpec(0), "size", "window size must be a whole number in [1, 10000000], got 0"),
        (SlidingSpec(2.5), "size", "window size must be a whole number in [1, 10000000], got 2.5"),
        (AdwinSpec(delta=1.0), "delta", "confidence must be in (0, 1), got 1.0"),
        (
            AdwinSpec(min_subwindow=4),
            "min_subwindow",
            "smallest sub-window must be a whole number in [5, 1000000], got 4",
        ),
        (
            HddmASpec(delta=0.01, warning_delta=0.005),
            "warning_delta",
            "confidence of a warning must be larger than delta (0.01), got 0.005",
        ),
        (
            DdmSpec(warning_level=3.0),
            "alarm_level",
            "alarm level must be larger than warning_level (3.0), got 3.0",
        ),
        (PageHinkleySpec(threshold=0), "threshold", "threshold (λ) must be in (0, inf), got 0"),
        (PageHinkleySpec(form="round"), "form", "form must be one of clipped, paper, got 'round'"),
        (PageHinkleySpec(min_outcomes=True), "min_outcomes", None),
        (DriftWeightedSpec(w_avg=1.0), "w_avg", "average weight after a drift must be in (1, 1000], got 1.0"),
    ],
)
def test_a_parameter_out_of_its_range_is_named_with_what_was_expected_and_got(spec, parameter, problem):
    (found,) = catalogue.problems(spec)
    assert found[0] == parameter
    assert problem is None or found[1] == problem


def test_a_fading_factor_of_one_is_landmark_and_refused_but_a_window_of_one_is_allowed():
    assert catalogue.problems(FadingSpec(1.0)) == [("alpha", "fading factor must be in [0.001, 1), got 1.0")]
    assert catalogue.problems(SlidingSpec(1)) == []
    assert catalogue.problems(LandmarkSpec()) == []


def test_a_series_and_a_kind_are_found_by_name_and_by_spec():
    assert catalogue.metric("kappa").labels == ("forgetting", "model")
    assert catalogue.entry(AdwinSpec()).name == "adwin"
    with pytest.raises(KeyError):
        catalogue.metric("kafka_up")
