"""Holdout and prequential errors, with and without forgetting (Gama, Sebastião, Rodrigues 2009, §3.2.1)."""

from __future__ import annotations

import numpy as np

from streamwatch.papers.learners import (
    ADWIN,
    FADING,
    LANDMARK,
    SLIDING,
    LinearDiscriminant,
    spec_of,
    watch,
    watch_losses,
)
from streamwatch.papers.result import (
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
from streamwatch.papers.streams.sources import CLASSES, OPTIMAL_ERROR, waveform

OUTCOMES = 20_000
LEAST, EXTRA, PACE = 0.10, 0.40, 2_000.0
"""The loss is wrong with probability LEAST + EXTRA·e^(−t/PACE)."""
REFIT = 100
_ESTIMATES = (
    ("prequential", LANDMARK),
    ("sliding 1,000", SLIDING),
    ("fading .999", FADING),
    ("ADWIN", ADWIN),
)


def run(effort: Effort) -> Result:
    """Compare estimates for improving learners: a simulated one of known error, and one on waveforms."""
    learning, learning_panel = _known(effort)
    waves, waves_panel = _waveform(effort)
    figure = Figure(
        "holdout", "Holdout beside prequential error, mean over runs", (learning_panel, waves_panel)
    )
    return Result((learning, waves, _batches(effort)), (figure,))


def true_error(t: Floats) -> Floats:
    """Compute the error of the simulated learner at its t-th outcome, t from 1 on."""
    return LEAST + EXTRA * np.exp(-t / PACE)


def _known(effort: Effort) -> tuple[Table, Panel]:
    runs = effort.runs("learner of known error", 30, 8)
    t = np.arange(1.0, OUTCOMES + 1)
    losses = np.stack([effort.rng("known", r).random(OUTCOMES) < true_error(t) for r in runs])
    watched = watch_losses(spec_of(), losses)
    tested = [effort.rng("known holdout", r).random(10_000) < true_error(t[-1:]) for r in range(len(runs))]
    holdout = watch_losses(spec_of(), np.stack(tested)).error(LANDMARK)[:, -1]
    found = {"holdout": holdout} | {name: watched.error(kind)[:, -1] for name, kind in _ESTIMATES}
    expected = {"prequential": float(true_error(t).mean())}
    rows = tuple(
        (
            name,
            Measured(expected.get(name, float(true_error(t[-1:])[0]))),
            over_runs(values),
            Measured(float(values.std(ddof=1)), float(values.std(ddof=1)) / np.sqrt(2 * len(values) - 2)),
        )
        for name, values in found.items()
    )
    table = Table(
        f"Error at outcome {OUTCOMES:,} of a learner whose loss is Bernoulli(.10 + .40·e^(−t/2000))",
        ("estimate", "expected", "found", "sd of one run"),
        rows,
        "Expected is the mean error of all outcomes so far for the prequential error, which forgets "
        "nothing, and the present error for all other estimates. The paper plots curves and prints no "
        "numbers. An estimate that forgets nothing stays above the present error; one that forgets does "
        "not.",
    )
    shown = np.arange(99, OUTCOMES, 100)
    curves = [Line(name, t[shown], watched.error(kind).mean(axis=0)[shown]) for name, kind in _ESTIMATES[:3]]
    curves.append(Line("true error", t[shown], true_error(t)[shown], dashed=True))
    return table, Panel("learner of known error", "outcomes", "error", tuple(curves))


def _waveform(effort: Effort) -> tuple[Table, Panel]:
    n, tests = effort.size(20_000, 5_000), effort.size(5_000, 2_000)
    marks = [m for m in (500, 1_000, 2_000, 5_000, 10_000, 20_000) if m <= n]
    runs = effort.runs("linear discriminant on waveforms", 30, 6)
    curves: dict[str, list[Floats]] = {}
    held: list[list[float]] = []
    for r in runs:
        x, truth = waveform(effort.rng("waveform", r), n)
        x_test, truth_test = waveform(effort.rng("waveform test", r), tests)
        learner, answers, tested = LinearDiscriminant(CLASSES, 21), np.zeros(n, np.int64), []
        for begin in range(0, n, REFIT):
            if begin in marks:
                tested.append(learner.predict(x_test))
            answers[begin : begin + REFIT] = learner.predict(x[begin : begin + REFIT])
            learner.learn(x[begin : begin + REFIT], truth[begin : begin + REFIT])
        tested.append(learner.predict(x_test))
        on_holdout = watch(spec_of(), np.tile(truth_test, (len(tested), 1)), np.stack(tested))
        held.append(list(on_holdout.error(LANDMARK)[:, -1]))
        fast = watch(spec_of(alpha=0.975, size=1_000), truth, answers)
        slow = watch(spec_of(alpha=0.999, size=min(5_000, n // 2)), truth, answers)
        for name, watched, kind in (
            ("prequential", fast, LANDMARK),
            ("sliding 1,000", fast, SLIDING),
            (f"sliding {min(5_000, n // 2):,}", slow, SLIDING),
            ("fading .975", fast, FADING),
            ("fading .999", slow, FADING),
        ):
            curves.setdefault(name, []).append(watched.error(kind)[0])
    at = np.array(marks) - 1
    rows = [("holdout", *(over_runs(column) for column in zip(*held, strict=True)))]
    rows += [
        (name, *(over_runs(column) for column in np.stack(found)[:, at].T)) for name, found in curves.items()
    ]
    table = Table(
        "Error of a learner on waveforms, by the number of outcomes",
        ("estimate", *(f"{mark:,}" for mark in marks)),
        tuple(rows),
        f"According to the paper, the optimal error is {OPTIMAL_ERROR:.2f}. The paper's learner is VFDT, "
        "after up to 1.5 million examples; here it is a linear discriminant, fitted again every 100 "
        "outcomes, which comes near the optimum after some thousand outcomes. The paper's finding is the "
        "order: the prequential error is above the holdout error, and with any forgetting it approaches "
        f"it. Holdout is an independent test set of {tests:,} instances.",
    )
    shown = np.arange(99, n, 50)
    lines = [
        Line(name, shown + 1.0, np.stack(found).mean(axis=0)[shown])
        for name, found in curves.items()
        if name != "fading .975"
    ]
    lines.append(Line("holdout", at + 1.0, np.mean(held, axis=0), dots=True))
    return table, Panel(
        "linear discriminant on waveforms", "outcomes", "error", tuple(lines), horizontals=(OPTIMAL_ERROR,)
    )


def _batches(effort: Effort) -> Table:
    """Compare fading per batch, E_i = (L_i + α·S)/(n_i + α·B) for batches of n_i, with fading per outcome."""
    t = np.arange(1.0, OUTCOMES + 1)
    runs = effort.runs("batches", 30, 8)
    losses = np.stack([effort.rng("batches", r).random(OUTCOMES) < true_error(t) for r in runs])
    alone = watch_losses(spec_of(), losses).error(FADING)[:, -1]
    rows = []
    for size in (1, 10, 100, 1_000):
        sums = losses.reshape(len(losses), -1, size).sum(axis=2).astype(np.float64)
        alpha = 0.999**size
        s = np.zeros(len(losses))
        b = 0.0
        for batch in sums.T:
            s, b = batch + alpha * s, size + alpha * b
        rows.append((f"{size:,}", Measured(alpha, 0.0, 5), over_runs(s / b), over_runs(s / b - alone, 5)))
    return Table(
        f"Faded error at outcome {OUTCOMES:,} if losses arrive in batches",
        ("outcomes a batch", "α of a batch", "found by the batch", "above one at a time"),
        tuple(rows),
        "The formula of §3.2.1 for n_i losses at once, with the factor that forgets equally fast per "
        "outcome. The daemon fades per outcome however records arrive, so its numbers do not depend on "
        "batches. The formula forgets nothing within a batch, which matters only if batches are as long as "
        "its memory.",
    )


KIND = Experiment(
    "holdout",
    "Holdout beside prequential error, with and without forgetting",
    "Gama, Sebastião, Rodrigues 2009, §3.2.1",
    (
        "An estimate that forgets nothing stays above the present error of a learner that improves; "
        "with any forgetting, it comes near it."
    ),
    run,
)
