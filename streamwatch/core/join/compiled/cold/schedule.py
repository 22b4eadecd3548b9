"""Choice of the runs to merge next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from streamwatch.core.join.compiled.cold.run import Run
from streamwatch.core.join.compiled.cold.spec import ColdSpec

_MOST_TIMES = 4
"""Largest number of runs merged at once, as a multiple of the fan-out."""


def runs_to_merge(runs: Collection[Run], spec: ColdSpec, floor: int) -> list[Run]:
    """Choose the runs of one queue to be merged; empty if nothing is due.

    A tier of runs of similar size is merged once it has as many as the fan-out, the smallest first. So an
    entry is written once per tier, and a look-up tests few filters. If no tier is full, a run that is half
    dead is rewritten.
    """
    tiers: defaultdict[tuple[int, int], list[tuple[int, Run]]] = defaultdict(list)
    for run in runs:
        alive = run.estimate(floor)
        tiers[_tier(alive, spec), run.manifest.queue].append((alive, run))
    for _, members in sorted(tiers.items()):
        if len(members) < spec.fanout:
            continue
        chosen: list[Run] = []
        total = 0
        for alive, run in sorted(members, key=lambda each: (each[0], each[1].number)):
            total += alive
            if total > spec.most_entries or len(chosen) == _MOST_TIMES * spec.fanout:
                break
            chosen.append(run)
        if len(chosen) > 1:
            return chosen
    for members in tiers.values():
        for alive, run in members:
            if 2 * alive < run.manifest.count:
                return [run]
    return []


def _tier(alive: int, spec: ColdSpec) -> int:
    tier, size = 0, spec.first_entries * spec.fanout
    while alive >= size:
        tier, size = tier + 1, size * spec.fanout
    return tier
