"""Detectors on dependent losses, as they are, shuffled, and corrected (Žliobaitė et al. 2015, §5.1, §6.9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from streamwatch.lab.experiments.dependent_losses import proposition, recorded
from streamwatch.lab.experiments.dependent_losses.corrections import redrawn, spacing, thinned
from streamwatch.lab.experiments.dependent_losses.streams import CHANGE, HIGH, KINDS, LOW, Kind
from streamwatch.lab.experiments.detection.candidates import defaults, own_alarms
from streamwatch.lab.experiments.detection.scoring import score
from streamwatch.lab.experiments.detection.streams import CALM, SPAN, Losses, levels
from streamwatch.lab.experiments.detection.strictness import restricted
from streamwatch.lab.experiments.recordings import read_recording
from streamwatch.lab.experiments.result import (
    Cell,
    Effort,
    Experiment,
    Figure,
    Line,
    Measured,
    Panel,
    Result,
    Table,
    over_runs,
    share,
)

_STEP: Final = levels((LOW, CALM), (HIGH, SPAN))
_FLOOR: Final = 0.5
"""False alarms in 100,000 at which the figure shows none."""


@dataclass(frozen=True, slots=True)
class Version:
    """Stream of losses as detectors see it, made of those that came."""

    name: str
    made: Callable[[Losses, np.random.Generator], tuple[Losses, int]]
    """Losses (n,) → those that detectors see, and how many outcomes each stands for."""


def _shuffled(losses: Losses, rng: np.random.Generator) -> tuple[Losses, int]:
    """Mixed within the outcomes before the change and within those after it, which stays."""
    return np.concatenate([rng.permutation(losses[:CALM]), rng.permutation(losses[CALM:])]), 1


def _thinned(losses: Losses, _rng: np.random.Generator) -> tuple[Losses, int]:
    every = spacing(losses)
    return thinned(losses, every), every


VERSIONS: Final = (
    Version("shuffled", _shuffled),
    Version("ordered", lambda losses, _rng: (losses, 1)),
    Version("thinned", _thinned),
    Version("redrawn", lambda losses, rng: (redrawn(losses, rng), 1)),
)


@dataclass(frozen=True, slots=True)
class _Found:
    """What one detector did on one version of the streams of a kind."""

    false: Measured
    """Alarms in 100,000 outcomes of streams that do not change."""
    delay: Measured
    """Mean outcomes to the first alarm after the step, missed ones with the whole span."""
    missed: Measured
    """Share of steps that were not found."""


def run(effort: Effort) -> Result:
    """Ask every detector, at its defaults, on every version of every stream; then on recorded losses."""
    recording = read_recording(effort.recording)  # refused, if at all, before the minutes that follow
    names = [spec.name for spec in defaults()]
    tables, panels = [proposition.table(effort)], []
    for kind in KINDS:
        found = {version.name: _asked(kind, version, effort) for version in VERSIONS}
        tables.append(_table(kind, names, found))
        panels.append(_panel(kind, found))
    tables += recorded.tables(recording, effort)
    title = "Delay against false alarms, a dot per detector"
    return Result(tuple(tables), (Figure("dependent_losses", title, tuple(panels)),))


def _asked(kind: Kind, version: Version, effort: Effort) -> list[_Found]:
    """What each detector did, in order."""
    runs, length = effort.size(12, 6), effort.size(40_000, 10_000)
    calm = np.full(length, LOW)
    false: list[list[float]] = []
    alarms: list[list[list[int]]] = []
    for r in effort.runs(f"{kind.name}, {version.name}", runs, runs):
        rng = effort.rng("dependent losses", kind.name, r)  # versions are of the same losses
        still, step = kind.drawn(calm, rng), kind.drawn(_STEP, rng)
        false.append([1e5 * len(each) / length for each in _alarms(version, still, rng)])
        alarms.append(_alarms(version, step, rng))
    found: list[_Found] = []
    for index in range(len(defaults())):
        of_runs = [each[index] for each in alarms]
        missed = sum(score(each, (CHANGE,), len(_STEP)).missed for each in of_runs)
        found.append(
            _Found(
                over_runs([each[index] for each in false], 1),
                over_runs(restricted(of_runs, CHANGE), 0),
                share(missed, runs, 2),
            )
        )
    return found


def _alarms(version: Version, losses: Losses, rng: np.random.Generator) -> list[list[int]]:
    """Outcomes (1-based) of the alarms of each detector, as outcomes of the stream before it was thinned."""
    seen, every = version.made(losses, rng)
    return [[every * alarm for alarm in run[0]] for run in own_alarms(defaults(), seen[None, :])]


def _table(kind: Kind, names: Sequence[str], found: dict[str, list[_Found]]) -> Table:
    headings = ["detector"]
    for what in ("false alarms", "mean delay", "missed"):
        headings += [f"{what}, {version}" for version in found]
    rows: list[tuple[Cell, ...]] = []
    for index, name in enumerate(names):
        each = [of[index] for of in found.values()]
        cells = (*(one.false for one in each), *(one.delay for one in each), *(one.missed for one in each))
        rows.append((name, *cells))
    return Table(
        f"Detectors at their defaults: {kind.name}",
        tuple(headings),
        tuple(rows),
        f"The correlation of a loss with the previous one is {kind.correlation:.2f}. False alarms: in "
        f"100,000 outcomes of streams with error {LOW:g}. Mean delay: outcomes to the first alarm after a "
        f"step from {LOW:g} to {HIGH:g}; a step without an alarm counts {SPAN:,}. Missed: share of steps "
        "without an alarm. Shuffled: the same losses in random order, separately before and after the "
        "step, which is what detectors assume. Thinned: only one loss in so many is used that the used "
        "ones hardly correlate. Redrawn: every loss is transformed by its probability given the previous "
        "loss, and back by the error; where labels repeat, losses depend on more than the previous one, so "
        "some of the false alarms remain.",
    )


def _panel(kind: Kind, found: dict[str, list[_Found]]) -> Panel:
    lines = tuple(
        Line(
            name,
            np.array([max(_FLOOR, each.false.value) for each in of]),
            np.array([each.delay.value for each in of]),
            dots=True,
        )
        for name, of in found.items()
    )
    label = f"false alarms in 100,000 outcomes; at {_FLOOR:g}: none"
    return Panel(kind.name, label, "mean delay", lines, logarithmic=True)


KIND = Experiment(
    "dependent-losses",
    "Detectors on losses that depend on those before",
    "Žliobaitė, Bifet, Read, Pfahringer, Holmes 2015, §5.1, §6.9",
    run,
)
