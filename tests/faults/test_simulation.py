"""The reading loop over a simulated broker, disk and clock: thousands of seeds, crashes at any await."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random
from typing import NamedTuple

import pytest

from streamwatch.core.alerting.notification import SEVERITIES
from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec
from streamwatch.core.merge import Merge, MergeProgress
from streamwatch.core.merge.partitions import Bounds, Partitions
from streamwatch.core.ports import RecoveredState
from streamwatch.daemon import BatchProcessor
from streamwatch.daemon.deliveries import DeliverySpec
from tests.faults.simulation import simulation as world_module
from tests.faults.simulation.alerts import Alerts, Temper
from tests.faults.simulation.backlog import jumping_clock, outage, plan_of, three_days
from tests.faults.simulation.breaking import BROKEN
from tests.faults.simulation.broker import SimSource
from tests.faults.simulation.checks import restored
from tests.faults.simulation.simulation import Simulation
from tests.faults.simulation.workload import a_plan
from tests.tiers import TIER, by_tier
from tests.tiers import turn as share

SEEDS, BLOCK = by_tier(fast=100, default=200, everything=2_000), 100
FIRST = 0 if TIER == "all" else 500 * share()
"""Other seeds at other commits, all within those of the tier `all`."""


def live(seed, *arguments, **more) -> Simulation:
    try:
        return Simulation(seed, *arguments, **more).run()
    except Exception as error:
        error.add_note(f"repeat it with: python -m tests.faults.simulation --first {seed} --seeds 1")
        raise


class History(NamedTuple):
    """What several tests ask of a seed's history."""

    trace: str
    promised: bool
    saved: RecoveredState
    """State at the end."""
    crashes: int
    events: Counter[str]
    """Internal events, by name."""
    told: Counter[str]


@cache
def history(seed: int) -> History:
    """The history of a seed with nothing changed, lived once for all tests: it repeats itself."""
    simulation = live(seed)
    ledger = simulation.telling.ledger
    return History(
        simulation.trace,
        simulation.promised,
        simulation.disk.images[-1].saved,
        len(simulation.turns) - 1,
        Counter(type(event).__name__ for event in simulation.telemetry.emitted),
        ledger.counts + ledger.between,
    )


def live_all(seeds):
    for seed in seeds:
        live(seed)


@pytest.mark.parametrize("first", range(FIRST, FIRST + SEEDS, BLOCK))
def test_every_record_counts_once_and_nothing_shown_or_told_is_taken_back(first):
    lived = [history(seed) for seed in range(first, first + BLOCK)]
    happened = happened_in(lived)
    rare = {name: happened[name] for name, least in OFTEN.items() if happened[name] < least}
    assert rare == {}, "seeds without a failure of each kind would prove little"


OFTEN = {
    "promised": 60,
    "not promised": 2,
    "state lost": 40,
    "state opened": 150,
    "crashes": 75,
    "notifications": 150,
    "firing": 60,
    "resolved": 25,
    "digest": 10,
    "reminders": 30,
    "given up": 10,
    "crash, answered": 1,
    "crash, not answered": 2,
    "state lost, answered": 5,
}
"""How often each thing has to happen in a block at least; most happen twice as often."""


def happened_in(lived: Sequence[History]) -> Counter[str]:
    """How often what a block is to show happened in it."""
    found: Counter[str] = Counter()
    for each in lived:
        found += each.told
        found["promised" if each.promised else "not promised"] += 1
        found["state lost"] += each.events["StateLost"]
        found["state opened"] += each.events["StateOpened"]
        found["crashes"] += each.crashes
    return found


def test_a_crash_at_any_turn_changes_nothing():
    plan = a_plan(7, records=16)
    turns = Simulation(7, plan, []).run().turns[0]
    assert turns > 100
    for turn in range(1, turns):
        live(7, plan, [turn])


@pytest.mark.parametrize(
    ("detectors", "resolve_timeout_ms", "kinds"),
    [
        ({"often": 1}, 1_000, {"firing", "resolved"}),
        ({"often": 1, "seldom": 2}, 20_000, {"firing", "updated"}),
    ],
    ids=["alarms that end", "alarms that join"],
)
def test_a_crash_at_any_turn_keeps_every_notification(detectors, resolve_timeout_ms, kinds):
    rule = AlarmRule(cooldown_ms=0, min_outcomes=0)
    receiver = Temper("pager", frozenset(SEVERITIES), slowest_seconds=0.3)
    spec = AlarmsSpec(otherwise=rule, resolve_timeout_ms=resolve_timeout_ms)
    alerts = Alerts(detectors, spec, DeliverySpec(), (receiver,))
    plan = replace(a_plan(17, records=16), alerts=alerts)
    first = Simulation(17, plan, []).run()
    counts = first.telling.ledger.counts
    assert counts["notifications"] >= 4
    assert min(counts[kind] for kind in kinds) >= 1
    between: Counter[str] = Counter()
    for turn in range(1, first.turns[0]):
        between += live(17, plan, [turn]).telling.ledger.between
    assert between["crash, not answered"] > 0
    assert between["crash, answered"] > 0


def test_a_seed_repeats_itself():
    for seed in range(20):
        assert live(seed).trace == history(seed).trace


def test_a_seed_repeats_itself_in_another_process():
    again = subprocess.run(
        [sys.executable, "-m", "tests.faults.simulation", "--seeds", "10", "--traces"],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert again.stdout.splitlines()[:10] == [f"{seed} {history(seed).trace}" for seed in range(10)]


@pytest.mark.parametrize(("defect", "broken"), [("torn", 3), ("positions", 3), ("forgets", 30)])
def test_a_disk_that_breaks_its_promise_is_found_out(defect, broken):
    found = 0
    for seed in range(60):
        try:
            Simulation(seed, defect=defect).run()
        except Exception:  # noqa: BLE001 - checks see it, or the core stumbles over it
            found += 1
        if found == broken:
            return
    pytest.fail(f"found out {found} times, expected {broken}")


@pytest.mark.parametrize("broken", BROKEN)
def test_deliveries_that_break_a_promise_are_found_out(broken, monkeypatch):
    BROKEN[broken](monkeypatch)
    with pytest.raises(AssertionError):
        live_all(range(1_000))


def released_as_it_comes(patch):
    patch.setattr("streamwatch.core.merge.merge.bounds_of", lambda *_, **__: Bounds())
    patch.setattr(Merge, "_late", lambda _: (-1, -1))


def waits_for_nobody_at_rest(patch):
    """A fetch that found the end counts whenever it was sent."""
    found = Partitions.found
    patch.setattr(
        Partitions, "found", lambda self, at, ms: found(self, at, None if ms is None else ms + 10**12)
    )
    patch.setattr(Merge, "_late", lambda _: (-1, -1))


def restarts_without_its_place(patch):
    patch.setattr(world_module, "restored_progress", lambda *_: MergeProgress())


def results(plan, crashes, seed):
    """How many predictions were resolved, and labels came too late, met nobody, or found no room."""
    counters = live(seed, plan, crashes).final().join.counters
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
    chance = Random(seed)
    plan, labelled = plan_of(stream(chance), chance)
    assert results(plan, crashes, seed) == (labelled, 0, 0, 0)


def test_partitions_ahead_are_held_back_so_that_little_waits_and_the_numbers_do_not_depend_on_it(monkeypatch):
    def most_held():
        most = 0
        receive = BatchProcessor.receive

        async def watched(processor, *arguments, **more):
            nonlocal most
            await receive(processor, *arguments, **more)
            most = max(most, processor.held_records)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BatchProcessor, "receive", watched)
            simulation = live(0, plan, [])
        return most, simulation.final().snapshot()

    chance = Random(0)
    plan, _ = plan_of(three_days(chance), chance)
    for log in plan.logs.values():
        log.append_time()
    bounded, expected = most_held()
    monkeypatch.setattr(SimSource, "pause", lambda *_: None)
    unbounded, same = most_held()
    assert bounded <= len(plan.logs) * (plan.merge.max_held_records + plan.habits.records)
    assert unbounded > 2 * bounded
    assert same == expected


def test_lives_that_differ_in_everything_but_the_log_end_alike():
    same = 0
    for seed in range(30):
        plan, first = a_plan(seed), history(seed)
        ends = [live(chance, plan) for chance in (seed + 1_000_000, seed + 2_000_000)]
        promised = [simulation.final().snapshot() for simulation in ends if simulation.promised]
        promised += [restored(plan, first.saved).snapshot()] * first.promised
        assert len(set(promised)) <= 1
        same += len(promised) == 1 + len(ends)
    assert same > 10


@pytest.mark.parametrize(
    "broken", [released_as_it_comes, waits_for_nobody_at_rest, restarts_without_its_place]
)
def test_a_merge_that_breaks_the_order_is_found_out(broken, monkeypatch):
    broken(monkeypatch)
    with pytest.raises(AssertionError):
        live_all(range(300))
