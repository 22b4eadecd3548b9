"""Corrected for late labels, accuracy is right where what is seen is not; changes are located as promised.

Figures of METRICS §11 with the ring, at which `late_figures` looks more closely.
"""

from __future__ import annotations

import pytest

from tests.calibration.late_runs import (
    SCENES,
    STEADY,
    changes_in_runs_of,
    changes_of,
    delayed_changes_of,
    figures_of,
    window_figures_of,
)
from tests.tiers import by_tier

RUNS = by_tier(fast=20, default=40, everything=400)
LEAST_COVERAGE = by_tier(fast=0.8, default=0.85, everything=0.9)
"""Of intervals of 95 %: less 3 standard errors of so many runs, and what the bias takes after a change."""


@pytest.mark.parametrize("scene", SCENES[:5], ids=lambda scene: scene.name)
def test_corrected_accuracy_is_right_and_its_interval_holds(scene) -> None:
    figures = figures_of(scene, RUNS)
    assert abs(figures.bias) <= 0.012
    assert figures.coverage >= LEAST_COVERAGE
    assert figures.n_eff >= 1_000


def test_the_settled_accuracy_is_right_where_a_window_leaves_the_corrected_one_undefined() -> None:
    figures = window_figures_of(30.0, 45.0, RUNS, growth=5.0)
    assert figures.undefined == 1.0
    assert abs(figures.settled_bias) <= 0.005
    assert figures.settled_coverage >= LEAST_COVERAGE
    assert figures.last_bias < -0.04
    assert window_figures_of(30.0, 70.0, RUNS).undefined == 0.0


def test_the_last_labels_and_the_settled_ones_are_wrong_where_the_corrected_are_not() -> None:
    grown, shrunk, fallen = (figures_of(scene, RUNS) for scene in SCENES[2:5])
    assert grown.last_bias < -0.08
    assert shrunk.last_bias > 0.02
    assert fallen.settled_bias > 0.02
    assert grown.last_coverage == 0.0


def test_outcomes_that_are_never_labelled_cannot_be_found_out_about() -> None:
    figures = figures_of(SCENES[5], RUNS)
    assert figures.bias < -0.03
    assert figures.coverage < 0.1


def test_settled_predictions_are_right_without_any_assumption_but_for_the_labels_beyond_the_horizon() -> None:
    assert abs(figures_of(STEADY, RUNS).settled_bias) < 0.006


@pytest.mark.parametrize(("outcomes", "after"), [(20, 0.4), (100, 0.3), (100, 0.1), (1_000, 0.3)])
def test_a_change_is_located_within_a_bucket_and_its_interval_holds(outcomes, after) -> None:
    changes = changes_of(outcomes, 0.2, after, 10 * RUNS)
    assert changes.found >= 0.95
    assert changes.coverage >= 0.94
    assert changes.median_error <= 0.75


@pytest.mark.parametrize("outcomes", [5, 100])
def test_without_a_change_hardly_any_is_found(outcomes) -> None:
    assert changes_of(outcomes, 0.2, 0.2, 10 * RUNS).found <= 0.03


@pytest.mark.parametrize("correlation", [0.5, 0.8])
@pytest.mark.parametrize(("outcomes", "after", "least"), [(100, 0.4, 0.8), (1_000, 0.1, 0.95)])
def test_an_interval_holds_where_errors_come_in_runs(outcomes, after, least, correlation) -> None:
    """At least 95 %, less 3 standard errors of so many runs."""
    changes = changes_in_runs_of(outcomes, 0.2, after, correlation, 5 * RUNS)
    assert changes.found >= least
    assert changes.coverage >= 0.95 - 3 * (0.95 * 0.05 / (5 * RUNS * changes.found)) ** 0.5
    assert changes.median_error <= 1.0


@pytest.mark.parametrize("correlation", [0.5, 0.8])
@pytest.mark.parametrize("outcomes", [20, 100])
def test_runs_of_errors_are_taken_for_no_change(outcomes, correlation) -> None:
    found = changes_in_runs_of(outcomes, 0.2, 0.2, correlation, 5 * RUNS).found
    assert found <= 0.03 + 3 * (0.03 * 0.97 / (5 * RUNS)) ** 0.5


@pytest.mark.parametrize(
    ("per_day", "before", "after", "waited_days"),
    [(100, 0.1, 0.2, 10), (100, 0.1, 0.2, 30), (100, 0.1, 0.3, 60), (20, 0.1, 0.3, 30), (500, 0.2, 0.1, 10)],
)
def test_a_change_is_located_among_predictions_whose_labels_come_late(
    per_day, before, after, waited_days
) -> None:
    changes = delayed_changes_of(per_day, before, after, waited_days, 2 * RUNS)
    assert changes.found >= 0.8
    assert changes.coverage >= by_tier(fast=0.85, default=0.88, everything=0.93)
    assert changes.median_error <= 0.75


def test_quick_labels_of_errors_are_taken_for_no_change() -> None:
    assert delayed_changes_of(100, 0.1, 0.1, 10, 4 * RUNS).found <= 0.03
