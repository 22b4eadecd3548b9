"""Ranking of learners by drift-weighted accuracy with several drift signals (Brzezinski, Stefanowski)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import DriftWeightedSpec
from streamwatch.papers import learners as naive_bayes
from streamwatch.papers.learners import DDM, LANDMARK, WITH_DDM, alarms_of, spec_of, watch
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
from streamwatch.papers.streams.sources import CLASSES, drifting_waveform

W_AVG = 3.0
LEARNERS: tuple[tuple[str, int | None], ...] = (
    ("quick, remembers 60", 60),
    ("slow, remembers 500", 500),
    ("remembers all", None),
)
"""Naive Bayes learners with their memory in outcomes: quick for the paper's DWM, slow for online bagging."""
REFERENCE = 1_000
"""Memory, in outcomes, of the learner on whose losses shared detectors run; it is not ranked."""
CRITERIA = (
    "accuracy",
    "weighted, own drifts",
    "weighted, shared ADWIN",
    "weighted, shared DDM",
    "weighted, known drifts",
)


@dataclass(frozen=True, slots=True)
class _Ran:
    """Results of one run."""

    by: Floats
    """Value of each criterion, (learners, criteria)."""
    drifts: tuple[int, int]
    """Number of drifts declared by the shared ADWIN, and by the shared DDM."""
    curves: Floats
    """Error over the last 1,000 outcomes, (learners, n)."""


def run(effort: Effort) -> Result:
    """Rank a quick, a slow and a never forgetting learner on waveforms with two abrupt drifts."""
    per_concept = 10_000
    ran = [_run(effort, r, per_concept) for r in effort.runs("learners on drifting waveforms", 20, 4)]
    by = np.stack([each.by for each in ran])
    rows: list[tuple[Cell, ...]] = [
        ("paper: DWM", "87.37", "–", "–", "87.38", "–"),
        ("paper: online bagging", "88.59", "–", "–", "87.12", "–"),
    ]
    rows += [
        (name, *(over_runs(100.0 * column, 2) for column in by[:, index].T))
        for index, (name, _) in enumerate(LEARNERS)
    ]
    first_wins = (by[:, 0] > by[:, 1]).sum(axis=0)
    rows.append(("runs in which quick is before slow", *(share(int(wins), len(ran)) for wins in first_wins)))
    declared = np.array([each.drifts for each in ran])
    rows.append(
        ("drifts declared (two are there)", "–", "–", *(over_runs(column, 1) for column in declared.T), "2")
    )
    table = Table(
        f"Accuracy and drift-weighted accuracy (w_avg = {W_AVG:g}), percent",
        ("learner", *CRITERIA),
        tuple(rows),
        "The paper's example: DWM and online bagging on one waveform stream with two drifts, weighted by "
        "DDM's drifts. The learner that is better on average is the worse one if slow reactions cost three "
        "times as much. The paper does not describe its learners and stream in enough detail, so naive "
        "Bayes with a short and with a longer memory is used instead; what is reproduced is the reversal. "
        "Each learner has drifts of its own, so values weighted by them are not comparable; values "
        "weighted by a shared signal are. Outcomes before a drift is declared keep their old weight, so "
        "with a slower detector, less of the fall has the higher weight. Known drifts have no delay.",
    )
    n = 3 * per_concept
    shown = np.arange(99, n, 50)
    lines = tuple(
        Line(name, shown + 1.0, np.mean([each.curves[index] for each in ran], axis=0)[shown])
        for index, (name, _) in enumerate(LEARNERS)
    )
    changes = (float(per_concept), 2.0 * per_concept)
    panel = Panel("error over the last 1,000 outcomes, mean over runs", "outcomes", "error", lines, changes)
    return Result((table,), (Figure("weighted", "Naive Bayes on drifting waveforms", (panel,)),))


def weights(n: int, drifts: list[int], w_avg: float = W_AVG) -> Floats:
    """Compute the weight of each of n outcomes, given the outcomes (1-based) at which drifts are declared.

    w(t) = max(1 + (w_avg − 1)·ln(d/(t + 1)), 1) for the t-th outcome after the m-th drift, declared at T,
    with d = T/m; 1 before the first drift.
    """
    found = np.ones(n)
    edges = [*drifts, n]
    for m, (declared, end) in enumerate(pairwise(edges), 1):
        t = np.arange(end - declared)
        found[declared:end] = np.maximum(1.0 + (w_avg - 1.0) * np.log(declared / m / (t + 1.0)), 1.0)
    return found


def _run(effort: Effort, r: int, per_concept: int) -> _Ran:
    x, truth = drifting_waveform(effort.rng("weighted", r), per_concept)
    answers = [naive_bayes.predictions(x, truth, CLASSES, memory) for _, memory in LEARNERS]
    reference = naive_bayes.predictions(x, truth, CLASSES, REFERENCE)
    own = watch(spec_of(), np.tile(truth, (len(answers), 1)), np.stack(answers))
    shared, declared = _by_reference(truth, answers, reference)
    ddm = alarms_of(WITH_DDM, reference != truth)[DDM]
    by = np.empty((len(answers), len(CRITERIA)))
    for index, predicted in enumerate(answers):
        hits = predicted == truth
        by[index] = (
            own.accuracy(LANDMARK)[index, -1],
            own.weighted()[index, -1],
            shared[index],
            np.average(hits, weights=weights(len(hits), ddm)),
            np.average(hits, weights=weights(len(hits), [per_concept, 2 * per_concept])),
        )
    recent = spec_of(size=1_000)
    curves = watch(recent, np.tile(truth, (len(answers), 1)), np.stack(answers)).error(2)
    return _Ran(by, (declared, len(ddm)), curves)


def _by_reference(
    truth: NDArray[np.int64], answers: list[NDArray[np.int64]], reference: NDArray[np.int64]
) -> tuple[Floats, int]:
    """Compute the daemon's drift-weighted accuracy by the drifts of a reference, and the number of drifts."""
    spec = spec_of(weighting=DriftWeightedSpec(w_avg=W_AVG, drift_signal="reference", reference="reference"))
    table = ModelTable(replace(spec, max_models=1 + len(answers)))
    rows = [table.add_model() for _ in range(1 + len(answers))]
    table.follow(0, rows[0])
    each = np.stack([reference, *answers], axis=1).astype(np.int32)  # the reference first, at every outcome
    shape = each.shape
    found = table.fold(
        np.broadcast_to(np.array(rows, np.int32), shape).ravel(),
        np.repeat(truth.astype(np.int32), shape[1]),
        each.ravel(),
    )
    declared = sum(alarm.row == rows[0] and alarm.detector == 1 for alarm in found)
    weighted, _ = table.weighted(np.array(rows[1:], np.int64), 0)
    return weighted, declared


KIND = Experiment(
    "weighted",
    "Ranking learners by drift-weighted accuracy",
    "Brzezinski, Stefanowski, Figure 1",
    "The learner that is better on average is the worse one if slow reactions cost three times as much.",
    run,
)
