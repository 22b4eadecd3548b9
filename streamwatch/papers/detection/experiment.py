"""Scores of the daemon's, river's and MOA's detectors on streams with known changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamwatch.papers.detection import peers as moa
from streamwatch.papers.detection import peers as river
from streamwatch.papers.detection.candidates import Alarms, Candidate, own_alarms, published
from streamwatch.papers.detection.scoring import Score, score
from streamwatch.papers.detection.streams import GROUPS, Group, Losses, LossStream
from streamwatch.papers.detection.strictness import curves
from streamwatch.papers.result import (
    Cell,
    Effort,
    Experiment,
    Measured,
    Result,
    Table,
    over_runs,
    share,
)

RULE = (
    "A change at instance c can be found up to the next change, up to 5,000 outcomes after it is complete, "
    "or for one lap of the testbed. The first alarm in this span finds it, with a delay counted from c; "
    "without an alarm, the change is missed. Alarms elsewhere are false. A fall of the error need not be "
    "found, and alarms after it are not counted."
)
HEADINGS = (
    "detector",
    "runs",
    "found",
    "missed",
    "false alarms in 100,000",
    "outcomes between false alarms",
    "mean delay of those found",
    "alarms for one found",
)


@dataclass(slots=True)
class _Scored:
    """Scores of one detector on all streams of a group."""

    name: str
    runs: int
    scores: list[list[Score]]
    """Scores by stream, then by run."""

    def cells(self) -> tuple[Cell, ...]:
        """Build its row of the table."""
        flat = [each for stream in self.scores for each in stream]
        rises = sum(each.rises for each in flat)
        missed = sum(each.missed for each in flat)
        false = sum(each.false for each in flat)
        calm = sum(each.calm for each in flat)
        found = rises - missed
        between = calm / false if false else float("nan")
        rates = [1e5 * each.false / each.calm for each in flat]
        delays = [delay for each in flat for delay in each.delays]
        repeats = 1.0 + sum(each.repeats for each in flat) / found if found else float("nan")
        per_run = [len(each.delays) + each.repeats for each in flat if each.delays]
        return (
            self.name,
            f"{self.runs}",
            share(found, rises, 2),
            share(missed, rises, 2),
            over_runs(rates, 1),
            Measured(between, between / np.sqrt(max(false, 1)), 0),
            over_runs(delays, 0),
            Measured(repeats, over_runs(per_run).error, 1),
        )


def run(effort: Effort) -> Result:
    """Score detectors as published on every group of streams; then the daemon's by strictness."""
    others = river.river_detectors() + (() if effort.moa is None else moa.moa_detectors(effort.moa))
    tables = tuple(_table(group, others, effort) for group in GROUPS)
    equal, figure = curves(effort, others)
    return Result((*tables, equal), (figure,))


def _table(group: Group, others: Sequence[Candidate], effort: Effort) -> Table:
    runs = effort.size(12, 3)
    drawn = [_drawn(stream, runs, effort) for stream in group.streams]
    effort.progress(f"{group.name}: the daemon's detectors")
    names = [spec.name for spec in published()]
    own = [own_alarms(published(), losses) for losses in drawn]
    scored = [
        _Scored(f"streamwatch {name}", runs, _scores(group, [each[index] for each in own]))
        for index, name in enumerate(names)
    ]
    for other in others:
        effort.progress(f"{group.name}: {other.library}'s {other.name}")
        alarms = [other.alarms(losses) for losses in drawn]
        scored.append(_Scored(f"{other.library} {other.name}", runs, _scores(group, alarms)))
    streams = "; ".join(stream.name for stream in group.streams)
    return Table(
        f"Detectors as published: {group.name}",
        HEADINGS,
        tuple(each.cells() for each in scored),
        f"Streams: {streams}; {group.streams[0].changes[0].at:,} outcomes before the first change. {RULE} A "
        "dash (–) means no false alarm, or nothing found.",
    )


def _drawn(stream: LossStream, runs: int, effort: Effort) -> Losses:
    return np.stack([stream.draw(effort.rng("detectors", stream.name, r)) for r in range(runs)])


def _scores(group: Group, alarms: Sequence[Alarms]) -> list[list[Score]]:
    return [
        [score(run, stream.changes, stream.outcomes) for run in runs]
        for stream, runs in zip(group.streams, alarms, strict=True)
    ]


KIND = Experiment(
    "detectors",
    "Detectors where changes are known",
    "Missed changes, time to detect and between false alarms: Gustafsson 2000, §1.4",
    (
        "On independent losses, most of the daemon's detectors raise hardly a false alarm at their "
        "defaults and find nearly every change; KSWIN finds few."
    ),
    run,
)
