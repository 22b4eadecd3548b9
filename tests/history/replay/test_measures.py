"""The final estimates and every row of the trace against independent computations."""

from __future__ import annotations

import csv
import gzip
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

from streamwatch.core.specs import (
    AdwinDriftSpec,
    FadingSpec,
    LandmarkSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
)
from tests.history.replay.elec2 import GOLDEN, as_csv, elec2
from tests.history.replay.events import rows_of, series
from tests.layouts import EVERYTHING


def test_ten_outcomes_give_the_measures_worked_out_by_hand(played):
    # truth:      a a a b b a a a b a      hits: 1 1 0 1 0 1 1 1 1 0 = 7
    # predicted:  a a b b a a a a b b      repeats: a-a a-a ab b-b ba a-a a-a ab ba → 5 of 9
    pairs = zip("aaabbaaaba", "aabbaaaabb", strict=True)
    text = "id,model,prediction,label\n" + "".join(f"{i},m,{p},{t}\n" for i, (t, p) in enumerate(pairs))
    result, _ = played(text, "outcomes.csv")
    values = series(result)
    chance = (7 * 6 + 3 * 4) / 100
    kappa, kappa_persistent = (0.7 - chance) / (1 - chance), (0.7 - 5 / 9) / (1 - 5 / 9)
    expected = {
        ("outcomes_total", "m"): 10,
        ("errors_total", "m"): 3,
        ("accuracy_ratio", "landmark", "m"): 0.7,
        ("baseline_accuracy_ratio", "majority", "landmark", "m"): 0.7,
        ("baseline_accuracy_ratio", "persistent", "landmark", "m"): 5 / 9,
        ("kappa", "landmark", "m"): kappa,
        ("kappa_majority", "landmark", "m"): 0.0,
        ("kappa_persistent", "landmark", "m"): kappa_persistent,
        ("kappa_plus", "landmark", "m"): math.sqrt(kappa * kappa_persistent),
        ("mcc", "landmark", "m"): (5 * 2 - 1 * 2) / math.sqrt(6 * 7 * 3 * 4),
    }
    for key, value in expected.items():
        assert values[key] == pytest.approx(value, abs=1e-12), key
    assert (result.outcomes, result.pending, result.bad.total()) == (10, 0, 0)


def remembered(values, forgetting):
    """Sum of what is remembered of a sequence, after each of its elements."""
    kind, _, parameter = forgetting.partition(":")
    if kind == "fading":
        return lfilter([1.0], [1.0, -float(parameter)], values)
    total = np.cumsum(values)
    if kind == "sliding":
        size = int(parameter)
        total[size:] -= np.cumsum(values)[:-size].copy()
    return total


def two_class_measures(y, p, forgetting):
    """Accuracy, baselines and the kappas at every prefix, from the formulas for 0/1 labels."""

    def total(values):
        return remembered(np.asarray(values, float), forgetting)

    n = total(np.ones_like(y))
    pairs, repeats = total(np.r_[0.0, np.ones(len(y) - 1)]), total(np.r_[0.0, y[1:] == y[:-1]])
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy, up, shown = total(y == p) / n, total(y) / n, total(p) / n
        persistent, majority = repeats / pairs, np.maximum(up, 1 - up)
        chance = up * shown + (1 - up) * (1 - shown)
        gain = {
            "kappa": (accuracy - chance) / (1 - chance),
            "kappa_majority": (accuracy - majority) / (1 - majority),
            "kappa_persistent": (accuracy - persistent) / (1 - persistent),
        }
        for name, missed in (("kappa", n * (1 - chance)), ("kappa_majority", n * (1 - majority))):
            gain[name][missed < 0.05] = np.nan
        gain["kappa_persistent"][~(pairs - repeats >= 0.05)] = np.nan
        plus = np.sqrt(np.maximum(gain["kappa"], 0) * np.maximum(gain["kappa_persistent"], 0))
    return {
        "accuracy_ratio": accuracy,
        "baseline_accuracy_ratio:persistent": persistent,
        "baseline_accuracy_ratio:majority": majority,
        **gain,
        "kappa_plus": plus,
    }


@pytest.mark.slow
def test_the_whole_of_elec2_ends_at_the_numbers_of_a_direct_computation(played):
    true_class, models = elec2()
    result, _ = played(as_csv(true_class, models), "elec2.csv")
    values = series(result)
    assert result.outcomes == 3 * 45_312
    for model, predictions in models.items():
        for forgetting in ("landmark", "fading:0.999", "sliding:1000"):
            for name, expected in two_class_measures(true_class, predictions, forgetting).items():
                family, *labels = name.split(":")
                tolerance = 1e-7 if name == "kappa_plus" else 1e-9
                assert values[(family, *labels, forgetting, model)] == pytest.approx(
                    expected[-1], abs=tolerance
                ), name
    assert values["baseline_accuracy_ratio", "majority", "landmark", "nb@5"] == pytest.approx(
        0.575455, abs=5e-7
    )
    assert values["baseline_accuracy_ratio", "persistent", "landmark", "nb@5"] == 38_664 / 45_311


@pytest.mark.slow
def test_every_row_of_a_trace_is_what_a_direct_computation_gives(played):
    true_class, models = elec2(3_000)
    several = (LandmarkSpec(), FadingSpec(), FadingSpec(0.6), SlidingSpec(), SlidingSpec(100))
    spec = replace(EVERYTHING, forgetting=(*several, *EVERYTHING.forgetting[5:]))
    result, path = played(as_csv(true_class, models), "elec2.csv", trace=True, monitors=spec)
    rows = rows_of(path)
    assert result.trace_rows == len(rows) == 9_000
    for index, (model, predictions) in enumerate(models.items()):
        mine = rows[index::3]
        assert {r["model"] for r in mine} == {model}
        assert [r["outcome"] for r in mine] == [str(n) for n in range(1, 3_001)]
        for forgetting in ("landmark", "fading:0.999", "sliding:1000", "sliding:100"):
            for name, expected in two_class_measures(true_class, predictions, forgetting).items():
                column = f"{name}:{forgetting}"
                found = np.array([float(r[column] or "nan") for r in mine])
                tolerance = 1e-7 if name == "kappa_plus" else 1e-9
                np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance, err_msg=column)
        width = [int(r["adwin_window_outcomes:adwin:0.05"]) for r in mine]
        assert width[:30] == list(range(1, 31))
        alarms = {(a.detector, a.outcome) for a in result.alarms if a.model == model}
        for detector in ("page_hinkley", "adwin"):
            flags = {n for n, r in enumerate(mine, 1) if r[f"alarm:{detector}"] == "1"}
            assert flags == {outcome for name, outcome in alarms if name == detector}


PUBLISHED = MonitorsSpec(detectors=(PageHinkleySpec(threshold=50.0, dependence="ignored"), AdwinDriftSpec()))


@pytest.mark.slow
def test_page_hinkley_in_a_trace_is_the_textbook_recursion(played):
    true_class, models = elec2(3_000)
    _, path = played(
        as_csv(true_class, {"nb@5": models["nb@5"]}), "elec2.csv", trace=True, monitors=PUBLISHED
    )
    statistic, total, count, reset = 0.0, 0.0, 0, False
    for row in rows_of(path):
        if reset:
            statistic, total, count = 0.0, 0.0, 0
        loss = float(row["y_true"] != row["y_pred"])
        total, count = total + loss, count + 1
        statistic = max(0.0, 0.9999 * statistic + loss - total / count - 0.005)
        reset = statistic > 50.0 and count >= 30
        assert row["alarm:page_hinkley"] == str(int(reset))
        assert float(row["detector_statistic:page_hinkley"]) == pytest.approx(statistic, abs=1e-9)


@pytest.mark.slow
def test_the_golden_stream_of_moa_is_matched_at_every_step(played):
    with gzip.open(GOLDEN / "S1_binary_input.csv.gz", "rt") as file:
        text = "id,model,prediction,label\n" + "".join(
            f"{r['step']},m,{r['y_pred']},{r['y_true']}\n" for r in csv.DictReader(file)
        )
    _, path = played(text, "s1.csv", trace=True)
    rows = rows_of(path)
    for name, forgetting in (("basic", "landmark"), ("ff999", "fading:0.999"), ("win1000", "sliding:1000")):
        with gzip.open(GOLDEN / f"S1_moa_{name}.csv.gz", "rt") as file:
            theirs = list(csv.DictReader(file))
        assert len(theirs) == len(rows)
        for measure, column in (("acc", "accuracy_ratio"), ("kappa", "kappa")):
            expected = np.array([float(r[measure]) for r in theirs])
            found = np.array([float(r[f"{column}:{forgetting}"] or "nan") for r in rows])
            both = ~np.isnan(found)  # where the chance baseline misses next to nothing we say nothing
            assert both.sum() > len(rows) - 20
            np.testing.assert_allclose(
                found[both], expected[both], rtol=0, atol=1e-9, err_msg=f"{name} {measure}"
            )
