"""Expected false alarms: between the measured rates, a part of which is simulated again; and their words."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from streamwatch.core.estimators.detectors.ddm import DdmSpec
from streamwatch.core.estimators.notifying.false_alarms import (
    CORRELATIONS,
    ERRORS,
    LEAST,
    MONTH_MS,
    RATES,
    SHORTEST_MS,
    in_words,
    monthly,
    rate,
)
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Alarm, Outcome
from streamwatch.core.specs import AdwinDriftSpec, ModelDetectors, MonitorsSpec, PageHinkleySpec
from tests.calibration.false_alarm_rates import CHUNK, SPECS, counts
from tests.layouts import DEFAULT

PAGE_HINKLEY, ADWIN = PageHinkleySpec(), AdwinDriftSpec()


def test_the_defaults_are_the_detectors_whose_rates_are_known() -> None:
    assert set(RATES) == set(MonitorsSpec().detectors) == set(SPECS)


@pytest.mark.parametrize("spec", list(RATES))
def test_at_what_was_measured_it_is_what_was_measured(spec: PageHinkleySpec | AdwinDriftSpec) -> None:
    for rho, row in zip(CORRELATIONS, RATES[spec], strict=True):
        for error, measured in zip(ERRORS, row, strict=True):
            assert rate(spec, error, rho) == pytest.approx(max(measured, LEAST))


def test_between_it_is_the_geometric_mean() -> None:
    """Page-Hinkley at .2 and .3 without dependence: 1.27 and 2.89; at .2 with .2 and .5: .65 and .13."""
    assert rate(PAGE_HINKLEY, 0.25, 0.0) == pytest.approx(math.sqrt(1.27 * 2.89))
    assert rate(PAGE_HINKLEY, 0.2, 0.35) == pytest.approx(math.sqrt(0.65 * 0.13))
    corners = (0.19, 0.22, 0.29, 0.17)
    assert rate(ADWIN, 0.15, 0.65) == pytest.approx(math.prod(corners) ** 0.25)


def test_outside_it_is_that_of_the_nearest_error_and_of_no_correlation() -> None:
    assert rate(ADWIN, 0.001, 0.8) == rate(ADWIN, 0.01, 0.8) == pytest.approx(1.06)
    assert rate(ADWIN, 0.9, 0.8) == pytest.approx(0.19)
    assert rate(PAGE_HINKLEY, 0.5, -0.4) == pytest.approx(4.27)


@pytest.mark.parametrize(
    ("spec", "error", "rho"),
    [
        (PageHinkleySpec(threshold=60.0), 0.2, 0.0),
        (DdmSpec(), 0.2, 0.0),
        (PAGE_HINKLEY, 0.2, 0.81),
        (PAGE_HINKLEY, math.nan, 0.0),
        (PAGE_HINKLEY, 0.2, math.nan),
    ],
)
def test_where_nothing_was_measured_nothing_is_known(spec: PageHinkleySpec, error: float, rho: float) -> None:
    assert rate(spec, error, rho) is None
    assert monthly(spec, error, rho, 10**6, MONTH_MS) is None


def test_the_name_of_a_detector_does_not_matter() -> None:
    assert rate(PageHinkleySpec(name="strict"), 0.5, 0.0) == pytest.approx(4.27)


def test_a_month_of_outcomes_at_the_models_rate() -> None:
    """100,000 outcomes in 10 days are 300,000 in 30: three times the rate in 100,000."""
    assert monthly(PAGE_HINKLEY, 0.5, 0.0, 100_000, MONTH_MS // 3) == pytest.approx(3 * 4.27)
    assert monthly(PAGE_HINKLEY, 0.5, 0.0, 100_000, SHORTEST_MS - 1) is None


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (90.0, "about 3 a day"),
        (29.0, "about 1 a day"),
        (3.2, "about 3 a month"),
        (1.0, "about 1 a month"),
        (0.5, "about 6 a year"),
        (0.09, "about 1 a year"),
        (0.01, "less than 1 a year"),
        (0.0, "less than 1 a year"),
    ],
)
def test_words(expected: float, words: str) -> None:
    assert in_words(expected) == words


@pytest.mark.slow
@pytest.mark.parametrize(("error", "rho"), [(0.3, 0.0), (0.2, 0.5), (0.1, 0.8)])
def test_a_part_of_the_table_simulated_from_another_seed(error: float, rho: float) -> None:
    """Alarms in a million outcomes are a Poisson number, to 1 in 1,000, of what the table says of them."""
    found = counts(error, rho, CHUNK, seed=77)
    column = ERRORS.index(error)
    for spec, alarms in zip(SPECS, found, strict=True):
        expected = 10.0 * RATES[spec][CORRELATIONS.index(rho)][column]
        measured = 10.0 * expected  # the table is itself a count in ten times as many outcomes
        low = stats.poisson.ppf(0.0005, max(expected - 4 * math.sqrt(measured) / 10, 0.0))
        high = stats.poisson.ppf(0.9995, expected + 4 * math.sqrt(measured) / 10 + 0.1)
        assert low <= alarms <= high, (spec.name, alarms, expected)


BEGIN_MS = 1_700_000_000_000


def outcomes_of(model: str, number: int, step_ms: int, repeat: float) -> list[Outcome]:
    rng, made, wrong = random.Random(3), list[Outcome](), False
    for at in range(number):
        wrong = wrong if rng.random() < repeat else rng.random() < 0.2
        made.append(Outcome(model, "a", "b" if wrong else "a", BEGIN_MS + step_ms * at, 5))
    return made


def alarm_of(outcomes: list[Outcome], detector: str = "page_hinkley", before: float = 0.2) -> Alarm:
    last = outcomes[-1]
    return Alarm(
        last.model, detector, 1, len(outcomes), last.event_ms, last.event_ms, 51.0, 50.0, before, 0.4, 900.0
    )


def test_a_model_has_its_own_rate_and_correlation() -> None:
    """An outcome a minute, 4,000 of them, repeating with probability .5: by NumPy's correlation."""
    monitors = EstimatorSet(replace(DEFAULT, max_models=4))
    outcomes = outcomes_of("m", 4_000, 60_000, 0.5)
    monitors.fold(outcomes)
    losses = np.array([outcome.true_class != outcome.predicted_class for outcome in outcomes], float)
    rho = float(np.corrcoef(losses[1:], losses[:-1])[0, 1])
    found = monitors.facts.false_alarms_monthly(alarm_of(outcomes))
    known = rate(PAGE_HINKLEY, 0.2, rho)
    assert known is not None
    assert found == pytest.approx(known / 1e5 * MONTH_MS / 60_000, rel=0.01)


def test_of_a_verdict_a_fold_another_model_or_another_order_nothing_is_known() -> None:
    monitors = EstimatorSet(replace(DEFAULT, max_models=4))
    outcomes = outcomes_of("m", 4_000, 60_000, 0.0)
    monitors.fold(outcomes)
    made = alarm_of(outcomes)
    assert monitors.facts.false_alarms_monthly(made) is not None
    for changed in (
        {"detector": "verdict"},
        {"model": "other"},
        {"predicted_ms": 5},
        {"event_ms": outcomes[0].event_ms + SHORTEST_MS - 1},
    ):
        fields = {name: getattr(made, name) for name in made.__struct_fields__} | changed
        assert monitors.facts.false_alarms_monthly(Alarm(**fields)) is None, changed


def test_a_model_with_other_parameters_has_no_known_rate() -> None:
    stricter = tuple(
        replace(spec, threshold=80.0) if isinstance(spec, PageHinkleySpec) else spec
        for spec in DEFAULT.detectors
    )
    spec = replace(DEFAULT, max_models=4, detectors_by_model=(ModelDetectors("m*", stricter),))
    monitors = EstimatorSet(spec)
    outcomes = outcomes_of("m", 4_000, 60_000, 0.0)
    monitors.fold(outcomes)
    assert monitors.facts.false_alarms_monthly(alarm_of(outcomes)) is None
    assert monitors.facts.false_alarms_monthly(alarm_of(outcomes, "adwin")) is not None
