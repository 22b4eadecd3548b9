"""Streams in which every label comes in time: whatever else happens, nothing of them may expire."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from streamwatch.core.merge import MergeSpec
from streamwatch.core.records.events import Label, Partition, Prediction
from streamwatch.core.specs import JoinSpec
from streamwatch.daemon import CommitSpec
from tests.faults.simulation.broker import Habits, Log
from tests.faults.simulation.disk import Troubles
from tests.faults.simulation.workload import BASE_MS, DAY_MS, Plan

HOUR = 3_600.0


@dataclass(frozen=True)
class Punctual:
    """A stream by its times in seconds; 0 is when the first life begins."""

    begin: float
    end: float
    predictions: int
    longest_delay: float
    join: JoinSpec
    merge: MergeSpec
    most_records: int
    clock_jumps: tuple[tuple[float, int], ...] = ()
    down_seconds: float = 10.0
    slow_topic: str = "predictions"


HOUR_MS = 3_600_000
DAYS = JoinSpec(26 * HOUR_MS, 6 * HOUR_MS, 26 * HOUR_MS, max_labels=150)
"""Room for the labels of a day or so: enough in the one order, not for three days of them."""
MERGE = MergeSpec(max_held_records=20)


def three_days(chance: Random) -> Punctual:
    """Nothing was read for three days; labels take up to a day, the horizon is little more."""
    del chance
    return Punctual(-72 * HOUR, 0.0, 500, 24 * HOUR, DAYS, MERGE, 8)


def outage(chance: Random) -> Punctual:
    """What was caught up when the daemon went down has a backlog of three days when it is back."""
    del chance
    return Punctual(-HOUR, 72 * HOUR, 500, 24 * HOUR, DAYS, MERGE, 400, (), 144 * HOUR, "labels")


def jumping_clock(chance: Random) -> Punctual:
    """The host's clock is a day off for a while, twice, in either direction."""
    jumps = [
        (60.0, chance.choice((-DAY_MS, DAY_MS))),
        (350.0, 0),
        (400.0, chance.choice((-DAY_MS, DAY_MS))),
        (450.0, 0),
    ]
    join = JoinSpec(120_000, 60_000, 120_000)
    return Punctual(-30.0, 500.0, 150, 80.0, join, MERGE, 30, tuple(jumps), slow_topic="")


def plan_of(stream: Punctual, chance: Random, unlabelled: float = 0.1) -> tuple[Plan, int]:
    """The stream in two partitions a side, and how many of its predictions have a label."""
    logs = {p: Log(p) for p in (Partition(t, n) for t in ("predictions", "labels") for n in (0, 1))}
    records: list[tuple[float, str, Prediction | Label]] = []
    labelled = 0
    for number in range(stream.predictions):
        at = chance.uniform(stream.begin, stream.end)
        key = f"{number:05}"
        records.append((at, "predictions", Prediction(key, "m", chance.choice("xy"), 0)))
        if chance.random() >= unlabelled:
            after = at + chance.uniform(0.0, stream.longest_delay)
            of = chance.choice((None, "m"))
            if after > stream.end:
                continue
            labelled += 1
            records.append((after, "labels", Label(key, chance.choice("xy"), 0, of)))
    for at, side, event in sorted(records, key=lambda record: record[:2]):
        log = logs[Partition(side, int(event.id) % 2)]
        log.append(at, BASE_MS + int(at * 1000), event, 0)
    plan = Plan(
        stream.join,
        stream.merge,
        CommitSpec(1.0, 40),
        50,
        logs,
        dict.fromkeys(logs, stream.begin),
        Habits(stream.most_records, 2.0, away=0.02, slow_topic=stream.slow_topic),
        Troubles(0.02, 0.02, 0.01, 0.02),
        stream.clock_jumps,
        3,
        (stream.down_seconds,),
        0.5,
        0.0,
    )
    return plan, labelled
