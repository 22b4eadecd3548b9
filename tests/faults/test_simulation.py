"""The reading loop over a simulated broker, disk and clock: thousands of seeds, crashes at any await."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from streamwatch.core.alarm_rules import AlarmRule, AlarmsSpec
from streamwatch.core.notices import SEVERITIES
from streamwatch.daemon.clock import SteadyClock
from streamwatch.daemon.lane import DeliverySpec
from tests.faults.simulation.alerts import Alerts, Temper
from tests.faults.simulation.backlog import jumping_clock, outage, plan_of, three_days
from tests.faults.simulation.breaking import BROKEN
from tests.faults.simulation.broker import SimFeed
from tests.faults.simulation.workload import a_plan
from tests.faults.simulation.world import World

SEEDS, BLOCK = 2_000, 100


def live(seed, *arguments, **more) -> World:
    try:
        return World(seed, *arguments, **more).run()
    except Exception as error:
        error.add_note(f"repeat it with: python -m tests.faults.simulation --first {seed} --seeds 1")
        raise


def live_all(seeds):
    for seed in seeds:
        live(seed)


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_every_record_counts_once_and_nothing_shown_or_told_is_taken_back(first):
    live_all(range(first, first + BLOCK))


def test_a_crash_at_any_turn_changes_nothing():
    plan = a_plan(7, records=16)
    turns = World(7, plan, []).run().turns[0]
    assert turns > 100
    for turn in range(1, turns):
        live(7, plan, [turn])


def test_a_crash_at_any_turn_keeps_every_notice():
    rule = AlarmRule(cooldown_ms=0, min_outcomes=0)
    receiver = Temper("pager", frozenset(SEVERITIES), slowest_seconds=0.3)
    alerts = Alerts({"often": 1}, AlarmsSpec(otherwise=rule, alarm_ttl_ms=1_000), DeliverySpec(), (receiver,))
    plan = replace(a_plan(17, records=16), alerts=alerts)
    first = World(17, plan, []).run()
    assert first.telling.ledger.counts["notices"] >= 6
    between: Counter[str] = Counter()
    for turn in range(1, first.turns[0]):
        between += live(17, plan, [turn]).telling.ledger.between
    assert between["crash, not answered"] > 0
    assert between["crash, answered"] > 0


def test_a_seed_repeats_itself():
    for seed in range(20):
        assert World(seed).run().trace == World(seed).run().trace


def test_a_seed_repeats_itself_in_another_process():
    again = subprocess.run(
        [sys.executable, "-m", "tests.faults.simulation", "--seeds", "10", "--traces"],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert again.stdout.splitlines()[:10] == [f"{seed} {World(seed).run().trace}" for seed in range(10)]


@pytest.mark.parametrize(("defect", "broken"), [("torn", 3), ("positions", 3), ("forgets", 30)])
def test_a_disk_that_breaks_its_promise_is_found_out(defect, broken):
    found = 0
    for seed in range(60):
        try:
            World(seed, defect=defect).run()
        except Exception:  # noqa: BLE001 - checks see it, or the core stumbles over it
            found += 1
    assert found >= broken


@pytest.mark.parametrize("broken", BROKEN)
def test_deliveries_that_break_a_promise_are_found_out(broken, monkeypatch):
    BROKEN[broken](monkeypatch)
    with pytest.raises(AssertionError):
        live_all(range(1_000))


def fates(plan, crashes, seed):
    """How many predictions were resolved, and labels came too late, met nobody, or found no room."""
    counters = live(seed, plan, crashes).final().counters
    forms = (counters.with_model, counters.without_model)
    return (
        counters.predictions_resolved,
        sum(form.late for form in forms),
        sum(form.orphaned for form in forms),
        sum(form.evicted for form in forms),
    )


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("stream", "crashes"),
    [(three_days, [100, 300]), (outage, [600, 300]), (jumping_clock, [900, 300, 1_200])],
)
def test_no_prediction_expires_whose_label_came_in_time(stream, crashes, seed):
    chance = Random(seed)  # noqa: S311 - a seeded simulation
    plan, labelled = plan_of(stream(chance), chance)
    assert fates(plan, crashes, seed) == (labelled, 0, 0, 0)


def test_without_time_alignment_labels_of_a_backlog_would_find_no_room(monkeypatch):
    monkeypatch.setattr(SimFeed, "pause", lambda *_: None)
    chance = Random(0)  # noqa: S311 - a seeded simulation
    plan, labelled = plan_of(three_days(chance), chance)
    resolved, _, _, evicted = fates(plan, [], 0)
    assert evicted > 20
    assert resolved < labelled


def test_a_clock_that_is_set_back_goes_on_by_itself_and_follows_when_set_forward():
    wall, monotonic = [1_000_000], [5.0]
    clock = SteadyClock(lambda: wall[0], lambda: monotonic[0])
    assert clock() == 1_000_000
    wall[0], monotonic[0] = 400, 7.5
    assert clock() == 1_002_500
    wall[0] = 2_000_000
    assert clock() == 2_000_000
    clock.not_before(3_000_000)
    assert clock() == 3_000_000


def test_troubles_do_happen():
    """Seeds without a failure of each kind would prove little."""
    lost = opened = crashed = 0
    told: Counter[str] = Counter()
    for seed in range(100):
        world = World(seed).run()
        names = [type(happening).__name__ for happening in world.telemetry.emitted]
        lost += names.count("StateLost")
        opened += names.count("StateOpened")
        crashed += len(world.turns) - 1
        told += world.telling.ledger.counts + world.telling.ledger.between
    assert lost > 40
    assert opened > 200
    assert crashed > 100
    assert told["notices"] > 200
    assert told["firing"] > 100
    assert told["resolved"] > 50
    assert told["digest"] > 20
    assert told["reminders"] > 50
    assert told["given up"] > 50
    assert told["crash, answered"] > 8
    assert told["crash, not answered"] > 8
    assert told["state lost, answered"] > 20
