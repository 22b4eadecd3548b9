"""Verdicts by cohorts in worlds of late labels: what the order of labels gets wrong, they do not.

`python -m tests.calibration.cohorts` runs every world more often and keeps its figures.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.calibration.cohorts.figures import figures_of
from tests.calibration.cohorts.rule import Variant, judge
from tests.calibration.cohorts.scenes import CHANGES, HELD, HELD_TOO, NOT_HELD, NOT_HELD_TOO, RHYTHMS
from tests.calibration.cohorts.worlds import World
from tests.tiers import by_tier

RUNS = by_tier(fast=3, default=6, everything=40)


def scene(words: str) -> World:
    """The only world with this name."""
    (found,) = [
        world for world in (*HELD, *HELD_TOO, *NOT_HELD, *NOT_HELD_TOO, *CHANGES) if world.name == words
    ]
    return found


def judged_by(**changes):
    variant = Variant()._replace(**changes)
    return lambda outcomes, horizon_ms: judge(outcomes, horizon_ms, variant)


def test_more_traffic_makes_a_good_model_worse_in_the_order_of_labels_and_not_by_cohorts() -> None:
    """Right with .90 beside a majority of .85; hits are labelled after 15 days, errors after 3."""
    figures = figures_of(scene("ahead by .05, volume × 5"), RUNS, judge)
    assert figures.false_worse_by_label_order == 1.0
    assert figures.false_worse == 0.0
    assert figures.false_better == 1.0  # it is better
    assert figures.retracted == 0.0


@pytest.mark.parametrize(
    "name",
    [
        "delays by class, ÷ 10",
        "three classes, shares move, delays by class, × 5",
        "two equal classes, × 5",
        "correlation .8, × 5",
    ],
)
def test_an_equal_model_has_no_verdict_where_delays_depend_on_outcome_and_class(name) -> None:
    figures = figures_of(scene(name), RUNS, judge)
    assert figures.false_worse == figures.false_better == 0.0
    assert np.isfinite(figures.started)


@pytest.mark.parametrize("world", HELD_TOO, ids=lambda world: world.name)
def test_worlds_that_were_looked_for_do_not_break_what_is_promised(world) -> None:
    figures = figures_of(world, 2, judge)
    assert figures.false_worse == figures.false_better == 0.0
    assert np.isfinite(figures.started)


def test_labels_that_never_come_for_errors_make_a_model_better_and_that_is_confirmed() -> None:
    """Known: what is never labelled cannot be known, so nothing retracts it."""
    figures = figures_of(scene("a third of errors never labelled, × 5"), 2, judge)
    assert figures.false_better == 1.0
    assert figures.confirmed >= 1.0
    assert figures.retracted == 0.0


def test_labels_that_wait_in_a_queue_make_a_model_worse_until_a_horizon_later() -> None:
    """Known: a queue makes delays follow the volume."""
    figures = figures_of(
        scene("1,200 labelled a day, errors first, volume × 1.5 on days 100 to 120"), 2, judge
    )
    assert figures.false_worse == 1.0
    assert figures.confirmed == 0.0
    assert figures.retracted >= 1.0
    assert 100.0 < figures.first_false < 125.0 < figures.first_retracted


@pytest.mark.parametrize("classes", ["nine", "three"])
def test_classes_that_are_labelled_otherwise_make_no_claim_false(classes) -> None:
    """Of nine, the last two share a kind; so cohorts wait for all labels."""
    moved = scene(
        f"{classes} classes, shares{' of the last two' * (classes == 'nine')} move, delays by class, × 5"
    )
    figures = figures_of(moved, 3, judge)
    assert figures.false_worse + figures.false_better == 0.0


def test_a_model_that_falls_is_called_worse_soon_and_that_is_confirmed() -> None:
    figures = figures_of(scene("+.05 → -0.10"), RUNS, judge)
    assert figures.said == 1.0
    assert figures.delay <= 16.0
    assert figures.since_off <= 1.5
    assert figures.confirmed >= 1.0
    assert figures.retracted <= 0.5


@pytest.mark.parametrize("world", RHYTHMS, ids=lambda world: world.name)
def test_a_rhythm_of_labels_hides_no_fall(world) -> None:
    """An age that is shorter than the rhythm does: φ then holds the swings of what comes within it."""
    figures = figures_of(world, RUNS, judge)
    assert (figures.said, figures.false_worse) == (1.0, 0.0)
    assert figures.delay <= 26.0
    assert figures_of(world, RUNS, judged_by(gap_factor=0.0)).said == 0.0


def test_a_rhythm_of_labels_and_a_leap_of_the_volume_make_no_claim_false() -> None:
    leap = scene("no labels on two days a week, then all, due after 3 and .5 days, 500 a day, × 20")
    assert figures_of(leap, 12, judge).false_worse == 0.0
    assert figures_of(leap, 12, judged_by(gap_factor=0.0)).false_worse > 0.0


def test_batches_of_labels_make_no_age_longer() -> None:
    """A cohort begins and ends with a batch."""
    world = scene("labels in weekly batches, × 5, 700 days")
    assert figures_of(world, 2, judge) == figures_of(world, 2, judged_by(gap_factor=0.0))


def test_a_quick_fall_of_phi_is_no_reason_to_retract() -> None:
    """Where one true change may stand in φ in full, true claims are retracted."""
    fallen = scene("+.05 → -0.10")
    assert figures_of(fallen, RUNS, judged_by(clip=1e9)).retracted > figures_of(fallen, RUNS, judge).retracted


def test_labels_that_miss_are_paid_for_where_nothing_has_settled() -> None:
    """Half of the errors come two hours late: unseen, they make an equal model better on its first day."""
    world = scene("the same, even volume, half of the errors two hours late")
    assert figures_of(world, 2, judge).false_better == 0.0
    assert figures_of(world, 2, judged_by(counts_missing=False)).false_better == 1.0


def test_where_delays_depend_on_what_the_opponent_said_early_claims_are_false_and_retracted() -> None:
    """Known: kinds are hit or miss and the class. By the sign of the lead there would be no false claim."""
    world = scene("labels that repeat the last known one late, lead over no change")
    by_outcome, by_sign = figures_of(world, 2, judge), figures_of(world, 2, judged_by(by_sign=True))
    assert by_outcome.false_better == 1.0
    assert by_outcome.retracted >= 1.0
    assert by_outcome.confirmed == 0.0
    assert by_sign.false_better == 0.0


@pytest.mark.parametrize(
    "name",
    [
        "20 a second, labelled within seconds, but a class of .004 after two hours, .03 from noon",
        "5 a second, labelled within seconds, but a class after two hours, .2 in a minute of 20",
    ],
)
def test_a_class_labelled_later_than_at_a_complete_age_makes_no_claim_false_when_it_becomes_frequent(
    name,
) -> None:
    world = scene(name)
    assert figures_of(world, RUNS, judge).said == 0.0
    assert figures_of(world, RUNS, judged_by(most_unpaid=1e9)).false_worse > 0.5
