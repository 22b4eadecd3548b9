"""Recovery analysis: how far the error of learners rises at a drift, and how long it takes to fall back.

Brzezinski, Stefanowski, §1, and Cervantes et al., §2.4, after Shaker and Hüllermeier 2015. The depth is the
highest faded error after the drift minus the level before; recovery is the first outcome after that peak at
which the faded error is within its Hoeffding bound of the level before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan

import numpy as np
from numpy.typing import NDArray

from streamwatch.papers import learners as naive_bayes
from streamwatch.papers.learners import ADWIN_DRIFT, FADING, at_alarms, spec_of, watch
from streamwatch.papers.result import (
    Cell,
    Effort,
    Experiment,
    Figure,
    Floats,
    Line,
    Panel,
    Result,
    Table,
    over_runs,
    share,
)
from streamwatch.papers.streams.gaussians import draw
from streamwatch.papers.streams.sources import CLASSES, drifting_waveform
from streamwatch.papers.streams.testbed import named

CONFIDENCE = 0.05
DRIFT = 5_000
"""Instance (0-based) of the change in every stream."""
OUTCOMES = 10_000


@dataclass(frozen=True, slots=True)
class Recovery:
    """Depth and recovery of one drift."""

    before: float
    """Error at the drift."""
    depth: float
    """Highest error after the drift minus that before; 0 if it never rose."""
    outcomes: float
    """Outcomes from the drift until the error is back; NaN if it did not come back."""


def recovery(error: Floats, n_eff: Floats, drift: int, end: int | None = None) -> Recovery:
    """Measure the depth and recovery of one drift.

    Parameters
    ----------
    error, n_eff
        Faded error and its effective sample size after each outcome, (n,).
    drift
        Instance (0-based) at which the stream changes: the last outcome before it has index drift − 1.
    end
        Instance up to which the error is considered; by default all.

    Raises
    ------
    ValueError
        If there is no outcome before the drift, or none after.
    """
    after = error[drift:end]
    if not 0 < drift < len(error) or not len(after):
        raise ValueError(f"a drift needs outcomes before and after it, got {drift} of {len(error)}")
    before = float(error[drift - 1])
    bound = float(np.sqrt(np.log(2.0 / CONFIDENCE) / (2.0 * n_eff[drift - 1])))
    fallen = after > before + bound
    if not fallen.any():
        return Recovery(before, max(float(after.max()) - before, 0.0), 0.0)
    peak = int(after.argmax())
    back = ~fallen[peak:]
    waited = float(peak + back.argmax() + 1) if back.any() else float("nan")
    return Recovery(before, float(after.max()) - before, waited)


Answers = Callable[[Floats, NDArray[np.int64], int], NDArray[np.int64]]
_LEARNERS: tuple[tuple[str, Answers], ...] = (
    ("remembers all", naive_bayes.predictions),
    ("remembers 2,000", lambda x, y, k: naive_bayes.predictions(x, y, k, 2_000)),
    ("remembers 250", lambda x, y, k: naive_bayes.predictions(x, y, k, 250)),
    ("begins anew at ADWIN's alarms", lambda x, y, k: at_alarms(x, y, k, spec_of(), ADWIN_DRIFT)[0]),
)


def _waves(rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
    return drifting_waveform(rng, DRIFT, 2)


def _testbed(name: str) -> Callable[[np.random.Generator], tuple[Floats, NDArray[np.int64]]]:
    def drawn(rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
        found = draw(named(name).mixture, OUTCOMES, int(rng.integers(2**31)))
        return found.x, found.true_class

    return drawn


_STREAMS = (
    ("waveforms, classes renamed", _waves, CLASSES),
    ("NSGT-I", _testbed("NSGT-I"), 2),
    ("NSPC-A", _testbed("NSPC-A"), 2),
)


def run(effort: Effort) -> Result:
    """Measure depth and recovery of naive Bayes learners on streams with one known change."""
    runs = effort.size(20, 4)
    rows: list[tuple[Cell, ...]] = []
    panels: list[Panel] = []
    shown = np.arange(DRIFT - 1_000, OUTCOMES, 20)
    for title, drawn, classes in _STREAMS:
        effort.progress(f"recovery: {title}")
        streams = [drawn(effort.rng("recovery", title, r)) for r in range(runs)]
        lines: list[Line] = []
        for name, learner in _LEARNERS:
            truth = np.stack([y for _, y in streams])
            answers = np.stack([learner(x, y, classes) for x, y in streams])
            watched = watch(spec_of(), truth, answers)
            error = watched.error(FADING)
            found = [recovery(error[r], watched.totals(r, FADING).n_eff, DRIFT) for r in range(runs)]
            rows.append(
                (
                    title,
                    name,
                    over_runs([each.before for each in found], 3),
                    over_runs([each.depth for each in found], 3),
                    over_runs([each.outcomes for each in found], 0),
                    share(sum(not isnan(each.outcomes) for each in found), runs, 2),
                )
            )
            lines.append(Line(name, shown + 1.0, error.mean(axis=0)[shown]))
        panels.append(Panel(title, "outcomes", "faded error", tuple(lines), (float(DRIFT),)))
    table = Table(
        f"Fall and recovery at a change at instance {DRIFT:,}, of the error faded by .999",
        ("stream", "naive Bayes", "error before", "depth of the fall", "outcomes to recover", "recovered"),
        tuple(rows),
        "Brzezinski and Stefanowski mention recovery analysis without an experiment, and Cervantes et al. "
        "compare the peaks of their curves by eye, so there are no published numbers to compare with. The "
        "outcomes to recover are a mean over the runs that recovered within 5,000 outcomes, whose share is "
        "in the last column; 0 means that the error never left its bound. The faded error itself needs "
        "about 1,000 outcomes to forget a fall. In NSGT-I, the second half of a lap repeats the first one, "
        "so a long memory falls least, or gains (§4.3 of Cervantes et al.).",
    )
    return Result(
        (table,), (Figure("recovery", "Error around a known change, mean over runs", tuple(panels)),)
    )


KIND = Experiment(
    "recovery",
    "Recovery analysis",
    "Brzezinski, Stefanowski, §1; Cervantes et al., §2.4; Shaker, Hüllermeier 2015",
    (
        "How deep each estimate falls at a known change, and after how many outcomes it is back; "
        "the papers print no numbers."
    ),
    run,
)
