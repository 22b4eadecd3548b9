"""What is simulated: one thing at a time changed from a base of 1,000 predictions a day over 160 days.

In `HELD` the delay depends on the outcome and the class only and losses are correlated by at most .8: every
claim there is a false one, and few are allowed. `NOT_HELD` are worlds for which nothing is promised. In
`CHANGES` the model does become worse.
"""

from __future__ import annotations

import numpy as np

from tests.calibration.cohorts import worlds
from tests.calibration.cohorts.worlds import World, constant, ramp, step, weekly

EQUAL = World("equal")
MOVING = (ramp(0.3, 0.1, 60, 120), ramp(0.2, 0.4, 60, 120))
"""Shares of two classes; the third keeps one half, and the model is right with .5."""
SECOND_MS = 1_000


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
        delays=worlds.in_weekly_batches,
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

CHANGES = tuple(
    World(
        f"+.05 → {after - 0.85:+.2f}",
        accuracy=step(0.9, after),
        length=220.0,
        change=100.0,
    )
    for after in (0.83, 0.80, 0.75, 0.65)
)
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
EVERY = (*HELD, *NOT_HELD, *CHANGES, THOUSAND_A_SECOND)
NO_CHANGE = frozenset({"labels that repeat the last known one late, lead over no change"})
"""Worlds in which the lead over no change is 0, not that over the majority."""
AHEAD = frozenset(world.name for world in HELD if "ahead" in world.name)
"""Worlds in which "better" is true."""
