"""Detectors tuned as in the paper: by F1, with equal budgets, on other streams than those of the scores.

Every detector is tried at `BUDGET` strictnesses on the development streams of simulated losses. The one with
the highest mean F1 is then scored on the paper's streams, generated and recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamwatch.papers.benchmark import induced
from streamwatch.papers.benchmark.contestants import BUDGET, Ladder, at_defaults, at_rungs, ladders
from streamwatch.papers.benchmark.experiment import DRIFTS, generated_worlds, mean_f1, recorded_worlds
from streamwatch.papers.benchmark.metrics import Rule
from streamwatch.papers.benchmark.runs import Run, World
from streamwatch.papers.benchmark.simulated import CALM, DEVELOPMENT
from streamwatch.papers.result import Cell, Effort, Table

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
    means = mean_f1(ladder.rungs, worlds)
    return max(range(BUDGET), key=lambda k: (means[k].value, k))


def tuned_tables(effort: Effort) -> list[Table]:
    """Tune every detector, then score it tuned and at defaults."""
    worlds = development(effort)
    rungs: dict[tuple[str, str], int] = {}
    for ladder in ladders(effort.moa):
        effort.progress(f"tuned on development streams: {ladder.library} {ladder.name}")
        rungs[ladder.library, ladder.name] = best(ladder, worlds)
    default = [each for each in at_defaults(effort.moa) if (each.library, each.name) in rungs]
    headings, rows = (
        ["detector", "strictness"],
        [
            list[Cell]([f"{each.library} {each.name}", f"{rungs[each.library, each.name] + 1} of {BUDGET}"])
            for each in default
        ],
    )
    by_name = {(each.library, each.name): each for each in at_rungs(effort.moa, rungs)}
    for name, group in list(_groups(effort)):
        effort.progress(f"default and tuned: {name}")
        headings += [f"{name}, default", f"{name}, tuned"]
        of_default = mean_f1([each.alarms for each in default], group)
        of_tuned = mean_f1([by_name[each.library, each.name].alarms for each in default], group)
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


def _groups(effort: Effort) -> Iterator[tuple[str, list[World]]]:
    if effort.moa is None:
        return
    for gradual, how in DRIFTS:
        yield f"generated, {how}", generated_worlds(effort, gradual=gradual)
    if effort.data is None:
        return
    data, _ = induced.read(effort.data)
    for gradual, how in DRIFTS:
        yield (
            f"recorded, {how}",
            [world for recorded in data for world in recorded_worlds(effort, recorded, gradual=gradual)],
        )
