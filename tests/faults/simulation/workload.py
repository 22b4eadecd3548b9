"""What producers write, and what operators chose, by seed: every case of the join, and tiny limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from streamwatch.core.merge import MergeSpec
from streamwatch.core.records.events import Invalid, Label, NullRecord, Partition, Prediction
from streamwatch.core.specs import JoinSpec
from streamwatch.daemon import CommitSpec
from tests.faults.simulation.alerts import NOBODY, Alerts, some_alerts
from tests.faults.simulation.broker import Habits, Log
from tests.faults.simulation.disk import Troubles

BASE_MS = 1_700_000_000_000
DAY_MS = 86_400_000
SMALL = (0, 1, 3, 8, 20, 1000, 1000, 1000)
SECONDS = (0, 1_000, 5_000, 20_000, 60_000)


@dataclass(frozen=True)
class Plan:
    """Everything that is fixed before the first life begins."""

    join: JoinSpec
    merge: MergeSpec
    commits: CommitSpec
    journal_outcomes: int
    logs: dict[Partition, Log]
    seen_from: dict[Partition, float]
    """When each partition came to be."""
    habits: Habits
    troubles: Troubles
    clock_jumps: tuple[tuple[float, int], ...]
    """From when on the host's clock is off by how many milliseconds."""
    runs: int
    down_seconds: tuple[float, ...]
    """How long at most the daemon is away between two runs: one of these."""
    slowest_seconds: float
    disk_low: float
    """How often the disk is nearly full."""
    alerts: Alerts = NOBODY

    def clock_ms(self, now: float) -> int:
        off = 0
        for since, by_ms in self.clock_jumps:
            if since <= now:
                off = by_ms
        return BASE_MS + int(now * 1000) + off


def a_join(chance: Random) -> JoinSpec:
    return JoinSpec(
        horizon_ms=chance.choice((5_000, 20_000, 60_000, 600_000)),
        early_horizon_ms=chance.choice(SECONDS),
        dedup_horizon_ms=chance.choice(SECONDS),
        max_pending=chance.choice(SMALL),
        max_labels=chance.choice(SMALL),
        max_dedup_entries=chance.choice(SMALL),
        assume=chance.choice((None, None, "x")),
        order=chance.choice(("resolution", "prediction_time")),
        reorder_window_ms=chance.choice((0, 700, 3000, 20_000)),
        max_reordered=chance.choice(SMALL),
        retain_unmatched=chance.random() < 0.8,
        max_models=chance.choice((1, 2, 3, 3)),
    )


def a_plan(seed: int, records: int = 90) -> Plan:
    chance = Random(seed)
    logs, seen_from = a_layout(chance)
    fill(chance, logs, seen_from, chance.randint(records // 3, records))
    offsets = (0, DAY_MS, -DAY_MS, 0)
    alerts = some_alerts(seed)
    jumps = [(chance.uniform(0, 60), chance.choice(offsets)) for _ in range(chance.choice((0, 0, 2)))]
    troubled = chance.random() < 0.6
    rates = [chance.choice((0.0, 0.02, 0.15)) if troubled else 0.0 for _ in range(3)]
    # Draws of their own: what chance says of everything else stays as it was.
    conflicts = Random(f"{seed} conflicts").choice(("first", "first", "last", "both"))
    join = replace(a_join(chance), conflicts=conflicts)
    return Plan(
        join,
        MergeSpec(
            settle_ms=chance.choice((0, 200, 1_000, 1_000, 4_000)),
            max_hold_back_ms=chance.choice((5_000, 600_000, 600_000)),
            max_held_bytes=chance.choice((1, 2_000, 64_000_000)),
            max_held_records=chance.choice((0, 3, 20, 10_000)),
        ),
        CommitSpec(chance.choice((0.0, 0.3, 1.0, 5.0)), chance.choice((1, 10, 40, 1000))),
        chance.choice((1, 10, 50, 1000)),
        logs,
        seen_from,
        Habits(
            chance.choice((1, 4, 12, 50)),
            chance.choice((0.3, 2.0)),
            chance.choice((0.0, 0.2, 0.6)),
            chance.choice((0.0, 0.05)),
            chance.choice(("", "", "", "predictions", "labels")),
        ),
        Troubles(*rates),
        tuple(sorted((*jumps, *alerts.set_back))),
        chance.choice((1, 2, 3, 4, 6)),
        (0.0, 0.5, 10.0, 60.0),
        chance.choice((0.3, 1.5, 1.5, 8.0)),
        chance.choice((0.0, 0.0, 0.1)),
        alerts,
    )


def a_layout(chance: Random) -> tuple[dict[Partition, Log], dict[Partition, float]]:
    """One to three partitions a topic; now and then one that comes later, or a topic for both."""
    sizes = {"predictions": chance.randint(1, 3), "labels": chance.randint(1, 2)}
    if chance.random() < 0.2:
        sizes["both"] = 1
    partitions = [Partition(topic, n) for topic, size in sizes.items() for n in range(size)]
    logs = {partition: Log(partition) for partition in partitions}
    late = chance.random() < 0.2
    seen_from = {p: chance.uniform(5, 20) if late and p.partition > 0 else 0.0 for p in partitions}
    return logs, seen_from


def fill(chance: Random, logs: dict[Partition, Log], seen_from: dict[Partition, float], count: int) -> None:
    """Append records, in the order of their times; what lies before second 0 is backlog."""
    now = -chance.choice((0.0, 5.0, 60.0))
    tick = chance.choice((0.02, 0.3, 0.3, 1.0))
    queue: list[tuple[float, int, str, object]] = []
    numbers = 0
    while numbers < count:
        now += tick * chance.random() * (1 if chance.random() < 0.97 else 30)
        for at, side, event in a_story(chance, numbers, now, tick):
            queue.append((at, len(queue), side, event))
            numbers += 1
    log_append_time = chance.random() < 0.5
    disorder = chance.choice((0, 300, 5_000))
    odd = chance.choice((0.0, 0.02))
    for log in logs.values():
        log.appends_time = log_append_time
    for at, _, side, event in sorted(queue, key=lambda entry: entry[:2]):
        choices = [p for p in logs if p.topic in (side, "both")]
        key = getattr(event, "id", None) or "0"
        partition = choices[sum(key.encode()) % len(choices)]
        appended = max(at, seen_from[partition])
        timestamp = BASE_MS + int(appended * 1000)
        if not log_append_time:
            timestamp = BASE_MS + int(at * 1000) - chance.randint(0, disorder)
            if chance.random() < odd:
                timestamp += chance.choice((-2 * DAY_MS, 2 * DAY_MS, -timestamp, 5_000))
        log = logs[partition]
        log.append(appended, max(0, timestamp), event, chance.choice((0, 0, 0, 0, 1, 3)))


def a_story(chance: Random, number: int, now: float, tick: float):
    """What is written about one id: a prediction or more, a label, and what goes wrong with them."""
    key = str(number if chance.random() < 0.9 else chance.randrange(number + 1))
    models = chance.sample("mno", chance.choice((1, 1, 1, 2, 3)))
    own = chance.choice((None, None, BASE_MS + int(now * 1000) - chance.randint(0, 3000)))
    for model in models:
        made = now + (chance.random() * 20 * tick if model != models[0] else 0.0)
        predicted_class = chance.choice("xy")
        scores = {"x": 0.25} if chance.random() < 0.2 else None
        yield made, "predictions", Prediction(key, model, predicted_class, 0, own, scores)
        if chance.random() < 0.06:
            again = predicted_class if chance.random() < 0.5 else "z"
            yield made + chance.random() * 10 * tick, "predictions", Prediction(key, model, again, 0, own)
        if chance.random() < 0.04:
            yield (
                made + chance.random() * 5 * tick,
                "predictions",
                NullRecord("predictions", key, chance.choice((None, model)), 0, withdraws=True),
            )
    result = chance.random()
    if result < 0.85:
        after = chance.choice((-2, 1, 1, 5, 30)) * tick * chance.random()
        true_class, of = chance.choice("xy"), chance.choice((None, models[0]))
        stamp = chance.choice((None, own))
        yield now + after, "labels", Label(key, true_class, 0, of, stamp)
        if chance.random() < 0.1:
            other = true_class if chance.random() < 0.5 else "z"
            more = chance.choice((None, of, models[-1]))
            yield now + after + chance.random() * 10 * tick, "labels", Label(key, other, 0, more)
    if result < 0.03:
        yield now, "labels", NullRecord("labels", chance.choice((None, key)), None, 0, withdraws=False)
    if chance.random() < 0.03:
        side = chance.choice(("predictions", "labels"))
        yield now, side, Invalid(side, 0, 0, chance.choice(("invalid_json", "no_id")))
