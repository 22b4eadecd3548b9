"""What estimates from sampled labels do in a world, watched at the end of every bucket."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan

import numpy as np

from streamwatch.core.predictions.kind import PredictionBatch
from streamwatch.core.predictions.sampled_labels import SampledLabelsSpec
from streamwatch.core.predictions.sampled_labels.register import SampledLabels
from streamwatch.core.records.outcomes import OutcomeBatch
from streamwatch.core.records.scores import NO_LISTS, ScoreLists
from tests.calibration.sampled.worlds import BUCKETS, CLASSES, HORIZON_MS, WIDTH_MS, Stream, World, stream_of

WITH_OTHER = [*CLASSES, "other"]
MODELS = ["m"]


@dataclass(frozen=True)
class Run:
    """One run, for loss, lead over no change and lead over the majority.

    Attributes
    ----------
    held
        Whether the interval included the truth at every look.
    looks
        Number of looks at which there was one.
    width
        Its mean width at the last 50 looks.
    bias
        Mean of estimate − truth over them.
    unweighted
        Share of hits among all labels, minus the accuracy of all predictions.
    missing, falsely
        Whether labels were said to be missing at the end, and at any look.
    differ
        Whether probabilities were said to differ, at any look.
    """

    held: tuple[bool, ...]
    looks: int
    width: tuple[float, ...]
    bias: tuple[float, ...]
    unweighted: float
    missing: bool
    falsely: bool
    differ: bool


def run_of(stream: Stream, *, scored: bool = True, delta: float = 0.05) -> Run:
    """Feed a stream bucket by bucket, and look after each."""
    register = SampledLabels(SampledLabelsSpec(HORIZON_MS, delta))
    predictions, outcomes = stream.predictions.copy(), stream.outcomes
    score_of = stream.scores[stream.of_outcome]
    if not scored:
        predictions["score"] = np.nan
    made, resolved = predictions["record_ms"], outcomes["resolved_ms"]
    expected = stream.loss, stream.no_change, stream.majority
    truths = [np.concatenate([[0.0], np.cumsum(each)]) for each in expected]
    held, widths, biases = [True] * 3, [[], [], []], [[], [], []]
    looks, falsely, differ, found = 0, False, False, None
    for bucket in range(BUCKETS):
        start, stop = bucket * WIDTH_MS, (bucket + 1) * WIDTH_MS
        a, b = np.searchsorted(made, [start, stop])
        register.observe(PredictionBatch(predictions[a:b], MODELS, CLASSES))
        a, b = np.searchsorted(resolved, [start, stop])
        part = outcomes[a:b]
        given = NO_LISTS
        part = part.copy()
        if scored:
            other, values = len(CLASSES), score_of[a:b]
            classes = np.stack([part["predicted_class"], np.full(len(part), other, np.int32)], axis=1)
            shares = np.stack([values, 1.0 - values], axis=1)
            ends, segments = 2 * np.arange(1, len(part) + 1), np.full(len(part), -1, np.int32)
            given = ScoreLists(ends, classes.ravel(), shares.ravel(), segments)
            part["scores"] = np.arange(len(part))
        register.learn(OutcomeBatch(part, MODELS, WITH_OTHER, given))
        found = register.estimates()["m"]
        falsely |= found.missing
        differ |= found.too_many
        if isnan(found.loss.lower):
            continue
        looks += 1
        a, b = np.searchsorted(made, [found.since_ms, found.until_ms])
        for k, each in enumerate((found.loss, *found.leads)):
            if isnan(each.lower):
                continue
            truth = float(truths[k][b] - truths[k][a]) / (b - a)
            held[k] &= each.lower <= truth <= each.upper
            if bucket >= BUCKETS - 50:
                widths[k].append(each.upper - each.lower)
                biases[k].append(each.value - truth)
    labelled = stream.of_outcome
    hits = outcomes["true_class"] == outcomes["predicted_class"]
    return Run(
        tuple(held),
        looks,
        tuple(float(np.mean(each)) for each in widths),
        tuple(float(np.mean(each)) for each in biases),
        float(hits.mean() - (1.0 - stream.loss.mean())) if len(labelled) else float("nan"),
        bool(found is not None and found.missing),
        bool(falsely),
        bool(differ),
    )


@dataclass(frozen=True)
class Figures:
    """Figures of several runs; those with three values are of loss and of both leads."""

    runs: int
    held: tuple[float, ...]
    width: tuple[float, ...]
    width_without_scores: float
    bias: float
    unweighted_bias: float
    missing: float
    differ: float


def figures_of(world: World, runs: int, seed: int = 0, *, delta: float = 0.05) -> Figures:
    """Simulate runs of a world; widths without scores are of the first tenth of them."""
    found: list[Run] = []
    plain: list[float] = []
    for number in range(runs):
        stream = stream_of(world, 1_000_003 * seed + number)
        found.append(run_of(stream, delta=delta))
        if number < max(3, runs // 10):
            plain.append(run_of(stream, scored=False, delta=delta).width[0])
    return Figures(
        runs,
        tuple(float(np.mean([run.held[k] for run in found])) for k in range(3)),
        tuple(float(np.mean([run.width[k] for run in found])) for k in range(3)),
        float(np.mean(plain)),
        float(np.mean([-run.bias[0] for run in found])),
        float(np.mean([run.unweighted for run in found])),
        float(np.mean([run.missing if world.lost else run.falsely for run in found])),
        float(np.mean([run.differ for run in found])),
    )
