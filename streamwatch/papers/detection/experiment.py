"""Scores of the daemon's, river's and MOA's detectors on streams with known changes, and by strictness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from streamwatch.core.specs import DetectorSpec
from streamwatch.history.tuning.promise import TUNED
from streamwatch.papers.detection import peers
from streamwatch.papers.detection.candidates import Alarms, Candidate, defaults, own_alarms, published
from streamwatch.papers.detection.streams import (
    CALM,
    GROUPS,
    SPAN,
    Change,
    Group,
    Losses,
    LossStream,
    Score,
    levels,
    ramp,
    score,
    together,
)
from streamwatch.papers.result import (
    Cell,
    Effort,
    Experiment,
    Figure,
    Floats,
    Line,
    Measured,
    Panel,
    Result,
    Table,
    over_runs,
    share,
)

NAMES: Final = tuple(spec.name for spec in defaults())
"""Names of all kinds of detectors, in the order of `KINDS`."""
EQUAL: Final = 20.0
"""False alarms in a million outcomes at which delays are compared."""
STEPS: Final = 12
"""Number of strictnesses, at equal ratios."""
_RANGES: Final = {
    "page_hinkley": (8.0, 300.0),
    "adwin": (1.0, 60.0),
    "ddm": (2.0, 8.0),
    "cusum": (8.0, 300.0),
    "hddm_a": (2.0, 80.0),
    "hddm_w": (2.0, 80.0),
    "ewma": (2.0, 9.0),
    "stepd": (3.0, 60.0),
    "kswin": (3.0, 40.0),
}
"""Range of the strictness (as in `history.tuning.promise`), from too lax to too strict."""


@dataclass(frozen=True, slots=True)
class _Scenario:
    name: str
    still: LossStream
    changed: LossStream
    change: Change


def _scenario(name: str, low: float, changed: Floats, rho: float, span: int = SPAN) -> _Scenario:
    change = Change(CALM, span)
    still = together(f"still, {name}", levels((low, 100_000)), rho, ())
    return _Scenario(name, still, together(f"changed, {name}", changed, rho, (change,)), change)


def _step(low: float, high: float) -> Floats:
    return levels((low, CALM), (high, SPAN))


SCENARIOS: Final = (
    _scenario("step .02 to .06", 0.02, _step(0.02, 0.06), 0.0),
    _scenario("step .2 to .25", 0.2, _step(0.2, 0.25), 0.0),
    _scenario("step .2 to .3", 0.2, _step(0.2, 0.3), 0.0),
    _scenario("step .2 to .5", 0.2, _step(0.2, 0.5), 0.0),
    _scenario("ramp .2 to .4 over 5,000", 0.2, ramp(0.2, 0.4, 5_000), 0.0, 5_000 + SPAN),
    _scenario("step .2 to .3, ρ = .5", 0.2, _step(0.2, 0.3), 0.5),
)
DRAWN: Final = (2, 5)
"""Indices of the scenarios in the figure."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Results of one detector in one scenario, by strictness; arrays are (strictnesses,)."""

    false: Floats
    """Number of alarms on the stream without a change."""
    per_million: Floats
    """Alarms in a million outcomes of that stream."""
    delay: Floats
    """Mean outcomes from the change to the alarm; the whole span if the change is missed."""
    error: Floats
    """Standard error of `delay`."""

    def at(self, per_million: float) -> Measured:
        """Interpolate the delay at a rate of false alarms; NaN if the rate is not between two strictnesses.

        Its error includes those of the delay and of the rate.
        """
        rate = np.minimum.accumulate(self.per_million)  # stricter detectors alarm less, except by chance
        lax = np.flatnonzero(rate > per_million)
        if not len(lax) or lax[-1] + 1 == len(rate):
            return Measured(math.nan, 0.0, 0)
        i, j = int(lax[-1]), int(lax[-1]) + 1
        unit = self.per_million[i] / self.false[i]  # rate of a single alarm
        upper, lower = math.log(rate[i]), math.log(max(rate[j], 0.5 * unit))
        part = (upper - math.log(per_million)) / (upper - lower)
        slope = (self.delay[j] - self.delay[i]) / (upper - lower)
        unsure = abs(slope) / math.sqrt(per_million / unit)
        value = self.delay[i] + part * (self.delay[j] - self.delay[i])
        return Measured(float(value), math.hypot(float(self.error[i : j + 1].mean()), unsure), 0)


def _published(name: str, strictness: float) -> DetectorSpec:
    """Build the detector of this strictness, without correction for dependent losses."""
    spec: Any = TUNED[name].spec(strictness)
    return replace(spec, dependence="ignored") if hasattr(spec, "dependence") else spec


def curves(effort: Effort, others: Sequence[Candidate]) -> tuple[Table, Figure]:
    """Build the table of delays at one rate of false alarms, and the figure of their curves.

    In the figure, detectors of other libraries at defaults are points.
    """
    grids = [TUNED[name].grid(*_RANGES[name], STEPS) for name in NAMES]
    settings = [
        tuple(_published(name, float(grid[s])) for name, grid in zip(NAMES, grids, strict=True))
        for s in range(STEPS)
    ]
    rows: list[list[Cell]] = [[f"streamwatch {name}"] for name in NAMES]
    panels: list[Panel] = []
    for number, scenario in enumerate(SCENARIOS):
        effort.progress(f"delay against false alarms: {scenario.name}")
        still = _runs(scenario.still, effort.size(5, 1), effort)
        changed = _runs(scenario.changed, effort.size(30, 8), effort)
        found = _curves(settings, still, changed, scenario.change)
        for row, curve in zip(rows, found, strict=True):
            row.append(curve.at(EQUAL))
        if number in DRAWN:
            panels.append(_panel(scenario, found, _points(others, still, changed, scenario, effort)))
    table = Table(
        f"Mean delay at {EQUAL:g} false alarms in a million outcomes",
        ("detector", *(scenario.name for scenario in SCENARIOS)),
        tuple(tuple(row) for row in rows),
        "Each detector has the strictness (the parameter that `streamwatch tune` sets) at which it raises "
        f"{EQUAL:g} false alarms in a million outcomes of the same kind of stream without a change, "
        "interpolated if no strictness that was tried gives exactly this rate. A missed change counts with "
        f"its whole span, {SPAN:,} outcomes (the ramp {5_000 + SPAN:,}). A dash (–) means that no "
        "strictness that was tried gives this rate.",
    )
    return table, Figure("detectors", "Delay against false alarms, by strictness", tuple(panels))


def _runs(stream: LossStream, runs: int, effort: Effort) -> Losses:
    return np.stack([stream.draw(effort.rng("strictness", stream.name, r)) for r in range(runs)])


def _curves(
    settings: Sequence[tuple[DetectorSpec, ...]], still: Losses, changed: Losses, change: Change
) -> list[Curve]:
    """Compute the curve of each detector."""
    counts = np.zeros((len(NAMES), len(settings)))
    delay, error = np.zeros(counts.shape), np.zeros(counts.shape)
    for s, specs in enumerate(settings):
        for d, alarms in enumerate(own_alarms(specs, still)):
            counts[d, s] = sum(map(len, alarms))
        for d, alarms in enumerate(own_alarms(specs, changed)):
            waited = restricted(alarms, change)
            delay[d, s], error[d, s] = waited.mean(), waited.std(ddof=1) / math.sqrt(len(waited))
    return [Curve(counts[d], counts[d] / still.size * 1e6, delay[d], error[d]) for d in range(len(NAMES))]


def restricted(alarms: Alarms, change: Change) -> Floats:
    """Compute outcomes from a change to the first alarm in its span, or the span without one; (runs,)."""
    first = [min((a - change.at for a in run if a > change.at), default=change.span) for run in alarms]
    return np.minimum(np.array(first, np.float64), change.span)


def _points(
    others: Sequence[Candidate], still: Losses, changed: Losses, scenario: _Scenario, effort: Effort
) -> list[Line]:
    """Build the points of other libraries' detectors at their defaults."""
    points: list[Line] = []
    for library in dict.fromkeys(other.library for other in others):
        effort.progress(f"delay against false alarms: {scenario.name}, {library}")
        taken = [other for other in others if other.library == library]
        rates = [sum(map(len, other.alarms(still))) / still.size * 1e6 for other in taken]
        late = [float(restricted(other.alarms(changed), scenario.change).mean()) for other in taken]
        floor = 0.5e6 / still.size
        line = Line(
            f"{library}, defaults",
            np.maximum(rates, floor),
            np.array(late),
            dots=True,
            names=tuple(other.name for other in taken),
        )
        points.append(line)
    return points


def _panel(scenario: _Scenario, found: Sequence[Curve], points: Sequence[Line]) -> Panel:
    lines: list[Line] = []
    for name, curve in zip(NAMES, found, strict=True):
        seen = curve.per_million > 0.0
        lines.append(Line(name, curve.per_million[seen], curve.delay[seen]))
    return Panel(
        f"{scenario.name}; further down and to the left is better",
        "false alarms in a million outcomes",
        "mean delay",
        (*lines, *points),
        logarithmic=True,
        logarithmic_y=True,
    )


# Scores of the daemon's, river's and MOA's detectors on streams with known changes.


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
    others = peers.river_detectors() + (() if effort.moa is None else peers.moa_detectors(effort.moa))
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
