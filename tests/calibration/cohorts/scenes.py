"""What is simulated: one thing at a time changed from a base of 1,000 predictions a day over 160 days.

In `HELD` the delay depends on the outcome and the class only and losses are correlated by at most .8: every
claim there is a false one, and few are allowed. `NOT_HELD` are worlds for which nothing is promised. In
`CHANGES` the model does become worse.
"""

from __future__ import annotations

import numpy as np

from tests.calibration.cohorts import adverse, worlds
from tests.calibration.cohorts.worlds import Floats, World, constant, ramp, step, weekly

EQUAL = World("equal")
MOVING = (ramp(0.3, 0.1, 60, 120), ramp(0.2, 0.4, 60, 120))
"""Shares of two classes; the third keeps one half, and the model is right with .5."""
SECOND_MS = 1_000


def in_bursts(t: Floats) -> Floats:
    """Share of a class, in seconds: .2 in one minute of twenty."""
    return np.where(t % 1_200.0 < 60.0, 0.2, 0.0)


def by_day(t: Floats) -> Floats:
    """Volume, in days: none from 20 to 8 h, tenfold from 12 to 13 h, × 5 from day 100 on."""
    hour = 24.0 * (t % 1.0)
    is_open = (hour >= 8.0) & (hour < 20.0)
    of_hour = np.where((hour >= 12.0) & (hour < 13.0), 10.0, 1.0)
    return np.where(is_open, of_hour * 24.0 / 21.0, 0.0) * np.where(t < 100.0, 1.0, 5.0)


def equal(name: str, **changes: object) -> World:
    return EQUAL.but(name=name, **changes)


def grown(name: str, **changes: object) -> World:
    """Volume × 5 at day 100."""
    return equal(name, volume=step(1.0, 5.0), **changes)


HELD = (
    equal("steady"),
    grown("volume × 5"),
    equal("volume × 10", volume=step(1.0, 10.0)),
    equal("volume ÷ 10", volume=step(1.0, 0.1)),
    equal("weekly volume, then × 5", volume=lambda t: weekly(t) * np.where(t < 100, 1.0, 5.0)),
    equal("volume grows to × 5 in 60 days", volume=ramp(1.0, 5.0)),
    grown("ahead by .05, volume × 5", accuracy=constant(0.9)),
    equal(
        "ahead by .05, volume ÷ 10, errors late",
        accuracy=constant(0.9),
        delays=worlds.by_error,
        volume=step(1.0, 0.1),
    ),
    grown("errors late, × 5", delays=worlds.by_error),
    equal("delays by class, ÷ 10", delays=worlds.by_class, volume=step(1.0, 0.1)),
    grown(
        "three classes, shares move, delays by class, × 5",
        accuracy=constant(0.5),
        shares=MOVING,
        delays=worlds.by_class,
    ),
    grown(
        "the same, delays by class and outcome",
        accuracy=constant(0.5),
        shares=MOVING,
        delays=worlds.by_hit_and_class,
    ),
    grown("two equal classes, × 5", accuracy=constant(0.5), shares=(constant(0.5),)),
    grown("heavy-tailed delays, × 5", delays=worlds.heavy),
    grown("no labels at weekends, × 5", delays=worlds.without_weekends),
    equal(
        "labels in weekly batches, × 5, 700 days",
        delays=worlds.in_batches(7.0),
        volume=step(1.0, 5.0, 450.0),
        length=700.0,
    ),
    equal(
        "hits labelled after 30 days, × 5, 300 days",
        delays=worlds.dispute_window,
        volume=step(1.0, 5.0, 220.0),
        length=300.0,
    ),
    equal("10 a day, then 50, 600 days", rate=10.0, length=600.0, volume=step(1.0, 5.0, 400.0)),
    equal(
        "10 a day, then 50, correlation .8, 3,000 days",
        rate=10.0,
        length=3_000.0,
        volume=step(1.0, 5.0, 2_000.0),
        correlation=0.8,
    ),
    grown("correlation .5, × 5", correlation=0.5),
    grown("correlation .8, × 5", correlation=0.8),
    grown("accuracy wanders, time constant 50, × 5", wander=(50.0, 0.11)),
    World(
        "labels within seconds, 5 a second, first day",
        rate=5.0,
        length=86_400.0,
        horizon=7 * 86_400.0,
        unit_ms=SECOND_MS,
        delays=worlds.two_means(3.0, 0.5),
        volume=step(1.0, 3.0, 43_200.0),
    ),
    World(
        "the same, even volume, half of the errors two hours late",
        accuracy=constant(0.985),
        shares=(constant(0.015),),
        rate=5.0,
        length=86_400.0,
        horizon=7 * 86_400.0,
        unit_ms=SECOND_MS,
        delays=worlds.half_of_errors_late,
    ),
)

NOT_HELD = (
    grown("correlation .95, × 5", correlation=0.95),
    equal("hits after 15, from day 100 on 22 days", delays=worlds.changing(step(15.0, 22.0)), length=240.0),
    equal("hits after 15, rising to 22 days in 60", delays=worlds.changing(ramp(15.0, 22.0)), length=240.0),
    grown("delays grow with the root of volume, × 3", delays=worlds.with_volume, length=240.0).but(
        volume=step(1.0, 3.0)
    ),
    equal("the same, weekly volume", delays=worlds.with_volume, volume=weekly),
    equal(
        "labels that repeat the last known one late, lead over no change",
        accuracy=constant(0.5),
        shares=(constant(0.5),),
        delays=worlds.by_no_change,
        length=260.0,
    ),
    World(
        "labels within seconds, accuracy wanders for a minute",
        rate=20.0,
        length=6 * 3_600.0,
        horizon=86_400.0,
        unit_ms=SECOND_MS,
        wander=(1_200.0, 0.11),
        delays=worlds.two_means(3.0, 0.5),
    ),
)

HELD_TOO = (
    equal(
        "no predictions on days 85 to 95, then × 5",
        volume=lambda t: np.where((t > 85) & (t < 95), 0.0, np.where(t < 95, 1.0, 5.0)),
    ),
    equal("predictions on one day in seven only", volume=lambda t: np.where(t % 7.0 < 1.0, 7.0, 0.0)),
    equal(
        "predictions every other month", volume=lambda t: np.where(t % 60.0 < 30.0, 2.0, 0.0), length=300.0
    ),
    equal("10 a day, then 1,000, 500 days", rate=10.0, length=500.0, volume=step(1.0, 100.0, 400.0)),
    equal(
        "two equal classes, delays by class and outcome, weekly volume",
        accuracy=constant(0.5),
        shares=(constant(0.5),),
        delays=worlds.by_hit_and_class,
        volume=weekly,
    ),
    equal(
        "three classes, shares swing weekly, delays by class and outcome",
        accuracy=constant(0.5),
        shares=(
            lambda t: 0.25 + 0.2 * np.sin(2 * np.pi * t / 7),
            lambda t: 0.25 - 0.2 * np.sin(2 * np.pi * t / 7),
        ),
        delays=worlds.by_hit_and_class,
    ),
    grown("a third of hits after 45 days, of errors none, × 5", delays=adverse.mostly_quick(1 / 3, 0.0)),
    grown("a third of errors after 45 days, of hits none, × 5", delays=adverse.mostly_quick(0.0, 1 / 3)),
    grown(
        "a third never labelled, whatever the outcome, × 5", delays=adverse.mostly_quick(1 / 3, 1 / 3, 80.0)
    ),
    grown("1,000 labels a day at most, drawn evenly, × 5", delays=adverse.as_capacity_allows),
    grown(
        "another version on day 100, right elsewhere, × 5",
        drawn=adverse.another_version(100.0),
        delays=worlds.by_hit(),
    ),
    grown(
        "groups of five with one outcome and one delay, × 5",
        drawn=adverse.in_groups(np.array([5])),
        delays=adverse.together(worlds.by_hit()),
    ),
    grown("clocks of half of the predictions half a day ahead, × 5", clock=adverse.ahead_of_time(0.5)),
    equal(
        "weekly volume about the limit of ages, correlation .8",
        rate=130.0,
        volume=weekly,
        correlation=0.8,
        length=400.0,
    ),
    equal(
        "labels in office hours, due after 6 h and 1 h, 5,000 a day",
        rate=5_000.0,
        length=60.0,
        horizon=7.0,
        delays=adverse.in_office_hours(0.25, 0.04),
        volume=step(1.0, 3.0, 40.0),
    ),
    HELD[-1].but(name="half of the errors two hours late, × 10 at noon", volume=step(1.0, 10.0, 43_200.0)),
    equal(
        "nine classes, shares of the last two move, delays by class, × 5",
        accuracy=constant(0.49),
        shares=MOVING,
        drawn=adverse.moved_up(6),
        delays=adverse.by_high_class(7),
        volume=step(1.0, 5.0),
        length=310.0,
    ),
    equal(
        "10 a day, three classes, two of which are labelled after 30 days",
        accuracy=constant(0.7),
        shares=(constant(0.15), constant(0.15)),
        delays=adverse.first_class_soon,
        rate=10.0,
        length=700.0,
    ),
    equal(
        "100 a day, five classes of .01 are labelled after 30 days",
        accuracy=constant(0.95),
        shares=(constant(0.01),) * 5,
        delays=adverse.first_class_soon,
        rate=100.0,
        length=300.0,
    ),
    equal(
        "13 a day, the rarer class is labelled after 30 days",
        delays=adverse.first_class_soon,
        rate=13.0,
        length=900.0,
    ),
    equal(
        "no labels on two days a week, then all, due after 3 and .5 days, × 5",
        delays=adverse.down_each_week(3.0, 0.5),
        horizon=14.0,
        length=100.0,
        volume=step(1.0, 5.0, 60.0),
    ),
    equal(
        "no labels on two days a week, then all, due after 3 and .5 days, 500 a day, × 20",
        delays=adverse.down_each_week(3.0, 0.5),
        horizon=14.0,
        rate=500.0,
        length=100.0,
        volume=step(1.0, 20.0, 60.0),
    ),
    equal(
        "labels on working days from 8 to 18 h, due after 6 h and 1 h, 3 a minute by day",
        rate=4_320.0,
        volume=lambda t: 1.0 + 0.8 * np.sin(2 * np.pi * (t - 0.3)),
        delays=adverse.in_office_hours(0.25, 0.04, days=5),
        horizon=14.0,
        length=70.0,
    ),
    equal(
        "hours: two of three classes swap shares, day and night their volume, delays by class and outcome",
        accuracy=constant(0.5),
        shares=(step(0.35, 0.15, 400.0), step(0.15, 0.35, 400.0)),
        volume=lambda t: 1.0 + 0.9 * np.sin(2 * np.pi * t / 24.0) * np.where(t < 400.0, 1.0, -1.0),
        delays=worlds.by_hit_and_class,
        rate=300.0,
        unit_ms=3_600_000,
        length=700.0,
    ),
    equal(
        "a class of .002 labelled after 30 days, as many errors, 5,000 a day",
        accuracy=constant(0.998),
        shares=(constant(0.002),),
        delays=adverse.first_class_soon,
        rate=5_000.0,
    ),
    equal(
        "hits late in one half of the traffic, errors in the other, their mix swings weekly",
        delays=adverse.of_two_sorts(lambda t: 0.5 + 0.4 * np.sin(2 * np.pi * t / 7)),
    ),
    grown(
        "all labels within the last six days of the horizon, × 5",
        delays=adverse.just_within_the_horizon,
        rate=300.0,
        length=400.0,
    ),
    equal(
        "labels in monthly batches, 100 a day, × 5, 2,000 days",
        delays=worlds.in_batches(30.0),
        volume=step(1.0, 5.0, 1_000.0),
        rate=100.0,
        horizon=90.0,
        length=2_000.0,
    ),
    equal(
        "twelve hours without predictions, × 10 at noon, delays by class and outcome",
        accuracy=constant(0.5),
        shares=(constant(0.5),),
        delays=worlds.by_hit_and_class,
        volume=by_day,
    ),
    equal(
        "a class of .002 labelled after 30 days, .1 from day 100",
        accuracy=step(0.698, 0.6),
        shares=(constant(0.3), step(0.002, 0.1)),
        delays=adverse.last_class_late(30.0, 3.0, 2),
        length=240.0,
    ),
    World(
        "20 a second, labelled within seconds, but a class of .004 after two hours, .03 from noon",
        accuracy=step(0.996, 0.97, 43_200.0),
        shares=(step(0.004, 0.03, 43_200.0),),
        delays=adverse.second_class_late(7_200.0, 1.0, 60.0),
        rate=20.0,
        length=86_400.0,
        horizon=7 * 86_400.0,
        unit_ms=SECOND_MS,
    ),
    World(
        "5 a second, labelled within seconds, but a class after two hours, .2 in a minute of 20",
        accuracy=lambda t: 1.0 - in_bursts(t),
        shares=(in_bursts,),
        delays=adverse.second_class_late(7_200.0, 1.0, 60.0),
        rate=5.0,
        length=86_400.0,
        horizon=7 * 86_400.0,
        unit_ms=SECOND_MS,
    ),
)
"""Worlds that were looked for to break the promise, within what it assumes."""
NOT_HELD_TOO = (
    equal(
        "a class of .0003 labelled after 30 days, .1 from day 100",
        accuracy=step(0.6997, 0.6),
        shares=(constant(0.3), step(0.0003, 0.1)),
        delays=adverse.last_class_late(30.0, 3.0, 2),
        length=240.0,
    ),
    grown(
        "a third of errors never labelled, × 5", delays=adverse.mostly_quick(0.0, 1 / 3, 80.0), length=240.0
    ),
    equal(
        "a third class from day 100 on, labelled after 30 days",
        accuracy=step(0.7, 0.6),
        shares=(constant(0.3), ramp(0.0, 0.1, 100.0, 100.01)),
        delays=adverse.first_two_soon,
        length=240.0,
    ),
    equal(
        "hits late in one half of the traffic, errors in the other, their mix swings in 60 days",
        delays=adverse.of_two_sorts(lambda t: 0.5 + 0.4 * np.sin(2 * np.pi * t / 60)),
        length=300.0,
    ),
    equal(
        "hits late in .8 of the traffic, errors in the rest, from day 100 on the other way round",
        delays=adverse.of_two_sorts(step(0.2, 0.8)),
        length=240.0,
    ),
    grown("the rarer class never labelled", delays=adverse.without_class(1), length=240.0),
    equal(
        "horizon of 10 days, hits after 15 days on average", delays=adverse.beyond_the_horizon, horizon=10.0
    ),
    equal("no labels from day 100 to 110, then all", delays=adverse.paused(100.0, 110.0), length=240.0),
    equal(
        "1,200 labelled a day, errors first, volume × 1.5 on days 100 to 120",
        delays=adverse.in_a_queue(1_200.0),
        volume=lambda t: np.where((t > 100) & (t < 120), 1.5, 1.0),
        length=240.0,
    ),
    equal(
        "clocks of half of the predictions 3 days ahead from day 100 on",
        clock=adverse.ahead_of_time(3.0, 100.0),
        length=240.0,
    ),
    grown(
        "groups of 1 (95 %) or 400, one outcome and delay, × 5",
        drawn=adverse.in_groups(np.array([1] * 95 + [400] * 5)),
        delays=adverse.together(worlds.by_hit()),
    ),
    equal(
        "right with .90 by day, .80 at night", accuracy=lambda t: 0.85 + np.where(t % 1.0 < 0.5, 0.05, -0.05)
    ),
    equal(
        "right with .90 in one week, .80 in the next",
        accuracy=lambda t: 0.85 + np.where(t % 14.0 < 7.0, 0.05, -0.05),
    ),
)

CHANGES = tuple(
    World(
        f"+.05 → {after - 0.85:+.2f}",
        accuracy=step(0.9, after),
        length=220.0,
        change=100.0,
    )
    for after in (0.83, 0.80, 0.75, 0.65)
)
RHYTHMS = (
    World(
        "no labels on two days a week, +.05 → -.05",
        delays=adverse.down_each_week(3.0, 0.5),
        accuracy=step(0.9, 0.8, 60.0),
        horizon=14.0,
        length=100.0,
        change=60.0,
    ),
    World(
        "labels on working days from 8 to 18 h, +.05 → -.05",
        rate=4_320.0,
        volume=lambda t: 1.0 + 0.8 * np.sin(2 * np.pi * (t - 0.3)),
        delays=adverse.in_office_hours(0.25, 0.04, days=5),
        accuracy=step(0.9, 0.8, 60.0),
        horizon=14.0,
        length=100.0,
        change=60.0,
    ),
)
"""Falls where labels come in a rhythm that is longer than most delays."""
THOUSAND_A_SECOND = World(
    "1,000 a second, 3 hours, horizon 10 minutes, × 2",
    rate=1_000.0,
    length=10_800.0,
    horizon=600.0,
    unit_ms=SECOND_MS,
    delays=worlds.two_means(100.0, 20.0),
    volume=step(1.0, 2.0, 7_200.0),
)
"""Ten million predictions: few runs."""
EVERY = (*HELD, *HELD_TOO, *NOT_HELD, *NOT_HELD_TOO, *CHANGES, *RHYTHMS, THOUSAND_A_SECOND)
NO_CHANGE = frozenset({"labels that repeat the last known one late, lead over no change"})
"""Worlds in which the lead over no change is 0, not that over the majority."""
AHEAD = frozenset(world.name for world in HELD if "ahead" in world.name)
"""Worlds in which "better" is true."""
