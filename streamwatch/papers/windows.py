"""Fading factors, windows and ADWIN for a known true error (Gama et al. 2009; Bifet et al. 2015)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamwatch.papers.comparison import Recording, read_recording
from streamwatch.papers.learners import (
    ADWIN,
    FADING,
    SLIDING,
    Watched,
    spec_of,
    watch,
    watch_losses,
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
)

OUTCOMES = 20_000
SIZES = (100, 1_000, 10_000)
"""Window sizes of Bifet et al. 2015, Figure 3."""
HOLDOUT = 500
"""Size of the independent test set at every evaluation."""
LOOK = 100


def factor(size: int) -> float:
    """Compute the fading factor with the effective sample size of a window: (1 + α)/(1 − α) = size."""
    return (size - 1.0) / (size + 1.0)


def still(t: Floats) -> Floats:
    """Constant error."""
    return np.full(len(t), 0.2)


def step(t: Floats) -> Floats:
    """Error that rises once."""
    return np.where(t < OUTCOMES / 2, 0.1, 0.3)


def steps(t: Floats) -> Floats:
    """Error that steps up or down every 2,000 outcomes."""
    return np.where((t // 2_000) % 2 == 0, 0.1, 0.3)


def ramp(t: Floats) -> Floats:
    """Error that rises linearly."""
    return 0.1 + 0.3 * t / OUTCOMES


def wave(t: Floats) -> Floats:
    """Error that follows a sine of 5,000 outcomes."""
    return 0.25 + 0.15 * np.sin(2.0 * np.pi * t / 5_000.0)


SHAPES: tuple[tuple[str, Callable[[Floats], Floats]], ...] = (
    ("still, .2", still),
    ("one step, .1 to .3", step),
    ("steps every 2,000", steps),
    ("ramp, .1 to .4", ramp),
    ("wave of 5,000", wave),
)


def run(effort: Effort) -> Result:
    """Measure the distance of each estimate from the present true error."""
    recording = None if effort.recording is None else read_recording(effort.recording)
    t = np.arange(OUTCOMES, dtype=np.float64)
    runs = effort.size(20, 3)
    names = (
        "holdout of 500",
        "ADWIN",
        *(f"sliding {size:,}" for size in SIZES),
        *(f"fading {factor(size):.5g}" for size in SIZES),
    )
    found: dict[str, list[Cell]] = {name: [name] for name in names}
    panels: list[Panel] = []
    shown = np.arange(LOOK - 1, OUTCOMES, LOOK)
    for title, shape in SHAPES:
        effort.progress(f"windows and factors: {title}")
        truth = shape(t)
        losses = np.stack([effort.rng("losses", title, r).random(OUTCOMES) < truth for r in range(runs)])
        watched = {size: watch_losses(spec_of(size=size, alpha=factor(size)), losses) for size in SIZES}
        held = effort.rng("holdout", title).binomial(HOLDOUT, truth[shown], (runs, len(shown))) / HOLDOUT
        errors = dict(zip(names, [held, *_errors(watched, shown)], strict=True))
        for name, error in errors.items():
            found[name].append(over_runs(np.sqrt(((error - truth[shown]) ** 2).mean(axis=1)), 4))
        curves = [Line(name, shown + 1.0, errors[name][0]) for name in names[1:5]]
        curves.append(Line("true error", shown + 1.0, truth[shown], dashed=True))
        panels.append(Panel(title, "outcomes", "error", tuple(curves)))
    deviations = Table(
        "Distance of each estimate from the present true error (root mean square over time)",
        ("estimate", *(title for title, _ in SHAPES)),
        tuple(tuple(cells) for cells in found.values()),
        "Bifet et al. 2015 plot accuracies on Elec2, where no true error is known, and find that ADWIN is "
        "close to holdout, that short windows fluctuate, and that long ones lag. Here the true error is "
        "known, so the distance can be measured. No window is best for every pace of change. ADWIN needs "
        "no size and is the best or nearly the best estimate if the error is constant or changes rarely. "
        "If the error moves all the time, a window or factor chosen for that pace is closer. Each factor "
        "has the same effective sample size, (1 + α)/(1 − α), as the window listed in the same position.",
    )
    tables = (deviations, _equal_memory(effort))
    if recording is not None:
        table, panel = _recorded(recording, effort)
        tables, panels = (*tables, table), [*panels, panel]
    return Result(tables, (Figure("windows", "Estimates of one run", tuple(panels)),))


def _recorded(recording: Recording, effort: Effort) -> tuple[Table, Panel]:
    """Compare windows with ADWIN on a recording, whose true accuracy is unknown."""
    name = recording.tree
    effort.progress(f"windows and ADWIN on {name}")
    outcomes = len(recording.true_class)
    shown = np.arange(LOOK - 1, outcomes, LOOK)
    curves: dict[str, Floats] = {}
    for size in SIZES:
        watched = watch(spec_of(size=size), recording.true_class, recording.answers[name])
        curves[f"sliding {size:,}"] = watched.accuracy(SLIDING)[0, shown]
        curves["ADWIN"] = watched.accuracy(ADWIN)[0, shown]
    adwin = curves.pop("ADWIN")
    rows: list[tuple[Cell, ...]] = [
        (
            estimate,
            Measured(float(np.abs(accuracy - adwin).mean())),
            Measured(float(np.abs(np.diff(accuracy)).mean())),
        )
        for estimate, accuracy in {"ADWIN": adwin, **curves}.items()
    ]
    table = Table(
        f"Accuracy of {name} as recorded, windows compared with ADWIN (Figure 3)",
        ("estimate", "mean distance from ADWIN", f"mean change in {LOOK} outcomes"),
        tuple(rows),
        "Bifet et al. 2015, §6.1, plot a Hoeffding tree on Elec2 and print no numbers. Their findings: a "
        "window of 100 fluctuates, one of 10,000 is smooth, and one of 1,000 is the most like ADWIN.",
    )
    lines = [Line(estimate, shown + 1.0, accuracy) for estimate, accuracy in curves.items()]
    lines.insert(0, Line("ADWIN", shown + 1.0, adwin))
    return table, Panel(f"{name}, as recorded", f"outcomes, of {outcomes:,}", "accuracy", tuple(lines))


def _errors(watched: dict[int, Watched], shown: np.ndarray) -> list[Floats]:
    one = watched[SIZES[0]]
    found = [one.error(ADWIN)[:, shown]]
    for mechanism in (SLIDING, FADING):
        found += [watched[size].error(mechanism)[:, shown] for size in SIZES]
    return found


def _equal_memory(effort: Effort) -> Table:
    """Compare windows with factors of the same effective sample size: noise, and delay after a step."""
    t = np.arange(OUTCOMES, dtype=np.float64)
    runs = effort.runs("windows beside factors of equal memory", 40, 5)
    losses = np.stack([effort.rng("equal memory", r).random(OUTCOMES) < step(t) for r in runs])
    rows: list[tuple[Cell, ...]] = []
    for size in (100, 250, 1_000, 5_000):
        watched = watch_losses(spec_of(size=size, alpha=factor(size)), losses)
        for name, mechanism, kept in (
            (f"sliding {size:,}", SLIDING, size),
            (f"fading {factor(size):.5g}", FADING, 2),
        ):
            error = watched.error(mechanism)
            # Values so far apart that they hardly share outcomes.
            noise = (error[:, OUTCOMES // 2 - 1 : size : -2 * size] - 0.1).ravel()
            mean = error.mean(axis=0)[OUTCOMES // 2 :]
            half = float(np.argmax(mean > 0.2)) + 1.0
            sd = float(np.sqrt((noise**2).mean()))
            rows.append(
                (
                    name,
                    Measured(float(np.sqrt(0.1 * 0.9 / size))),
                    Measured(sd, sd / np.sqrt(2.0 * len(noise))),
                    Measured(half, _half_error(error[:, OUTCOMES // 2 :], mechanism, size), 0),
                    f"{kept:,}",
                )
            )
    return Table(
        "Windows and fading factors of equal effective sample size, one step from .1 to .3",
        ("estimate", "sd expected", "sd found", "outcomes until halfway, mean curve", "numbers kept"),
        tuple(rows),
        "The paper claims that fading gives the same result as a window, faster and without memory. At "
        "equal noise, a fading estimate is halfway after ln 2/(1 − α) ≈ .35 windows, whereas the window "
        "takes .5.",
    )


def _half_error(error: Floats, mechanism: int, size: int) -> float:
    """Compute the standard error of the halfway point: that of the mean curve there, over its slope."""
    slope = 0.2 / size if mechanism == SLIDING else 0.2 * (1.0 - factor(size)) / 2.0
    return float(np.sqrt(0.2 * 0.8 / size / len(error)) / slope)


KIND = Experiment(
    "windows",
    "Fading factors, windows and ADWIN where the true error is known",
    "Gama, Sebastião, Rodrigues 2009, §3.2.1; Bifet et al. 2015, §6",
    (
        "No window is best for every pace of change; ADWIN is the best or nearly so where the error "
        "is constant or changes rarely."
    ),
    run,
)
