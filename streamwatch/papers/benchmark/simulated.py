"""Simulated losses of known error: delays at equal false alarms, and false alarms at defaults.

Both differ in errors, sizes of the rise and paces. Streams with *independent* losses are separate from
*dependent* ones, in which losses repeat the previous one with probability .8 (so that their correlation is
.8), or their error follows a daily cycle, which a detector must not take for a drift.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from streamwatch.papers.benchmark.contestants import (
    BUDGET,
    OURS,
    Betting,
    Ladder,
    at_defaults,
    at_rungs,
    candidate,
    ladders,
    own,
)
from streamwatch.papers.detection.candidates import Alarms, Candidate, defaults
from streamwatch.papers.detection.experiment import restricted
from streamwatch.papers.detection.streams import Change, Losses, repeating
from streamwatch.papers.result import Cell, Effort, Floats, Measured, Table, over_runs

Group: TypeAlias = Literal["independent", "dependent"]
CALM: Final = 6_000
"""Outcomes before the rise."""
SPAN: Final = 5_000
"""Outcomes after the rise within which an alarm finds it."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """Stream of losses whose error may rise once, from `low` to `high`."""

    low: float
    high: float
    width: int = 0
    """Outcomes over which the error rises linearly; 0: at once."""
    rho: float = 0.0
    """Correlation of a loss with the previous one."""
    day: int = 0
    """Length of a daily cycle in outcomes; 0 without one."""
    swing: float = 0.0
    """Amplitude of the cycle, as a share of the error."""

    @property
    def name(self) -> str:
        """Name that states the rise and the dependence of losses."""
        how = f" over {self.width:,}" if self.width else ""
        extra = f", ρ = {self.rho:g}" if self.rho else ""
        cycle = f", days of {self.day:,} ± {self.swing:.0%}" if self.day else ""
        return f"{self.low:g} to {self.high:g}{how}{extra}{cycle}"

    @property
    def group(self) -> Group:
        """Group of the stream."""
        return "dependent" if self.rho or self.day else "independent"

    def still(self, outcomes: int, rng: np.random.Generator) -> Losses:
        """Draw one run whose error stays at `low`, (outcomes,)."""
        return self._drawn(np.full(outcomes, self.low), rng)

    def changed(self, rng: np.random.Generator) -> Losses:
        """Draw one run whose error rises after `CALM` outcomes, (CALM + SPAN,)."""
        ramp = np.linspace(self.low, self.high, self.width, endpoint=False)
        parts = [np.full(CALM, self.low), ramp, np.full(SPAN - self.width, self.high)]
        return self._drawn(np.concatenate(parts), rng)

    @property
    def change(self) -> Change:
        """Position and span of the rise."""
        return Change(CALM, SPAN)

    def _drawn(self, error: Floats, rng: np.random.Generator) -> Losses:
        if self.day:
            hours = np.arange(len(error)) + int(rng.integers(self.day))
            error = error * (1.0 + self.swing * np.sin(2.0 * np.pi * hours / self.day))
        return repeating(error, rng, self.rho)


DEVELOPMENT: Final = (
    Simulated(0.02, 0.06),
    Simulated(0.1, 0.15),
    Simulated(0.2, 0.3),
    Simulated(0.2, 0.4, width=2_500),
    Simulated(0.2, 0.4, rho=0.8),
    Simulated(0.1, 0.2, day=1_440, swing=0.3),
)
HELD_OUT: Final = (
    Simulated(0.05, 0.1),
    Simulated(0.15, 0.22),
    Simulated(0.3, 0.45),
    Simulated(0.1, 0.25, width=2_500),
    Simulated(0.15, 0.35, rho=0.8),
    Simulated(0.15, 0.27, day=1_000, swing=0.3),
)


# Delays at equal false alarms: strictness is chosen on development streams, scores are of held-out ones.


Ask: TypeAlias = Callable[[Losses], Alarms]
DEFAULTS: Final = ("page_hinkley", "adwin")
"""Detectors of the daemon that are on by default."""
PROMISED: Final = 2.0
"""Most false alarms in 100,000 outcomes of development streams."""
BETS: Final = (Betting(), Betting(0.5, 25_000))
"""Parameters of the detector by betting: those of verdicts, and some that give about `PROMISED` alarms."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one detector on the held-out streams of a group."""

    name: str
    library: str
    rung: str
    rate: Measured
    """False alarms in 100,000 outcomes of streams that do not change."""
    delays: Floats
    """Outcomes to the first alarm, `SPAN` for a missed rise, (streams, runs); empty if not scored."""
    developed: float = math.nan
    """Mean delay on the development streams; NaN if unknown."""

    @property
    def called(self) -> str:
        """Name of the detector in tables."""
        return f"{self.library} {self.name}"

    def cells(self) -> list[Cell]:
        """Build the cells of its row: rate, mean delay, share missed, delay by stream; NaN without delays."""
        if not self.delays.size:
            return [self.rate, *[Measured(math.nan)] * (2 + len(self.delays))]
        return [
            self.rate,
            over_runs(self.delays.mean(axis=0), 0),
            over_runs((self.delays >= SPAN).mean(axis=0), 2),
            *(over_runs(each, 0) for each in self.delays),
        ]


def frozen_tables(effort: Effort) -> list[Table]:
    """Choose the strictness of every detector on development streams, then score it on held-out ones."""
    found = ladders(effort.moa)
    tables: list[Table] = []
    for group in ("independent", "dependent"):
        tables += _tables(group, found, effort)
    return tables


def _stills(streams: Sequence[Simulated], effort: Effort, label: str) -> list[Losses]:
    length = effort.size(25_000, 5_000)
    return [
        np.stack(
            [
                stream.still(length, effort.rng(label, "still", stream.name, seed))
                for seed in range(effort.seeds)
            ]
        )
        for stream in streams
    ]


def _rises(streams: Sequence[Simulated], effort: Effort, label: str) -> list[Losses]:
    return [
        np.stack([stream.changed(effort.rng(label, stream.name, seed)) for seed in range(effort.seeds)])
        for stream in streams
    ]


def _rate(alarms: Sequence[Alarms], outcomes: Sequence[int]) -> Measured:
    """Compute alarms in 100,000 outcomes over all streams, with the error over runs."""
    runs = len(alarms[0])
    per_run = [1e5 * sum(len(those[r]) for those in alarms) / sum(outcomes) for r in range(runs)]
    return over_runs(per_run, 2)


def _tables(group: Group, found: Sequence[Ladder], effort: Effort) -> list[Table]:
    development = [stream for stream in DEVELOPMENT if stream.group == group]
    held_out = [stream for stream in HELD_OUT if stream.group == group]
    calm, rising = _stills(development, effort, "development"), _rises(development, effort, "development")
    frozen: list[tuple[int, float]] = []
    for ladder in found:
        effort.progress(f"{group}, frozen on development streams: {ladder.library} {ladder.name}")
        rung = _rung(ladder, calm)
        frozen.append(
            (rung, _delays(ladder.rungs[rung], rising, development).mean() if rung >= 0 else math.nan)
        )
    still, changed = _stills(held_out, effort, "held out"), _rises(held_out, effort, "held out")
    outcomes: list[Outcome] = []

    def asked(name: str, library: str, rung: str, ask: Ask, developed: float = math.nan) -> None:
        effort.progress(f"{group}, held out: {library} {name}")
        rate = _rate([ask(losses) for losses in still], [losses.shape[1] for losses in still])
        outcomes.append(Outcome(name, library, rung, rate, _delays(ask, changed, held_out), developed))

    kept = {
        (ladder.library, ladder.name): rung
        for ladder, (rung, _) in zip(found, frozen, strict=True)
        if rung >= 0
    }
    asks = {(each.library, each.name): each.alarms for each in at_rungs(effort.moa, kept)}
    for ladder, (rung, developed) in zip(found, frozen, strict=True):
        if rung >= 0:
            ask = asks[ladder.library, ladder.name]
            asked(ladder.name, ladder.library, f"{rung + 1} of {BUDGET}", ask, developed)
        else:
            nothing = Measured(math.nan)
            empty = np.empty((len(held_out), 0))
            outcomes.append(Outcome(ladder.name, ladder.library, "none kept it", nothing, empty))
    for bet in BETS:
        asked(bet.name, "betting", "stated", candidate(bet).alarms)
    both = [each for each in own(defaults()) if each.name in DEFAULTS]
    for each in both:
        asked(f"{each.name}, default", OURS, "default", each.alarms)
    asked(" and ".join(DEFAULTS) + ", defaults", OURS, "default", lambda losses: _union(both, losses))
    return [_table(group, development, held_out, outcomes, effort), _chosen(group, held_out, outcomes)]


def _union(candidates: Sequence[Candidate], losses: Losses) -> Alarms:
    """Merge the alarms of several detectors, by run."""
    each = [candidate.alarms(losses) for candidate in candidates]
    return [sorted(alarm for those in runs for alarm in those) for runs in zip(*each, strict=True)]


def _delays(ask: Ask, rising: Sequence[Losses], streams: Sequence[Simulated]) -> Floats:
    return np.stack(
        [restricted(ask(losses), stream.change) for losses, stream in zip(rising, streams, strict=True)]
    )


def _rung(ladder: Ladder, calm: Sequence[Losses]) -> int:
    """Find the laxest rung with at most `PROMISED` false alarms on the calm streams; −1 without any.

    Rungs are tried from the strict end up to the first with more.
    """
    kept = -1
    for number in range(BUDGET - 1, -1, -1):
        alarms = [ladder.rungs[number](losses) for losses in calm]
        if _rate(alarms, [losses.shape[1] for losses in calm]).value > PROMISED:
            break
        kept = number
    return kept


def dominates(other: Outcome, one: Outcome) -> bool:
    """Tell whether `other` was sooner than `one` without more false alarms.

    Its mean delay must be lower by more than two standard errors (run by run, on the same losses), and its
    rate of false alarms higher by at most two. False if one was not scored.
    """
    if not other.delays.size or not one.delays.size:
        return False
    apart = over_runs(one.delays.mean(axis=0) - other.delays.mean(axis=0))
    excess = other.rate.value - one.rate.value
    noise = float(np.hypot(one.rate.error, other.rate.error))
    return apart.value > 2.0 * apart.error and excess <= 2.0 * noise


def _table(
    group: Group,
    development: Sequence[Simulated],
    held_out: Sequence[Simulated],
    outcomes: Sequence[Outcome],
    effort: Effort,
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in outcomes:
        others = [each for each in outcomes if each.library != one.library and dominates(each, one)]
        others.sort(key=lambda each: float(each.delays.mean()))
        named = ", ".join(each.called for each in others[:2])
        more = f" and {len(others) - 2} more" if len(others) > 2 else ""
        rows.append((one.called, one.rung, *one.cells(), named + more))
    headings = (
        "detector",
        "strictness",
        "false alarms in 100,000",
        "mean delay",
        "missed",
        *(stream.name for stream in held_out),
        "dominated by",
    )
    return Table(
        f"Held-out streams, {group} losses, at {PROMISED:g} false alarms in 100,000 on development streams",
        headings,
        tuple(rows),
        f"Of {BUDGET} strictnesses the laxest with at most {PROMISED:g} false alarms in 100,000 outcomes "
        f"on the development streams ({'; '.join(stream.name for stream in development)}) before their "
        "error rises; a detector of which none keeps that is not scored. False alarms, mean delay and "
        f"missed rises are those on the held-out streams, {effort.seeds} seeds each; a missed rise counts "
        f"{SPAN:,} outcomes. Betting has no strictness: its promise is stated, for independent losses. "
        "Dominated by: detectors of another library that were sooner on the same losses, by more than two "
        "standard errors, and had no more false alarms, up to two standard errors.",
    )


def _chosen(group: Group, held_out: Sequence[Simulated], outcomes: Sequence[Outcome]) -> Table:
    """Build the table of the detector of each library that was soonest on the development streams."""
    rows: list[tuple[Cell, ...]] = []
    for library in dict.fromkeys(each.library for each in outcomes):
        those = [each for each in outcomes if each.library == library and not math.isnan(each.developed)]
        if those:
            best = min(those, key=lambda each: each.developed)
            rows.append((best.called, Measured(best.developed, decimals=0), *best.cells()))
    headings = ("detector", "delay on development streams", "false alarms in 100,000", "mean delay", "missed")
    return Table(
        f"The detector that each library would choose by the development streams, {group} losses",
        (*headings, *(stream.name for stream in held_out)),
        tuple(rows),
        "Chosen for the least mean delay on development streams at the strictness frozen there; its other "
        "figures are those of the held-out streams, as above.",
    )


# False alarms of detectors at defaults while no error rises, by dependence of losses.


ERRORS: Final = (0.05, 0.2)
DAY: Final = 1_440
"""Outcomes per day: one a minute."""
SWING: Final = 0.3
"""Amplitude of the daily cycle, as a share of the error."""
OUTCOMES: Final = 50_000
"""Outcomes of each stream for the daemon's detectors; others get the first fifth."""


def worlds(error: float) -> tuple[Simulated, ...]:
    """Build streams whose error does not rise: with correlations 0, .5 and .8, and with a daily cycle."""
    return (
        Simulated(error, error),
        Simulated(error, error, rho=0.5),
        Simulated(error, error, rho=0.8),
        Simulated(error, error, day=DAY, swing=SWING),
    )


def calibration_tables(effort: Effort) -> list[Table]:
    """Count the false alarms of all detectors at defaults."""
    candidates = at_defaults(effort.moa)
    headings, rows = ["detector"], [list[Cell]([f"{each.library} {each.name}"]) for each in candidates]
    length = effort.size(OUTCOMES, OUTCOMES // 10)
    for error in ERRORS:
        for world, how in zip(
            worlds(error), ("ρ = 0", "ρ = .5", "ρ = .8", f"days ± {SWING:.0%}"), strict=True
        ):
            effort.progress(f"calibration: error {error:g}, {how}")
            headings.append(f"{error:g}, {how}")
            full = np.stack(
                [
                    world.still(length, effort.rng("calibration", world.name, seed))
                    for seed in range(effort.seeds)
                ]
            )
            part = np.ascontiguousarray(full[:, : length // 5])
            for row, each in zip(rows, candidates, strict=True):
                losses = full if each.library == OURS else part
                rates = [1e5 * len(alarms) / losses.shape[1] for alarms in each.alarms(losses)]
                row.append(over_runs(rates, 1))
    return [
        Table(
            "False alarms in 100,000 outcomes at defaults, where no error rises",
            tuple(headings),
            tuple(tuple(row) for row in rows),
            f"By error and by how losses depend on one another: ρ is the correlation of a loss with the "
            f"one before; days: the error follows a daily cycle of {DAY:,} outcomes, {SWING:.0%} up and "
            f"down. {effort.seeds} streams, of {length:,} outcomes for the daemon's detectors and "
            f"{length // 5:,} for the others; 0.0 means that there was none in all of them.",
        )
    ]
