"""Alarms where labels are late: how many are said to be of the model, with a drift and without one.

    python -m tests.calibration.confirmation_figures [--runs 30] [--write]

Each run is a world of `cohorts.worlds` through estimators and the alarm book of default settings, as the
daemon drives them: alarms are announced, and reviewed, after every hour of labels. Counted are alarms of a
detector at a rise of the error whose notification says in the end that the model errs more: confirmed by
cohorts, or never in question.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.rules import AlarmsSpec
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import DAY_MS, MonitorsSpec
from tests.calibration.cohorts import worlds
from tests.calibration.cohorts.worlds import World, constant, outcomes_of, step
from tests.core.estimators.registers.cohorts.streams import Outcomes

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "incidents.md"
SPEC = AlarmsSpec()


@dataclass
class Counts:
    """Alarms of detectors at a rise, in a run or in many."""

    alarms: int = 0
    confirmed: int = 0
    contradicted: int = 0
    undecided: int = 0
    """Ended otherwise, or open at the end, before cohorts decided."""
    unquestioned: int = 0
    """Alarms that needed no confirmation, or for which there was none to be had."""
    days: list[float] = field(default_factory=list[float])
    """From an alarm until it was confirmed or contradicted."""
    runs_told: int = 0
    """Runs with an alarm that is said to be of the model."""


def base(name: str, **changes: object) -> World:
    """90 % right against a majority of 85 %, 1,000 a day over 160 days."""
    return World(name, accuracy=constant(0.9)).but(**changes)


FIVE_TIMES = step(1.0, 5.0)
STEADY = (
    base("nothing changes"),
    base("volume × 5", volume=FIVE_TIMES),
    base("volume ÷ 10, errors late", volume=step(1.0, 0.1), delays=worlds.by_error),
    base("weekly volume", volume=worlds.weekly),
    base("volume × 5, correlation .8", volume=FIVE_TIMES, correlation=0.8),
    base("volume × 5, heavy-tailed delays", volume=FIVE_TIMES, delays=worlds.heavy),
    base("volume × 5, no labels at weekends", volume=FIVE_TIMES, delays=worlds.without_weekends),
)
DRIFTS = tuple(
    base(f".90 → {after:.2f}{words}", accuracy=step(0.9, after), volume=volume, length=200.0, change=100.0)
    for after in (0.85, 0.80, 0.70)
    for words, volume in (("", constant(1.0)), (", volume × 5", FIVE_TIMES))
)
SOON = (
    base("labels within minutes, nothing changes", delays=worlds.two_means(0.004, 0.001), length=40.0),
    base(
        "labels within minutes, .90 → .80",
        delays=worlds.two_means(0.004, 0.001),
        length=40.0,
        accuracy=step(0.9, 0.8, 30.0),
        change=30.0,
    ),
)
WORLDS = (*STEADY, *DRIFTS, *SOON)


def chunks(world: World, seed: int) -> Iterator[list[Outcome]]:
    """Outcomes of a run, an hour of labels at a time."""
    columns, _ = outcomes_of(world, seed)
    hours = columns.at // 3_600_000
    bounds = np.flatnonzero(np.diff(hours)) + 1
    for start, end in pairwise([0, *bounds.tolist(), len(hours)]):
        yield Outcomes(*(column[start:end] for column in columns)).events()


def run(world: World, seed: int) -> Counts:
    """One run, in which time is that of the labels."""
    spec = replace(MonitorsSpec(), max_models=1, registers=(CohortsSpec(world.horizon_ms),))
    monitors, book, found = EstimatorSet(spec), AlarmBook(SPEC, "calibration"), Counts()
    began: dict[tuple[str, str], int] = {}
    after = outcomes_of(world, seed)[1] + int(world.change * DAY_MS) if world.change >= 0 else 0
    for outcomes in chunks(world, seed):
        now_ms = outcomes[-1].event_ms
        told = book.announce(monitors.fold(outcomes), now_ms, monitors.facts, behind=False)
        told += book.review(monitors.facts, now_ms, behind=False)
        for part in (part for each in told for part in each.parts if part.alarm.judgement is None):
            key = part.alarm.detector, part.started_at_ms
            if key in began or part.alarm.after <= part.before or part.started_at_ms < after:
                continue
            began[key] = now_ms
            found.alarms += 1
            found.unquestioned += part.expected_ms is None
        for part in (part for each in told for part in each.parts):
            key = part.alarm.detector, part.started_at_ms
            if began.get(key, 0) == 0 or part.expected_ms is None:
                continue
            if part.confirmation is not None or part.reason is not None:
                found.confirmed += part.confirmation is not None
                found.contradicted += part.reason == "labels_changed"
                if part.confirmation is not None or part.reason == "labels_changed":
                    found.days.append((now_ms - began[key]) / DAY_MS)
                began[key] = 0
    found.undecided = found.alarms - found.confirmed - found.contradicted - found.unquestioned
    found.runs_told = int(found.confirmed + found.unquestioned > 0)
    return found


def figures(world: World, runs: int) -> Counts:
    """Sum of many runs."""
    total = Counts()
    for seed in range(runs):
        one = run(world, seed)
        for name in ("alarms", "confirmed", "contradicted", "undecided", "unquestioned", "runs_told"):
            setattr(total, name, getattr(total, name) + getattr(one, name))
        total.days += one.days
    return total


def table(runs: int) -> str:
    """Markdown table of all worlds."""
    lines = [
        "| world | alarms a run | confirmed | contradicted | undecided | without question | days |",
        "|---|---|---|---|---|---|---|",
    ]
    for world in WORLDS:
        found = figures(world, runs)
        of = max(found.alarms, 1)
        shares = " | ".join(
            f"{value / of:.2f}"
            for value in (found.confirmed, found.contradicted, found.undecided, found.unquestioned)
        )
        days = f"{median(found.days):.1f}" if found.days else ""
        lines.append(f"| {world.name} | {found.alarms / runs:.1f} | {shares} | {days} |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table, and write it to the docs page where asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.confirmation_figures")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--write", action="store_true", help="put the table into docs/evidence/incidents.md")
    told = parser.parse_args()
    made = table(told.runs)
    if told.write:
        start, end = "<!-- unconfirmed -->\n", "<!-- end -->"
        before, rest = PAGE.read_text().split(start, 1)
        PAGE.write_text(before + start + made + end + rest.split(end, 1)[1])


if __name__ == "__main__":
    main()
