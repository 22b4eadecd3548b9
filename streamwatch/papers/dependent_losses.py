"""Detectors on dependent losses: as they are, shuffled, and corrected (Žliobaitė et al. 2015, §5.1, §6.9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.papers.comparison import Classes, Recording, read_recording
from streamwatch.papers.detection.candidates import own_alarms, published
from streamwatch.papers.detection.experiment import restricted
from streamwatch.papers.detection.streams import CALM, SPAN, Change, Losses, levels, repeating, score
from streamwatch.papers.result import (
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
from streamwatch.papers.streams.sources import StickySpec, sticky

# Corrections that remove the dependence of losses, as detectors assume (Žliobaitė et al. 2015, §5.1).
#
# The paper notes that detectors for independent losses are used on dependent ones, refers to control charts
# for time series (Knoth, Schmid 2004; Wieringa 1999), and leaves the correction open. `thinned` and `redrawn`
# transform a stream of losses, so that every detector can be used unchanged.


FADING: Final = 0.999
"""Fading factor of the transitions that `redrawn` estimates, as in the daemon's temporal correction."""
LEARNED: Final = 1_000
"""Number of the first outcomes, from which `spacing` is estimated."""
LONGEST: Final = 50
"""Largest spacing, even if losses are correlated for longer."""


def spacing(losses: Losses) -> int:
    """Estimate the distance in outcomes between losses that hardly depend on each other.

    It is the first lag at which the autocorrelation of the first `LEARNED` losses is below 2/√n, two standard
    errors under independence; at most `LONGEST`, and 1 if the losses are constant.
    """
    some = losses[:LEARNED].astype(np.float64)
    away = some - some.mean()
    power = float(away @ away)
    if power == 0.0:
        return 1
    level = 2.0 / np.sqrt(len(some))
    for lag in range(1, min(LONGEST, len(some) - 1)):
        if float(away[lag:] @ away[:-lag]) / power < level:
            return lag
    return min(LONGEST, len(some))


def thinned(losses: Losses, every: int) -> Losses:
    """Return every `every`-th loss, (n // every,); the k-th (1-based) is that of outcome k · every.

    Raises
    ------
    ValueError
        If `every` is less than 1.
    """
    if every < 1:
        raise ValueError(f"losses are kept one in a whole number, got {every}")
    return losses[every - 1 :: every]


def redrawn(losses: Losses, rng: np.random.Generator, alpha: float = FADING) -> Losses:
    """Transform losses to independent ones of the same error.

    Each loss is mapped to its probability integral transform given the previous one, u = F(l_t − 1 | l_{t−1})
    + v · P(l_t | l_{t−1}) with v uniform (Rosenblatt 1952; randomised as losses are discrete), and back
    through the marginal: to 1 if u > 1 − P(l = 1). If losses are a Markov chain with these probabilities, the
    result is independent with the same error. Probabilities are estimated from earlier losses by counts that
    fade by α, with add-one smoothing; as P(l = 1) is estimated like this, a rise of the error remains.

    Parameters
    ----------
    losses
        Losses, (n,).
    rng
        Generator of v.
    alpha
        Fading factor in (0, 1].

    Raises
    ------
    ValueError
        If α is not in (0, 1].
    """
    if not 0.0 < alpha <= 1.0:
        raise ValueError(f"a fading factor must be in (0, 1], got {alpha}")
    found = np.empty(len(losses), np.bool_)
    after = [[1.0, 1.0], [1.0, 1.0]]
    """Faded counts by the previous loss, then by the loss."""
    before = 0
    for t, (loss, v) in enumerate(zip(losses.tolist(), rng.random(len(losses)).tolist(), strict=True)):
        row = after[before]
        given = row[1] / (row[0] + row[1])
        right, wrong = after[0][0] + after[1][0], after[0][1] + after[1][1]
        marginal = (wrong - 1.0) / (right + wrong - 2.0)
        u = (1.0 - given) + v * given if loss else v * (1.0 - given)
        found[t] = u > 1.0 - marginal
        for counts in after:  # the 1 of add-one smoothing does not fade
            counts[0] = 1.0 + alpha * (counts[0] - 1.0)
            counts[1] = 1.0 + alpha * (counts[1] - 1.0)
        row[int(loss)] += 1.0
        before = int(loss)
    return found


@dataclass(frozen=True, slots=True)
class Version:
    """Transformation of losses before detectors get them."""

    name: str
    made: Callable[[Losses, np.random.Generator], tuple[Losses, int]]
    """Losses (n,), generator → losses for detectors, and the number of outcomes per loss."""


def _shuffled(losses: Losses, rng: np.random.Generator) -> tuple[Losses, int]:
    """Shuffle the losses before the change, and separately those after it."""
    return np.concatenate([rng.permutation(losses[:CALM]), rng.permutation(losses[CALM:])]), 1


def _thinned(losses: Losses, _rng: np.random.Generator) -> tuple[Losses, int]:
    every = spacing(losses)
    return thinned(losses, every), every


IN_ORDER: Final = (
    Version("ordered", lambda losses, _rng: (losses, 1)),
    Version("thinned", _thinned),
    Version("redrawn", lambda losses, rng: (redrawn(losses, rng), 1)),
)
VERSIONS: Final = (Version("shuffled", _shuffled), *IN_ORDER)


# Dependent losses of known error, with or without a step.


LOW: Final = 0.2
HIGH: Final = 0.3
CHANGE: Final = Change(CALM, SPAN)
"""Step from `LOW` to `HIGH`."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of dependence of losses."""

    name: str
    correlation: float
    """Correlation of a loss with the previous one, while the error is `LOW`."""
    drawn: Callable[[NDArray[np.float64], np.random.Generator], Losses]
    """Error of each outcome (n,), generator → losses (n,)."""


def by_class(errors: tuple[float, float], repeat: float, priors: tuple[float, float]) -> float:
    """Compute the correlation of a loss with the previous one if the error depends on the class only.

    A label repeats the previous one with probability `repeat`, else it is drawn from `priors`; given the
    class, an outcome is wrong with probability `errors`, independently of others. The correlation is repeat ·
    π_A · π_B · (e_A − e_B)² / (p(1 − p)) with p = π_A·e_A + π_B·e_B. It is 0 under the first two conditions
    of Proposition 8 of Žliobaitė et al. 2015 (repeat = 0, or equal errors). NaN if p is 0 or 1.
    """
    p = priors[0] * errors[0] + priors[1] * errors[1]
    if not 0.0 < p < 1.0:
        return float("nan")
    return repeat * priors[0] * priors[1] * (errors[0] - errors[1]) ** 2 / (p * (1.0 - p))


def losses_by_class(
    errors: NDArray[np.float64], repeat: float, priors: tuple[float, float], rng: np.random.Generator
) -> Losses:
    """Draw losses of a classifier whose error depends on the class; `errors` (n, 2) by outcome and class."""
    labels = sticky(StickySpec(repeat=repeat, priors=priors), rng, len(errors)).true_class
    return rng.random(len(errors)) < errors[np.arange(len(errors)), labels]


_REPEAT: Final = 0.95
_PRIORS: Final = (0.6, 0.4)
_APART: Final = 0.375
"""Difference of the errors of the two classes."""


def _of_classes(error: NDArray[np.float64], rng: np.random.Generator) -> Losses:
    first = error - _PRIORS[1] * _APART
    return losses_by_class(np.stack([first, first + _APART], axis=1), _REPEAT, _PRIORS, rng)


_FIRST: Final = LOW - _PRIORS[1] * _APART
KINDS: Final = (
    Kind("losses repeat, ρ = .5", 0.5, partial(repeating, rho=0.5)),
    Kind("losses repeat, ρ = .8", 0.8, partial(repeating, rho=0.8)),
    Kind(
        "labels repeat, classes err unequally",
        by_class((_FIRST, _FIRST + _APART), _REPEAT, _PRIORS),
        _of_classes,
    ),
)


# Conditions for independent errors in Proposition 8 of Žliobaitė et al. 2015, one by one.


_CLASS_PRIORS = (0.9, 0.1)
_CASES: tuple[tuple[str, float, tuple[float, float]], ...] = (
    ("1: labels are independent", 0.0, (0.45, 0.05)),
    ("2: classes err equally", 0.8, (0.41, 0.41)),
    ("3: e_A/e_B = (P(B|B) − P(B))/(P(A|A) − P(A))", 0.8, (0.45, 0.05)),
    ("none", 0.8, (0.05, 0.45)),
)
"""Condition, probability that a label repeats the previous one, errors of classes A and B.

Then P(B|B) − P(B) is repeat · π_A and P(A|A) − P(A) is repeat · π_B, so the third condition is e_A/e_B =
π_A/π_B = 9.
"""


def correlation(losses: Losses) -> float:
    """Estimate the correlation of a loss with the previous one; NaN if losses are constant."""
    x = losses.astype(np.float64)
    return float(np.corrcoef(x[1:], x[:-1])[0, 1]) if 0.0 < x.mean() < 1.0 else float("nan")


def proposition_table(effort: Effort) -> Table:
    """Build the table of the correlation of errors under each condition, measured and by formula."""
    outcomes = effort.size(100_000, 20_000)
    rows: list[tuple[Cell, ...]] = []
    for name, repeat, errors in _CASES:
        found: list[float] = []
        for r in effort.runs(f"Proposition 8, {name}", 10, 4):
            rng = effort.rng("proposition", name, r)
            found.append(
                correlation(losses_by_class(np.tile(errors, (outcomes, 1)), repeat, _CLASS_PRIORS, rng))
            )
        rows.append(
            (
                name,
                f"{errors[0]:g}, {errors[1]:g}",
                "0" if name[0].isdigit() else "not 0",
                Measured(by_class(errors, repeat, _CLASS_PRIORS)),
                over_runs(found),
            )
        )
    return Table(
        "Correlation of an error with the one before, by condition (Proposition 8)",
        ("condition", "errors of A, B", "paper", "by formula", "found"),
        tuple(rows),
        "Class A has prior .9; labels repeat with probability .8, except in the first row; given the "
        "class, errors are independent. The covariance is then .8 · π_A · π_B · (e_A − e_B)². The first "
        "two conditions make errors independent; the third one, as it is printed, does not.",
    )


# Alarms on losses of recorded classifiers in three orders (Žliobaitė et al. 2015, §6.9).


_ORDERS: Final[tuple[str, ...]] = ("as recorded", "order of labels kept", "shuffled")


def recorded_tables(recording: Recording, effort: Effort) -> tuple[Table, Table]:
    """Count the alarms of every detector on the losses of every recorded classifier, in three orders.

    The second table has the correlations of these losses.
    """
    used = [name for name in recording.answers if name.endswith("@5")] or list(recording.answers)
    names = [spec.name for spec in published()]
    counts: dict[tuple[str, str], list[list[float]]] = {}
    correlations: dict[tuple[str, str], list[float]] = {}
    for name in used[: effort.size(len(used), 3)]:
        for r in range(effort.size(3, 1)):
            effort.progress(f"recorded losses: {name}, {r + 1}")
            rng = effort.rng("recorded losses", name, r)
            for order, losses in _orders(recording.true_class, recording.answers[name], rng).items():
                for version in IN_ORDER:
                    seen, every = version.made(losses, rng)
                    alarms = own_alarms(published(), seen[None, :])
                    rates = [1e4 * len(each[0]) / (every * len(seen)) for each in alarms]
                    counts.setdefault((order, version.name), []).append(rates)
                    correlations.setdefault((order, version.name), []).append(correlation(seen))
    keys = [(order, version.name) for order in _ORDERS for version in IN_ORDER]
    rows: list[tuple[Cell, ...]] = [
        (detector, *(over_runs([each[index] for each in counts[key]], 2) for key in keys))
        for index, detector in enumerate(names)
    ]
    alarms_found = Table(
        "Alarms in 10,000 outcomes on recorded losses (§6.9)",
        ("detector", *(f"{order}, {version}" for order, version in keys)),
        tuple(rows),
        "Mean over classifiers. Order of labels kept: answers are permuted among the outcomes of each "
        "class, as the paper permutes attributes, so the classifier's behaviour for a class no longer "
        "drifts, while labels still come in runs. Shuffled: everything is permuted, so every alarm is "
        "false. The paper does not count alarms: it says that DDM found no change in Elec2, neither with "
        "the order of labels kept nor shuffled. With correction, most of the alarms on the recorded stream "
        "disappear; which of the others are true is not known.",
    )
    related = Table(
        "Correlation of a recorded loss with the one before",
        ("order", *(version.name for version in IN_ORDER)),
        tuple(
            (order, *(over_runs(correlations[order, version.name], 3) for version in IN_ORDER))
            for order in _ORDERS
        ),
        "With the order of labels kept, little correlation remains. On Elec2, losses are correlated "
        "because attributes are; the runs of labels, which Proposition 8 is about, contribute little.",
    )
    return alarms_found, related


def _orders(truth: Classes, answers: Classes, rng: np.random.Generator) -> dict[str, Losses]:
    losses = truth != answers
    kept = losses.copy()
    for k in np.unique(truth):
        kept[truth == k] = rng.permutation(losses[truth == k])
    mixed = losses[rng.permutation(len(losses))]
    orders: tuple[Losses, ...] = (losses, kept, mixed)
    return dict(zip(_ORDERS, orders, strict=True))


_STEP: Final = levels((LOW, CALM), (HIGH, SPAN))
_FLOOR: Final = 0.5
"""Position in the figure of detectors without false alarms, in false alarms in 100,000."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Result of one detector on one version of the streams of a kind."""

    false: Measured
    """Alarms in 100,000 outcomes of streams that do not change."""
    delay: Measured
    """Mean outcomes to the first alarm after the step; `SPAN` if it is missed."""
    missed: Measured
    """Share of steps without an alarm."""


def run(effort: Effort) -> Result:
    """Run all detectors as published on every version of every stream; then on recorded losses."""
    recording = read_recording(effort.recording)  # raises before the minutes that follow
    names = [spec.name for spec in published()]
    tables, panels = [proposition_table(effort)], []
    for kind in KINDS:
        found = {version.name: _asked(kind, version, effort) for version in VERSIONS}
        tables.append(_table(kind, names, found))
        panels.append(_panel(kind, found))
    tables += recorded_tables(recording, effort)
    title = "Delay against false alarms, a dot per detector"
    return Result(tuple(tables), (Figure("dependent_losses", title, tuple(panels)),))


def _asked(kind: Kind, version: Version, effort: Effort) -> list[_Found]:
    """Measure the results of all detectors, in order."""
    runs, length = effort.size(12, 6), effort.size(40_000, 10_000)
    calm = np.full(length, LOW)
    false: list[list[float]] = []
    alarms: list[list[list[int]]] = []
    for r in effort.runs(f"{kind.name}, {version.name}", runs, runs):
        rng = effort.rng("dependent losses", kind.name, r)  # all versions use the same losses
        still, step = kind.drawn(calm, rng), kind.drawn(_STEP, rng)
        false.append([1e5 * len(each) / length for each in _alarms(version, still, rng)])
        alarms.append(_alarms(version, step, rng))
    found: list[_Found] = []
    for index in range(len(published())):
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
    """Return the alarms of each detector, as outcomes (1-based) of the stream before thinning."""
    seen, every = version.made(losses, rng)
    return [[every * alarm for alarm in run[0]] for run in own_alarms(published(), seen[None, :])]


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
        f"Detectors as published: {kind.name}",
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
    (
        "Detectors that assume independent losses raise many false alarms on losses that depend on "
        "one another."
    ),
    run,
)
