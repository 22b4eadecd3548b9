"""Tables of the benchmark: the paper's own figures reproduced, and all detectors, at defaults and tuned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from streamwatch.papers.benchmark import generated, induced
from streamwatch.papers.benchmark.contestants import (
    BUDGET,
    CONTROLS,
    Ladder,
    at_defaults,
    at_rungs,
    in_both_directions,
    ladders,
)
from streamwatch.papers.benchmark.metrics import (
    Counts,
    Metrics,
    Rule,
    Run,
    World,
    at_instances,
    episodes_of,
    mean_of,
    measured,
    pooled,
    scored,
    stacked,
    within,
)
from streamwatch.papers.benchmark.simulated import CALM, DEVELOPMENT
from streamwatch.papers.detection.candidates import Alarms, Candidate
from streamwatch.papers.detection.peers import moa_detectors
from streamwatch.papers.detection.streams import Losses
from streamwatch.papers.result import Cell, Effort, Measured, Table

PUBLISHED: Final = json.loads((Path(__file__).parent / "published.json").read_text(encoding="utf-8"))
"""Figures of github.com/vcerqueira/experiments-drift_evaluation (7c2af93, May 2026).

Numbers of true and false alarms and of missed drifts, of every tuned detector on synthetic streams; F1 at
defaults over four kinds of drift, with its jackknife error over 50 trials.
"""

# The paper's detectors, as its experiments set them.


TUNED: Final[dict[str, dict[str, str]]] = {
    "abrupt": {
        "ADWINChangeDetector": "a=0.01",
        "CusumDM": "n=2000,d=0.01,l=50",
        "DDM": "n=2000,w=2.0,o=2.25",
        "EWMAChartDM": "n=300,l=0.001",
        "GeometricMovingAverageDM": "n=300,l=0.1,a=0.5",
        "HDDM_A_Test": "d=0.005,w=0.005,t=Two-sided",
        "HDDM_W_Test": "d=0.001,w=0.005,m=0.01,t=One-sided",
        "PageHinkleyDM": "n=1000,d=0.005,l=30,a=0.995",
        "RDDM": "n=2000,w=1.773,o=1.9,x=40000,y=7000,z=1400",
        "SEEDChangeDetector": "d=0.01,b=32,e=0.01,a=0.6,c=75",
        "STEPD": "r=500,o=0.001,w=0.05",
    },
    "gradual": {
        "ADWINChangeDetector": "a=0.01",
        "CusumDM": "n=30,d=0.001,l=100",
        "DDM": "n=100,w=2.0,o=1.75",
        "EWMAChartDM": "n=500,l=0.002",
        "GeometricMovingAverageDM": "n=100,l=0.1,a=0.1",
        "HDDM_A_Test": "d=0.002,w=0.005,t=Two-sided",
        "HDDM_W_Test": "d=0.005,w=0.005,m=0.1,t=Two-sided",
        "PageHinkleyDM": "n=1000,d=0.002,l=50,a=0.999",
        "RDDM": "n=30,w=1.773,o=1.5,x=40000,y=7000,z=1400",
        "SEEDChangeDetector": "d=0.05,b=50,e=0.0075,a=0.7,c=75",
        "STEPD": "r=500,o=0.001,w=0.05",
    },
}
"""Options of MOA's detectors that the paper found best over all its data sets, by kind of drift."""
DEFAULT: Final = {
    "ADWINChangeDetector": "a=0.002",
    "CusumDM": "n=30,d=0.005,l=50",
    "DDM": "n=30,w=2.0,o=3.0",
    "EWMAChartDM": "n=30,l=0.2",
    "GeometricMovingAverageDM": "n=30,l=1.0,a=0.99",
    "HDDM_A_Test": "d=0.001,w=0.005,t=Two-sided",
    "HDDM_W_Test": "d=0.001,w=0.005,m=0.05,t=Two-sided",
    "PageHinkleyDM": "n=30,d=0.005,l=50,a=0.9999",
    "RDDM": "n=129,w=1.773,o=2.258,x=40000,y=7000,z=1400",
    "SEEDChangeDetector": "d=0.05,b=32,e=0.01,a=0.8,c=75",
    "STEPD": "r=30,o=0.003,w=0.05",
}
"""CapyMOA's defaults."""
NAMES: Final = tuple(DEFAULT)
DRIFTS: Final = ((False, "abrupt"), (True, "gradual"))
"""Whether drifts are gradual, and the word for it."""


def _paper_detectors(jars: Path, options: dict[str, str]) -> tuple[Candidate, ...]:
    return moa_detectors(jars, [f"{name}:{options[name]}" for name in NAMES])


def _hits(run: Run) -> Run:
    return Run(~run.losses, run.positions, run.drifts, run.instances)


# The paper's own synthetic streams.


def reproduced(effort: Effort) -> list[Table]:
    """Run the paper's detectors on its own streams, once with hits as in the paper, and once with errors."""
    jars = _moa(effort)
    headings, cells = ["detector"], {name: [name] for name in NAMES}
    turned_headings, turned = ["detector"], {name: list[Cell]([name]) for name in NAMES}
    agree = 0
    for generator in generated.GENERATORS:
        for gradual, how in DRIFTS:
            key = f"{generator.name}, {how}"
            effort.progress(f"the paper's streams: {key}")
            run = generated.published(jars, generator, generated.WIDTH if gradual else 0)
            detectors = _paper_detectors(jars, TUNED[how])
            headings += [f"{key}, paper", f"{key}, found"]
            turned_headings += [f"{key}, hits", f"{key}, errors"]
            hits, errors = _hits(run), run
            hit_losses, error_losses = stacked([hits]), stacked([errors])
            for name, detector in zip(NAMES, detectors, strict=True):
                rule = Rule(generated.MAX_DELAY)
                of_hits = _counted(detector, hit_losses, hits, rule)
                of_errors = _counted(detector, error_losses, errors, rule)
                true, false, missed = PUBLISHED["synthetic"][key][name]
                agree += (true, false, missed) == (of_hits.true, of_hits.false, of_hits.missed)
                cells[name] += [f"{true}/{false}/{missed}", _counts(of_hits)]
                turned[name] += [Measured(of_hits.f1, decimals=3), Measured(of_errors.f1, decimals=3)]
    total = len(NAMES) * 2 * len(generated.GENERATORS)
    return [
        Table(
            "The paper's synthetic streams again: alarms true / alarms false / drifts missed",
            tuple(headings),
            tuple(tuple(cells[name]) for name in NAMES),
            f"{agree} of {total} figures are the paper's to the alarm. Detectors have the parameters that "
            "the paper found best over all its data sets, and are given hits (1 for a right answer), as its "
            "experiments give them; 30 drifts, an alarm within 1,000 instances of a drift is true. The last "
            "of the 30 leads from a function to itself, so nothing drifts there. Alarms after the last "
            "tolerance are left out, as the paper's code did.",
        ),
        Table(
            "F1 of the same detectors on the same streams, given hits as in the paper, and given errors",
            tuple(turned_headings),
            tuple(tuple(turned[name]) for name in NAMES),
            "MOA's ADWIN, CUSUM, DDM, EWMA, Page–Hinkley and RDDM look for a rise of what they are given. "
            "Given hits, they look for a model that gets better, and miss each drift at which it gets worse. "
            "The parameters are those tuned on hits in both columns.",
        ),
    ]


def _counted(detector: Candidate, losses: Any, run: Run, rule: Rule) -> Metrics:
    alarms = within(at_instances(detector.alarms(losses), [run])[0], run.drifts, rule)
    return measured(episodes_of(alarms, run.drifts, rule), rule, run.instances)


def _counts(metrics: Metrics) -> str:
    return f"{metrics.true}/{metrics.false}/{metrics.missed}"


# All detectors, on streams drawn in the paper's two ways from several seeds.


def f1(metrics: Metrics) -> float:
    """Return F1."""
    return metrics.f1


@dataclass(frozen=True, slots=True)
class _Column:
    heading: str
    value: Callable[[Metrics], float]
    decimals: int = 2


COLUMNS: Final = (
    _Column("precision", lambda m: m.precision),
    _Column("recall", lambda m: m.recall),
    _Column("episode recall", lambda m: m.episode_recall),
    _Column("F1", f1),
    _Column("MDT", lambda m: m.delay, 0),
    _Column("NDT", lambda m: m.normalised_delay),
    _Column("FAR", lambda m: m.false_rate, 3),
    _Column("AR", lambda m: m.alarm_rate, 3),
)
METRICS_NOTE: Final = (
    "Means over the worlds named in the title, of each the metric over all drifts of all seeds; ± jackknife "
    "error over seeds. Precision, recall and F1 count every alarm within the tolerance, episode recall "
    "counts drifts; MDT is the mean delay in instances of drifts that were found, NDT the same in "
    "tolerances; FAR and AR are false alarms and alarms in 1,000 instances. Detectors are given errors (1 "
    "for a wrong answer) and have the defaults of their libraries. The daemon's look for rises of the "
    "error; *both* are the same looking for falls as well. The last five rows are controls, which see "
    "no loss."
)


def generated_tables(effort: Effort) -> list[Table]:
    """Score all detectors on MOA's generators with abrupt and gradual drifts."""
    tables: list[Table] = []
    for gradual, how in DRIFTS:
        worlds = generated_worlds(effort, gradual=gradual)
        title = f"generated streams, {how} drifts (Agrawal, SEA, STAGGER)"
        tables.append(_scores(title, worlds, _entrants(worlds, effort)))
    return tables


def generated_worlds(effort: Effort, *, gradual: bool) -> list[World]:
    """Draw streams of every generator from all seeds."""
    jars, seeds = _moa(effort), range(effort.seed, effort.seed + effort.seeds)
    width, drifts = generated.WIDTH if gradual else 0, effort.size(5, 2)
    worlds: list[World] = []
    for generator in generated.GENERATORS:
        effort.progress(f"{generator.name}, {'gradual' if gradual else 'abrupt'}")
        worlds.append(generated.drawn(jars, generator, width, seeds, drifts))
    return worlds


def recorded_worlds(effort: Effort, recorded: induced.Recorded, *, gradual: bool) -> list[World]:
    """Draw streams with each kind of drift from a data set, from all seeds."""
    jars, how = _moa(effort), "gradual" if gradual else "abrupt"
    worlds: list[World] = []
    for kind in induced.KINDS:
        effort.progress(f"{recorded.of.name}, {kind}, {how}")
        rngs = [effort.rng(recorded.of.name, kind, how, seed) for seed in range(effort.seeds)]
        worlds.append(induced.drawn(jars, recorded, kind, gradual=gradual, rngs=rngs))
    return worlds


def recorded_tables(effort: Effort) -> list[Table]:
    """Score all detectors on data sets with induced drifts, and compare F1 with the paper's figures.

    Raises
    ------
    DataError
        If `effort` names no folder with data sets, or one cannot be read.
    """
    jars = _moa(effort)
    if effort.data is None:
        raise induced.DataError("expected a folder with data sets (--data)")
    data, absent = induced.read(effort.data)
    names = ", ".join(each.of.name for each in data)
    note = f" Not to be had: {', '.join(absent)}." if absent else ""
    tables: list[Table] = []
    again: dict[str, list[Cell]] = {name: [name] for name in NAMES}
    headings = ["detector"]
    for gradual, how in DRIFTS:
        by_set = [recorded_worlds(effort, recorded, gradual=gradual) for recorded in data]
        worlds = [world for those in by_set for world in those]
        entrants = _entrants(worlds, effort)
        tables.append(_scores(f"{names} with induced drifts, {how} (four kinds)", worlds, entrants, note))
        tables.append(_by_kind(f"F1 by kind of drift: {names}, {how}", worlds, entrants))
        for recorded, those in zip(data, by_set, strict=True):
            key = f"{recorded.of.name}, {how}"
            printed = PUBLISHED["recorded"].get(key)
            if printed is None:
                continue
            effort.progress(f"the paper's defaults: {key}")
            headings += [f"{key}, paper", f"{key}, found", f"{key}, errors"]
            hits = [World(world.name, world.rule, tuple(map(_hits, world.runs))) for world in those]
            asks = [each.alarms for each in _paper_detectors(jars, DEFAULT)]
            of_hits, of_errors = mean_f1(asks, hits), mean_f1(asks, those)
            for name, one, other in zip(NAMES, of_hits, of_errors, strict=True):
                again[name] += [Measured(printed[name][0], printed[name][1], 3), one, other]
    tables.append(
        Table(
            "F1 over four kinds of drift at CapyMOA's defaults: the paper's, found on hits, found on errors",
            tuple(headings),
            tuple(tuple(again[name]) for name in NAMES),
            f"The paper has 50 trials of each kind, here there are {effort.seeds}, drawn apart; ± "
            "jackknife errors over trials. Found: detectors are given hits, as in the paper; errors: they "
            "are given errors.",
        )
    )
    return tables


def mean_f1(asks: Sequence[Callable[[Losses], Alarms]], worlds: Sequence[World]) -> list[Measured]:
    """Compute the mean F1 over worlds of each detector, given as a function from losses to alarms."""
    found: list[list[Measured]] = [[] for _ in asks]
    for world in worlds:
        losses = stacked(world.runs)
        for those, ask in zip(found, asks, strict=True):
            counts = scored(at_instances(ask(losses), world.runs), world)
            those.append(pooled(counts, world, f1))
    return [mean_of(those) for those in found]


@dataclass(frozen=True, slots=True)
class _Entrant:
    name: str
    counts: list[list[Counts]]
    """Counts by world, then by run."""


def _entrants(worlds: Sequence[World], effort: Effort) -> list[_Entrant]:
    daemon = [*at_defaults(effort.moa)]
    last = max(index for index, each in enumerate(daemon) if each.library == "streamwatch")
    candidates = [*daemon[: last + 1], *in_both_directions(), *daemon[last + 1 :]]
    losses = [stacked(world.runs) for world in worlds]
    found: list[_Entrant] = []
    for each in candidates:
        effort.progress(f"{each.library} {each.name}")
        found.append(
            _Entrant(
                f"{each.library} {each.name}",
                [
                    scored(at_instances(each.alarms(given), world.runs), world)
                    for given, world in zip(losses, worlds, strict=True)
                ],
            )
        )
    for control in CONTROLS:
        by_world: list[list[Counts]] = []
        for world in worlds:
            alarms: list[list[int]] = []
            for number, run in enumerate(world.runs):
                rng = effort.rng("controls", world.name, number)
                drifts = [
                    (int(np.searchsorted(run.positions, start)), int(np.searchsorted(run.positions, end)))
                    for start, end in run.drifts
                ]
                alarms.append(control.alarms(len(run.losses), drifts, rng))
            by_world.append(scored(at_instances(alarms, world.runs), world))
        found.append(_Entrant(f"control: {control.name}", by_world))
    return found


def _scores(title: str, worlds: Sequence[World], entrants: Sequence[_Entrant], note: str = "") -> Table:
    rows: list[tuple[Cell, ...]] = []
    for entrant in entrants:
        cells: list[Cell] = [entrant.name]
        for column in COLUMNS:
            values = [
                pooled(counts, world, column.value, column.decimals)
                for counts, world in zip(entrant.counts, worlds, strict=True)
            ]
            cells.append(mean_of(values, column.decimals))
        rows.append(tuple(cells))
    headings = ("detector", *(column.heading for column in COLUMNS))
    seeds = f" Seeds: {len(worlds[0].runs)}."
    return Table(f"Metrics at defaults: {title}", headings, tuple(rows), METRICS_NOTE + seeds + note)


def _by_kind(title: str, worlds: Sequence[World], entrants: Sequence[_Entrant]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for entrant in entrants:
        values = [pooled(counts, world, f1) for counts, world in zip(entrant.counts, worlds, strict=True)]
        rows.append((entrant.name, *values))
    rises: list[Cell] = ["rise of the error"]
    rises += [_rise(world) for world in worlds]
    headings = ("detector", *(", ".join(world.name.split(", ")[:2]) for world in worlds))
    return Table(
        title,
        headings,
        (tuple(rises), *rows),
        "Rise of the error: mean error within the tolerance after the onset less that before it. Where it is "
        "not above 0, the drift does the model no harm, and a detector of rises is right to miss it.",
    )


def _rise(world: World) -> Measured:
    found: list[float] = []
    for run in world.runs:
        (start, _end) = run.drifts[0]
        before = run.losses[run.positions < start]
        after = run.losses[(run.positions >= start) & (run.positions <= start + world.rule.max_delay)]
        found.append(float(after.mean() - before.mean()))
    values = np.array(found)
    return Measured(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))), 3)


def _moa(effort: Effort) -> Path:
    if effort.moa is None:
        raise ValueError("expected a folder with MOA's jar files (--moa)")
    return effort.moa


# Detectors tuned as in the paper: by F1, with equal budgets, on other streams than those of the scores.
#
# Every detector is tried at `BUDGET` strictnesses on the development streams of simulated losses. The one
# with the highest mean F1 is then scored on the paper's streams, generated and recorded.


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
