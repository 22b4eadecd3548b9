"""Detectors tuned as in the paper: by F1, with equal budgets, on other streams than those of the scores.

Every detector is tried at `BUDGET` strictnesses on the development streams of simulated losses. The one with
the highest mean F1 is then scored on the paper's streams, generated and recorded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamwatch.papers.benchmark import generated, induced
from streamwatch.papers.benchmark.contestants import BUDGET, Ladder, at_defaults, at_rungs, ladders
from streamwatch.papers.benchmark.metrics import Metrics, Rule
from streamwatch.papers.benchmark.runs import Run, World, at_instances, mean_of, pooled, scored, stacked
from streamwatch.papers.benchmark.simulated import CALM, DEVELOPMENT
from streamwatch.papers.detection.candidates import Candidate
from streamwatch.papers.result import Cell, Effort, Measured, Table

RULE = Rule(2_500)
"""Tolerance on development streams: that of the paper's larger data sets."""
SEEDS = 10
"""Most development streams of each kind."""


def development(effort: Effort) -> list[World]:
    """Draw the development streams as worlds; the error of each rises once."""
    worlds: list[World] = []
    for stream in DEVELOPMENT:
        runs: list[Run] = []
        for seed in range(min(effort.seeds, SEEDS)):
            losses = stream.changed(effort.rng("development", stream.name, seed))
            drift = (CALM, CALM + stream.width)
            runs.append(Run(losses, np.arange(len(losses)), (drift,), len(losses)))
        worlds.append(World(stream.name, RULE, tuple(runs)))
    return worlds


def best(ladder: Ladder, worlds: Sequence[World]) -> int:
    """Find the rung with the highest mean F1 over worlds; the strictest of equal ones."""
    losses = [stacked(world.runs) for world in worlds]
    means: list[float] = []
    for ask in ladder.rungs:
        values = [
            pooled(scored(at_instances(ask(given), world.runs), world), world, _f1).value
            for given, world in zip(losses, worlds, strict=True)
        ]
        means.append(float(np.mean(values)))
    return max(range(BUDGET), key=lambda k: (means[k], k))


def _f1(metrics: Metrics) -> float:
    return metrics.f1


def tuned_tables(effort: Effort) -> list[Table]:
    """Tune every detector, then score it tuned and at defaults."""
    worlds = development(effort)
    rungs: dict[tuple[str, str], int] = {}
    for ladder in ladders(effort.moa):
        effort.progress(f"tuned on development streams: {ladder.library} {ladder.name}")
        rungs[ladder.library, ladder.name] = best(ladder, worlds)
    default = [each for each in at_defaults(effort.moa) if (each.library, each.name) in rungs]
    groups = dict(_groups(effort))
    headings, rows = (
        ["detector", "strictness"],
        [
            list[Cell]([f"{each.library} {each.name}", f"{rungs[each.library, each.name] + 1} of {BUDGET}"])
            for each in default
        ],
    )
    by_name = {(each.library, each.name): each for each in at_rungs(effort.moa, rungs)}
    for name, group in groups.items():
        headings += [f"{name}, default", f"{name}, tuned"]
        tuned = [by_name[each.library, each.name] for each in default]
        of_default, of_tuned = _means(default, group, effort), _means(tuned, group, effort)
        for row, one, other in zip(rows, of_default, of_tuned, strict=True):
            row += [one, other]
    return [
        Table(
            "F1 at defaults, and tuned on simulated losses",
            tuple(headings),
            tuple(tuple(row) for row in rows),
            f"Strictness: of {BUDGET}, from lax to strict, the one with the highest F1 on the development "
            f"streams ({'; '.join(world.name for world in worlds)}), {len(worlds[0].runs)} seeds each; "
            "detectors without such a parameter are left out. F1 is the mean over worlds ± jackknife error "
            f"over {effort.seeds} seeds, on errors.",
        )
    ]


def _groups(effort: Effort) -> list[tuple[str, list[World]]]:
    found: list[tuple[str, list[World]]] = []
    jars = effort.moa
    if jars is None:
        return found
    seeds = range(effort.seed, effort.seed + effort.seeds)
    for width, how in ((0, "abrupt"), (generated.WIDTH, "gradual")):
        effort.progress(f"generated streams, {how}")
        drawn = [
            generated.drawn(jars, each, width, seeds, effort.size(5, 2)) for each in generated.GENERATORS
        ]
        found.append((f"generated, {how}", drawn))
    if effort.data is None:
        return found
    for gradual, how in ((False, "abrupt"), (True, "gradual")):
        worlds: list[World] = []
        for recorded in induced.read(effort.data)[0]:
            for kind in induced.KINDS:
                effort.progress(f"{recorded.of.name}, {kind}, {how}")
                rngs = [effort.rng(recorded.of.name, kind, how, seed) for seed in range(effort.seeds)]
                worlds.append(induced.drawn(jars, recorded, kind, gradual=gradual, rngs=rngs))
        found.append((f"recorded, {how}", worlds))
    return found


def _means(candidates: Sequence[Candidate], worlds: Sequence[World], effort: Effort) -> list[Measured]:
    found: list[list[Measured]] = [[] for _ in candidates]
    for world in worlds:
        effort.progress(f"default and tuned: {world.name}")
        losses = stacked(world.runs)
        for those, each in zip(found, candidates, strict=True):
            those.append(pooled(scored(at_instances(each.alarms(losses), world.runs), world), world, _f1))
    return [mean_of(those) for those in found]
