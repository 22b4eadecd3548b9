"""Our measures beside MOA 24.07's evaluators, step by step.

Accuracy and kappa are the same numbers. MOA's gains over persistence and majority follow other conventions:
its persistent classifier starts from class 0 and divides by n, where our first outcome has no previous label;
its majority classifier guesses at every step from the totals including the current label, where ours is the
majority in hindsight. The twin below follows MOA's conventions and matches MOA, and with ours it matches us.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections import deque
from functools import cache
from pathlib import Path

import pytest

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import FadingSpec, LandmarkSpec, MonitorsSpec, SlidingSpec

HERE = Path(__file__).parent
FORGETTING = {"basic": LandmarkSpec(), "ff999": FadingSpec(0.999), "win1000": SlidingSpec(1000)}
CASES = [("S1", "basic"), ("S1", "ff999"), ("S1", "win1000"), ("S3", "basic"), ("S3", "ff999")]
INPUTS = {"S1": "S1_binary_input", "S3": "S3_table5_input"}
LEAST = 0.05


def table(name):
    with gzip.open(HERE / f"{name}.csv.gz", "rt") as lines:
        return list(csv.DictReader(lines))


@cache
def labels(stream):
    return [(int(row["y_true"]), int(row["y_pred"])) for row in table(INPUTS[stream])]


@cache
def traced(stream):
    """Our trace of a stream under all three mechanisms, as one dictionary per step."""
    monitors = EstimatorSet(MonitorsSpec())  # the default mechanisms are MOA's three, and ADWIN
    outcomes = [Outcome("m", str(t), str(p), i, 0) for i, (t, p) in enumerate(labels(stream))]
    trace = monitors.trace(outcomes)
    return [dict(zip(trace.columns, row, strict=True)) for row in trace.rows]


class Twin:
    """Sums of step values under one mechanism, the plain way."""

    def __init__(self, mechanism):
        self.alpha = 0.999 if mechanism == "ff999" else 1.0
        self.window = deque(maxlen=1000 if mechanism == "win1000" else None)
        self.sums = [0.0] * 10

    def add(self, values):
        if len(self.window) == self.window.maxlen:
            self.sums = [s - v for s, v in zip(self.sums, self.window[0], strict=True)]
        self.window.append(values)
        self.sums = [self.alpha * s + v for s, v in zip(self.sums, values, strict=True)]
        return self.sums


def steps(stream, mechanism):
    """Sums per step: n, hits, truth 0/1, predicted 0/1, MOA's baselines' hits, our repeats and pairs."""
    twin, previous = Twin(mechanism), None
    for t, p in labels(stream):
        values = [1.0, t == p, t == 0, t == 1, p == 0, p == 1, t == (previous or 0), 0.0]
        values += [t == previous, previous is not None]
        values = [float(v) for v in values]
        sums = twin.add(values)
        if float(sums[3] > sums[2]) == t:  # MOA guesses after counting; class 0 wins ties
            sums[7] += 1.0
            twin.window[-1][7] = 1.0
        yield list(sums)
        previous = t


def gain(accuracy, baseline):
    """Java's division: 0/0 is NaN, anything else over 0 is infinite."""
    if baseline == 1.0:
        return math.nan if accuracy == 1.0 else math.copysign(math.inf, accuracy - 1.0)
    return (accuracy - baseline) / (1.0 - baseline)


def same(ours, theirs):
    if math.isnan(theirs) or math.isinf(theirs):
        return math.isnan(ours) == math.isnan(theirs) and (math.isnan(ours) or ours == theirs)
    return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize(("stream", "mechanism"), CASES)
def test_accuracy_and_kappa_are_moas_at_every_step(stream, mechanism):
    label = FORGETTING[mechanism].name
    rows = table(f"{stream}_moa_{mechanism}")
    assert len(rows) == len(traced(stream))
    undefined = 0
    for theirs, ours in zip(rows, traced(stream), strict=True):
        assert same(ours[f"accuracy_ratio:{label}"], float(theirs["acc"])), theirs["step"]
        kappa = ours[f"kappa:{label}"]
        if kappa is None:
            undefined += 1
        else:
            assert same(kappa, float(theirs["kappa"])), theirs["step"]
    assert undefined <= 1  # the first outcome: one class


@pytest.mark.parametrize(("stream", "mechanism"), CASES)
def test_moas_gains_follow_from_moas_conventions_at_every_step(stream, mechanism):
    for theirs, sums in zip(table(f"{stream}_moa_{mechanism}"), steps(stream, mechanism), strict=True):
        n, hits = sums[:2]
        assert same(gain(hits / n, sums[6] / n), float(theirs["kappa_t"])), theirs["step"]
        assert same(gain(hits / n, sums[7] / n), float(theirs["kappa_m"])), theirs["step"]


@pytest.mark.parametrize(("stream", "mechanism"), CASES)
def test_our_gains_follow_from_our_conventions_at_every_step(stream, mechanism):
    label = FORGETTING[mechanism].name
    for step, (ours, sums) in enumerate(zip(traced(stream), steps(stream, mechanism), strict=True)):
        n, hits, truth0, truth1, _, _, _, _, repeats, pairs = sums
        expected = {
            "kappa_majority": gain(hits / n, max(truth0, truth1) / n)
            if min(truth0, truth1) > LEAST
            else None,
            "kappa_persistent": gain(hits / n, repeats / pairs) if pairs - repeats > LEAST else None,
        }
        for name, value in expected.items():
            measured = ours[f"{name}:{label}"]
            assert (measured is None) == (value is None), (name, step)
            assert value is None or same(measured, value), (name, step)


@pytest.mark.parametrize("mechanism", ["basic", "win1000"])
def test_macro_f1_and_mean_recall_are_moas_once_both_classes_are_seen(mechanism):
    label = FORGETTING[mechanism].name
    compared = 0
    for theirs, ours in zip(table(f"S1_moa_{mechanism}"), traced("S1"), strict=True):
        if ours[f"baseline_accuracy_ratio:uninformed:{label}"] == 0.5:
            compared += 1
            assert same(ours[f"macro_f1_ratio:{label}"], float(theirs["f1_macro"])), theirs["step"]
            assert same(ours[f"arithmetic_mean_recall_ratio:{label}"], float(theirs["recall_macro"]))
    assert compared == 11_999
