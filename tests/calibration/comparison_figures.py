"""Comparisons where labels are late: false verdicts on challengers that are no better, in two orders.

    python -m tests.calibration.comparison_figures [--runs 30] [--write]

Champion and challenger are right equally often, but not on the same classes, or the champion's errors are
labelled sooner than its hits. By costs, they cost as much: the challenger takes class 0 for 1 more often,
which is cheap, and 2 for 0 less often, which is dear; both may be wrong and differ in what they cost. Each
run is watched after every six hours of labels; a verdict held at any of these looks is false, except in the
worlds where the challenger becomes better.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from streamwatch.core.specs import DAY_MS, ComparisonSpec, FadingSpec, MonitorsSpec, UtilitySpec
from tests.calibration.cohorts.worlds import (
    BEGAN_MS,
    OfTime,
    World,
    constant,
    draws,
    exponential,
    ramp,
    step,
    times_of,
    weekly,
)

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "comparisons.md"
BEGIN, END = "<!-- comparisons: simulated -->\n", "<!-- end -->"
LOOK_MS = DAY_MS // 4
SHARE_OF_ONE = 0.3
"""Share of class 1."""
CHAMPION = (0.95, 0.70)
"""Chance to be right on class 0, and on class 1."""
CHALLENGER = (0.90, 0.70 + 0.05 * (1 - SHARE_OF_ONE) / SHARE_OF_ONE)
"""As often right in all."""
SHARES = (0.4, 0.3, 0.3)
"""Of three classes, where models are judged by costs."""
COSTS = UtilitySpec(
    kind="costs",
    costs=(
        *((label, label, 0.0) for label in "012"),
        ("0", "1", 0.5),
        ("0", "2", 1.0),
        ("1", "0", 1.0),
        ("1", "2", 0.5),
        ("2", "0", 4.0),
        ("2", "1", 1.0),
    ),
)
COSTLY_CHAMPION = ((0.95, 0.03, 0.02), (0.15, 0.80, 0.05), (0.20, 0.30, 0.50))
"""Chances of the answers 0, 1, 2 by class."""
COSTLY_CHALLENGER = ((0.90, 0.08, 0.02), (0.15, 0.80, 0.05), (0.17 / 0.9, 0.28 / 0.9, 0.50))
"""Of these, costs are as high: .4·.06 + .3·(4·.17 + .28)/.9 = .4·.035 + .3·1.1, and those of class 1."""
STEADY = constant(1.0)
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Classes = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
Delays = Callable[[np.random.Generator, NDArray[np.int64], Bools, float], Floats]


def by_class(rng: np.random.Generator, label: NDArray[np.int64], right: Bools, horizon: float) -> Floats:
    """Class 1 is labelled after 3 days, class 0 after 15."""
    del right
    return exponential(rng, np.where(label == 1, 3.0, 15.0), horizon)


def by_class_otherwise(
    rng: np.random.Generator, label: NDArray[np.int64], right: Bools, horizon: float
) -> Floats:
    """Class 0 is labelled after 3 days, class 1 after 15."""
    return by_class(rng, 1 - label, right, horizon)


def by_dear_class(rng: np.random.Generator, label: NDArray[np.int64], right: Bools, horizon: float) -> Floats:
    """Class 2 is labelled after 3 days, the others after 15."""
    return by_class(rng, label // 2, right, horizon)


def by_champion(rng: np.random.Generator, label: NDArray[np.int64], right: Bools, horizon: float) -> Floats:
    """Errors of the champion, which decides, are disputed after 3 days, the rest is settled after 15."""
    del label
    return exponential(rng, np.where(right, 15.0, 3.0), horizon)


def at_once(rng: np.random.Generator, label: NDArray[np.int64], right: Bools, horizon: float) -> Floats:
    """Labels within minutes."""
    del right
    return exponential(rng, np.full(label.size, 0.002), horizon)


@dataclass(frozen=True)
class Scene:
    name: str
    delays: Delays
    volume: OfTime = STEADY
    correlation: float = 0.0
    gain: float = 0.0
    """By how much the challenger is right more often from day 100 on; by costs, on class 2 instead of 0."""
    costs: bool = False
    """Whether both are judged by costs."""


SCENES = (
    Scene("delays by class, steady", by_class),
    Scene("delays by class, volume × 5", by_class, step(1.0, 5.0)),
    Scene("delays by class, volume ÷ 10", by_class, step(1.0, 0.1)),
    Scene("delays by class, ramp to × 5", by_class, ramp(1.0, 5.0)),
    Scene("delays by class, weekly", by_class, weekly),
    Scene("the other class late, volume × 5", by_class_otherwise, step(1.0, 5.0)),
    Scene("champion's errors labelled sooner, volume × 5", by_champion, step(1.0, 5.0)),
    Scene("champion's errors labelled sooner, volume ÷ 10", by_champion, step(1.0, 0.1)),
    Scene("delays by class, volume × 5, correlation .8", by_class, step(1.0, 5.0), 0.8),
    Scene("labels within minutes, volume × 5", at_once, step(1.0, 5.0)),
    Scene("by costs: delays by class, volume × 5", by_dear_class, step(1.0, 5.0), costs=True),
    Scene("by costs: delays by class, volume ÷ 10", by_dear_class, step(1.0, 0.1), costs=True),
    Scene("by costs: champion's errors labelled sooner, volume × 5", by_champion, step(1.0, 5.0), costs=True),
    Scene("by costs: champion's errors labelled sooner, ÷ 10", by_champion, step(1.0, 0.1), costs=True),
    Scene("by costs: delays by class, × 5, correlation .8", by_dear_class, step(1.0, 5.0), 0.8, costs=True),
)
GAINS = (
    *(Scene(f"challenger + {gain:.2f} on day 100", by_class, gain=gain) for gain in (0.02, 0.05, 0.10)),
    Scene("by costs: challenger's lead + .045", by_dear_class, gain=0.15, costs=True),
)


@dataclass
class Found:
    """What was held at some look, over the runs of a scene."""

    runs: int = 0
    labels: int = 0
    """Runs with a verdict in the order of labels."""
    cohorts: int = 0
    early: int = 0
    """Of the runs with a verdict by cohorts, those in which all were retracted."""
    labels_days: list[float] = field(default_factory=list[float])
    """From day 100 until the challenger was called better."""
    cohorts_days: list[float] = field(default_factory=list[float])


def answers_of(rng: np.random.Generator, scene: Scene, gain: Floats) -> Classes:
    """Labels and answers of champion and challenger, of two classes."""
    label = (rng.random(gain.size) < SHARE_OF_ONE).astype(np.int64)
    champion = draws(rng, gain.size, scene.correlation) < np.array(CHAMPION)[label]
    challenger = draws(rng, gain.size, scene.correlation) < np.array(CHALLENGER)[label] + gain
    return label, np.where(champion, label, 1 - label), np.where(challenger, label, 1 - label)


def answers_by_costs(rng: np.random.Generator, scene: Scene, gain: Floats) -> Classes:
    """Labels and answers of champion and challenger, of three classes."""
    label = rng.choice(len(SHARES), gain.size, p=SHARES)
    found = [label]
    for chances, moved in ((COSTLY_CHAMPION, 0.0 * gain), (COSTLY_CHALLENGER, gain)):
        below = np.cumsum(np.array(chances), axis=1)[label, :2] - np.where(label == 2, moved, 0.0)[:, None]
        drawn = draws(rng, gain.size, scene.correlation)
        found.append((drawn[:, None] >= below).sum(axis=1))
    return found[0], found[1], found[2]


def outcomes_of(scene: Scene, seed: int) -> tuple[OutcomeBatch, int]:
    """Pairs in the order of labels, all that come within 160 days; when the run began, in milliseconds."""
    rng = np.random.default_rng(seed)
    world = World(scene.name, volume=scene.volume)
    time = times_of(rng, world)
    gain = np.where(time >= 100.0, scene.gain, 0.0)
    label, champion, challenger = (answers_by_costs if scene.costs else answers_of)(rng, scene, gain)
    delay = scene.delays(rng, label, champion == label, world.horizon)
    began = BEGAN_MS + int(rng.integers(0, DAY_MS))
    made_at = began + np.rint(time * DAY_MS).astype(np.int64)
    waited = np.rint(delay * DAY_MS).astype(np.int64)
    known = made_at + waited
    chosen = np.flatnonzero((time + delay <= world.length) & (waited <= world.horizon_ms))
    order = chosen[np.argsort(known[chosen], kind="stable")]
    records = np.zeros(len(order), OUTCOME)
    records["event_ms"] = records["resolved_ms"] = known[order]
    records["delay_ms"] = records["waited_ms"] = waited[order]
    records["true_class"] = label[order]
    records["predicted_class"] = challenger[order]
    records["label_at_prediction"] = records["scores"] = -1
    made = np.searchsorted(made_at, known[order], side="right")
    records["made"] = made
    columns = [np.arange(len(order)), np.ones(len(order)), champion[order], made]
    pairs = np.column_stack(columns).astype(np.int32)
    return OutcomeBatch(records, ["new", "old"], ["0", "1", "2"], pairs=pairs), began


def run(scene: Scene, seed: int, found: Found) -> None:
    """One run, watched every six hours."""
    batch, began = outcomes_of(scene, seed)
    utilities = (COSTS if scene.costs else UtilitySpec(),)
    spec = MonitorsSpec(
        forgetting=(FadingSpec(0.999),),
        comparisons=(ComparisonSpec("old", ("new",)),),
        utilities=utilities,
        registers=(CohortsSpec(World("").horizon_ms, utilities=utilities),),
    )
    comparisons = ComparisonSet(spec)
    looks = batch.records["resolved_ms"] // LOOK_MS
    bounds = [0, *(np.flatnonzero(np.diff(looks)) + 1).tolist(), len(batch)]
    held: dict[str, list[int]] = {"labels": [], "cohorts": []}
    retracted = 0.0
    for start, end in pairwise(bounds):
        comparisons.fold(batch[start:end])
        day = (int(batch.records["resolved_ms"][end - 1]) - began) / DAY_MS
        said = {family.name: [value for _, value in family.samples] for family in comparisons.families()}
        for order, name in (("labels", "comparison_verdict"), ("cohorts", "comparison_cohort_headline")):
            verdict = int(said[name][0]) if said[name] else 0
            times = found.labels_days if order == "labels" else found.cohorts_days
            if scene.gain and verdict > 0 and day >= 100.0 and 1 not in held[order]:
                times.append(day - 100.0)
            if verdict and (not scene.gain or day >= 100.0):
                held[order].append(verdict)
        retracted = sum(said["comparison_cohort_verdict_retracted_total"])
    found.runs += 1
    found.labels += bool(held["labels"])
    found.cohorts += bool(held["cohorts"])
    found.early += bool(held["cohorts"] and retracted)


def tables(runs: int) -> str:
    """Both tables, in Markdown."""
    lines = [
        "| no challenger is better | runs | false by cohorts, retracted | false in the order of labels |",
        "|---|---|---|---|",
    ]
    for scene in SCENES:
        found = Found()
        for seed in range(runs):
            run(scene, seed, found)
        shares = (found.cohorts / runs, found.early / runs, found.labels / runs)
        cohorts, early, labels = (f"{share:.2f}".lstrip("0") or "0" for share in shares)
        lines.append(f"| {scene.name} | {runs} | {cohorts}, {early} | {labels} |")
        print(lines[-1], flush=True)
    lines += ["", "| | by cohorts: said, median days | in the order of labels |", "|---|---|---|"]
    for scene in GAINS:
        found = Found()
        for seed in range(runs):
            run(scene, seed, found)
        cells = (
            f"{len(days)} of {runs}" + (f", {median(days):.1f}" if days else "")
            for days in (found.cohorts_days, found.labels_days)
        )
        lines.append(f"| {scene.name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the tables, and put them into docs/evidence/comparisons.md if asked to."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.comparison_figures")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    found = tables(asked.runs)
    if asked.write:
        before, rest = PAGE.read_text().split(BEGIN, 1)
        PAGE.write_text(before + BEGIN + found + END + rest.split(END, 1)[1])


if __name__ == "__main__":
    main()
