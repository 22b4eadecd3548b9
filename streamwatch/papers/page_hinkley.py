"""Delays of Page-Hinkley by its fading factor (Gama, Sebastião, Rodrigues 2009, Table 2)."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.specs import PageHinkleySpec
from streamwatch.papers import learners as naive_bayes
from streamwatch.papers.learners import PAGE_HINKLEY, alarms_of, spec_of, watch_losses
from streamwatch.papers.result import (
    Cell,
    Effort,
    Experiment,
    Figure,
    Line,
    Panel,
    Result,
    Table,
    over_runs,
)
from streamwatch.papers.streams.sources import drifts, sea

REMAINDERS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 0.0)
"""Values of 1 − α in the paper's Table 2."""
PRINTED = (
    ("1045 (1)", "654 (0)", "856 (1)"),
    ("1609", "2129", "1357"),
    ("2039", "2464", "1609"),
    ("2089", "2507", "1637"),
    ("2094", "2511", "2511"),
    ("2095", "2511", "1641"),
)
"""Delays in Table 2, by `REMAINDERS` and drift; false alarms in parentheses."""
TOLERANCE, THRESHOLD = 1e-3, 2.5
SETTLED = 5_000
"""Number of the first outcomes, at which the learner still improves; their alarms are ignored."""
Form: TypeAlias = Literal["paper", "clipped"]


def run(effort: Effort) -> Result:
    """Measure the delays of each factor at the three drifts of SEA, and its false alarms."""
    runs = effort.runs("naive Bayes on SEA", 20, 4)
    losses = np.stack([_losses(effort, r) for r in runs])
    forms: tuple[tuple[Form, str], ...] = (
        ("paper", "the paper's sum and its minimum"),
        ("clipped", "the daemon's default, clipped at 0"),
    )
    tables = tuple(_table(effort, losses, form, words) for form, words in forms)
    return Result(tables, (_figure(losses[0]),))


def spec(remainder: float, form: Form) -> PageHinkleySpec:
    """Build the detector of one row of the table."""
    return PageHinkleySpec(
        tolerance=TOLERANCE,
        threshold=THRESHOLD,
        alpha=1.0 - remainder,
        form=form,
        input="error_rate",
    )


def _losses(effort: Effort, r: int) -> NDArray[np.bool_]:
    x, truth = sea(effort.rng("sea", r))
    return naive_bayes.predictions(x, truth, 2) != truth


def _table(effort: Effort, losses: NDArray[np.bool_], form: Form, words: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for remainder, printed in zip(REMAINDERS, PRINTED, strict=True):
        effort.progress(f"Page-Hinkley, {words}: 1 − α = {remainder:g}")
        waits, false = [], []
        for each in losses:
            alarms = np.array(alarms_of(spec_of(page_hinkley=spec(remainder, form)), each)[PAGE_HINKLEY])
            waits.append(_waits(alarms))
            false.append(int(((alarms > SETTLED) & (alarms <= drifts()[0])).sum()))
        cells: list[Cell] = [f"{remainder:g}"]
        for printed_wait, found in zip(printed, np.transpose(waits), strict=True):
            cells += [printed_wait, over_runs(found, 0)]
        rows.append((*cells, over_runs(false, 2)))
    return Table(
        f"Outcomes from a drift to its alarm, {words}",
        (
            "1 − α",
            *(h for i in (1, 2, 3) for h in (f"drift {i}, paper", f"drift {i}, found")),
            "false alarms",
        ),
        tuple(rows),
        (
            "δ = 1e-3, λ = 2.5, on the error of naive Bayes on the SEA concepts, 15,000 outcomes each; the "
            "paper's figures are from one run on one stream (false alarms in parentheses), here they are "
            "means over independently drawn runs. The paper does not say how the error forgets. Here it "
            "fades by .999, so it rises at once and is detected in a fraction of the printed delays; an "
            "error over all outcomes gives delays like the printed ones. False alarms are counted from "
            "outcome 5,000 to the first drift."
            + (
                ""
                if form == "paper"
                else " If the sum is clipped at 0, a smaller α forgets evidence instead of moving the sum "
                "away from its minimum. As α falls, delays therefore grow a little, and false alarms "
                "do not."
            )
        ),
    )


def _waits(alarms: NDArray[np.int64]) -> list[float]:
    """Compute outcomes from each drift to the first alarm before the next drift; NaN without one."""
    edges = (*drifts(), len(drifts()) * 15_000 + 15_000)
    found: list[float] = []
    for drift, end in pairwise(edges):
        after = alarms[(alarms > drift) & (alarms <= end)]
        found.append(float(after[0] - drift) if len(after) else float("nan"))
    return found


def _figure(losses: NDArray[np.bool_]) -> Figure:
    """Reproduce the paper's Figure 8: the error, and the statistic with its threshold."""
    watched = watch_losses(spec_of(page_hinkley=spec(0.0, "paper")), losses)
    trace = watched.traces[0]
    shown = np.arange(99, len(losses), 100)
    at = shown + 1.0
    changes = tuple(float(drift) for drift in drifts())
    error = Line("error, fading .999", at, watched.error(1)[0][shown])
    statistic = Line("m − M", at, trace.statistic[PAGE_HINKLEY][shown])
    return Figure(
        "page_hinkley",
        "Page-Hinkley without fading on the error of naive Bayes on SEA, one run",
        (
            Panel("error", "outcomes", "error", (error,), changes),
            Panel("statistic", "outcomes", "PH", (statistic,), changes, (THRESHOLD,)),
        ),
    )


KIND = Experiment(
    "page-hinkley",
    "Delays of Page-Hinkley by its fading factor",
    "Gama, Sebastião, Rodrigues 2009, §3.4.1, Table 2",
    (
        "The less is forgotten, the later the alarm and the fewer the false ones. The printed "
        "delays are those of an error over all outcomes."
    ),
    run,
)
