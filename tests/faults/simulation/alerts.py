"""What operators chose about alarms, and how those who are told behave, by seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from random import Random

from streamwatch.core.alerting.notification import SEVERITIES
from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec
from streamwatch.daemon.deliveries import DeliverySpec

DAY_MS = 86_400_000
REFUSES_ONE_IN = 4


@dataclass(frozen=True)
class Temper:
    """One receiver, while faults go on; afterwards it takes everything."""

    name: str
    severities: frozenset[str]
    """What it wants."""
    repeat_interval_seconds: float | None = None
    fails: float = 0.0
    """How often an attempt ends with an error, a request to wait, or no answer in time."""
    refuses: bool = False
    """Whether there are notifications it will never take."""
    gone_from: float = inf
    """Second from which it wants nothing any more."""
    slowest_seconds: float = 0.0
    """Until it answers, if it does."""
    removed_in: int | None = None
    """Number of the life from which on settings do not name it."""


@dataclass(frozen=True)
class Alerts:
    """Alarms, rules, receivers."""

    detectors: Mapping[str, int]
    """Each detector raises an alarm at every so manieth error."""
    spec: AlarmsSpec
    delivery: DeliverySpec
    receivers: tuple[Temper, ...]
    strikes: float = 0.0
    """How often the process dies soon after something was taken."""
    set_back: tuple[tuple[float, int], ...] = ()
    """From when on the host's clock is late by how many milliseconds: times do not give the order."""

    def receivers_in(self, life: int) -> list[Temper]:
        """Those that settings name in one life."""
        return [r for r in self.receivers if r.removed_in is None or life < r.removed_in]


NOBODY = Alerts({"seventh": 7}, AlarmsSpec(), DeliverySpec(), ())


def some_alerts(seed: int) -> Alerts:
    """Alarms by the dozen: cooldowns, lives and limits are as small as the streams."""
    chance = Random(f"{seed} alerts")
    detectors = {"often": 1, "seldom": chance.choice((2, 2, 7))}
    rules = tuple(
        AlarmRule(
            name,
            chance.choice("*m"),
            chance.choice(SEVERITIES),
            chance.choice((0, 0, 0, 3_000)),
            chance.choice((0, 0, 0, 4)),
        )
        for name in detectors
    )
    spec = AlarmsSpec(
        rules,
        AlarmRule(cooldown_ms=0, min_outcomes=0),
        chance.choice((300, 1_000, 5_000, DAY_MS)),
        chance.choice((500, 5_000, 60_000, DAY_MS)),
        chance.choice((1_000, 60_000)),
        chance.choice((0, 2, 2_000)),
        chance.choice((1, 20)),
    )
    delivery = DeliverySpec(
        chance.choice((5_000, DAY_MS, DAY_MS, DAY_MS)),
        chance.choice((1, 3, 1_000, 1_000, 1_000, 1_000, 1_000)),
        chance.choice((0.1, 1.0)),
        chance.choice((1.0, 5.0)),
        3.0,
    )
    receivers = tuple(a_temper(chance, name) for name in ("pager", "chat"))
    step_ms = chance.choice((3_000, 10_000))
    times = sorted(chance.uniform(0.0, 30.0) for _ in range(12))
    set_back = tuple((at, -number * step_ms) for number, at in enumerate(times, 1))
    strikes = chance.choice((0.0, 0.1, 0.5))
    return Alerts(detectors, spec, delivery, receivers, strikes, set_back if chance.random() < 0.5 else ())


def a_temper(chance: Random, name: str) -> Temper:
    return Temper(
        name,
        frozenset(SEVERITIES[chance.choice((0, 0, 0, 1, 2)) :]),
        chance.choice((None, None, 1.0, 10.0)),
        chance.choice((0.0, 0.2, 0.6, 1.0)),
        chance.random() < 0.15,
        chance.uniform(0.0, 60.0) if chance.random() < 0.1 else inf,
        chance.choice((0.0, 0.2, 1.0, 5.0)),
        chance.choice((1, 2)) if chance.random() < 0.1 else None,
    )
