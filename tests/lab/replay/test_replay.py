"""Replay: the final estimates and every row of the trace against independent computations."""

from __future__ import annotations

import csv
import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy.signal import lfilter

from streamwatch.core.specs import (
    AdwinSpec,
    FadingSpec,
    JoinSpec,
    LandmarkSpec,
    MonitorsSpec,
    SlidingSpec,
)
from streamwatch.lab.recordings.file import RecordingError
from streamwatch.lab.replay.replay import replay
from streamwatch.lab.replay.spec import ReplaySpec
from streamwatch.lab.replay.tables import print_result, to_json

GOLDEN = Path(__file__).parents[2] / "golden"
ELEC2_MODELS = ("nb@5", "ht@5", "levbag@8")
SECOND = 1_000


@pytest.fixture
def played(tmp_path):
    """Replay lines (text) under a name; the result, and where its trace is."""

    def play(content, name="events.jsonl", *, trace=False, **options):
        path = tmp_path / name
        path.write_text(
            content if isinstance(content, str) else "".join(json.dumps(e) + "\n" for e in content)
        )
        target = tmp_path / "trace.csv" if trace else None
        return replay(ReplaySpec([path], trace=target, **options)), target

    return play


def series(result):
    return {(f.name, *labels): value for f in result.families for labels, value in f.samples}


def counter(result, name):
    return next(value for f in result.families if f.name == name for _, value in f.samples)


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def predicted_class(name, model, label, at_s):
    return {"id": name, "model": model, "prediction": label, "timestamp": at_s * SECOND}


def labelled(name, label, at_s):
    return {"id": name, "label": label, "timestamp": at_s * SECOND}


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


def test_rows_with_both_make_an_outcome_each_in_row_order_even_when_ids_repeat(played):
    text = "id,model,prediction,label\n" + "1,m,a,a\n1,m,a,b\n1,n,b,b\n"
    result, trace = played(text, "outcomes.csv", trace=True)
    assert [(r["model"], r["outcome"], r["y_true"], r["y_pred"]) for r in rows_of(trace)] == [
        ("m", "1", "a", "a"),
        ("m", "2", "b", "a"),
        ("n", "1", "b", "b"),
    ]
    assert result.outcomes == 3


def test_predictions_and_labels_on_separate_lines_are_joined(played):
    result, trace = played(
        [
            predicted_class("1", "m", "a", 10),
            predicted_class("1", "n", "b", 11),
            predicted_class("2", "m", "b", 12),
            labelled("2", "b", 20),
            labelled("1", "a", 21),
            predicted_class("3", "m", "a", 22),
        ],
        trace=True,
    )
    assert [(r["model"], r["y_true"], r["y_pred"]) for r in rows_of(trace)] == [
        ("m", "b", "b"),
        ("m", "a", "a"),
        ("n", "a", "b"),
    ]
    assert (result.outcomes, result.pending) == (3, 1)
    assert counter(result, "predictions_accepted_total") == 4


def test_csv_rows_of_predictions_and_labels_are_joined_too(played):
    result, _ = played(
        "timestamp,id,model,prediction,label\n1000,1,m,a,\n2000,1,n,b,\n5000,1,,,a\n", "events.csv"
    )
    assert series(result)["accuracy_ratio", "landmark", "m"] == 1.0
    assert series(result)["accuracy_ratio", "landmark", "n"] == 0.0


def test_time_passes_with_the_lines_so_that_a_label_after_the_horizon_is_late(played):
    lines = [predicted_class("1", "m", "a", 1), predicted_class("2", "m", "a", 1), labelled("1", "a", 60)]
    lines += [predicted_class("3", "m", "a", 62), labelled("2", "a", 63)]
    result, _ = played(lines, join=JoinSpec(horizon_ms=60 * SECOND))
    assert (result.outcomes, result.pending) == (1, 1)
    assert counter(result, "predictions_expired_total") == 1
    assert counter(result, "labels_late_total") == 1


def test_what_expires_is_evaluated_as_the_assumed_class(played):
    lines = [
        predicted_class("1", "m", "no", 1),
        predicted_class("2", "m", "yes", 2),
        predicted_class("3", "m", "no", 101),
    ]
    result, trace = played(lines, trace=True, join=JoinSpec(horizon_ms=60 * SECOND, assume="no"))
    assert [(r["y_true"], r["y_pred"]) for r in rows_of(trace)] == [("no", "no"), ("no", "yes")]
    assert (result.outcomes, result.pending) == (2, 1)


def test_in_prediction_order_everything_held_is_released_at_the_end(played):
    lines = [predicted_class(str(n), "m", "a", 1 + n) for n in range(5)] + [
        labelled(str(n), "a", 20 - n) for n in range(4, -1, -1)
    ]
    lines.sort(key=lambda line: line["timestamp"])
    join = JoinSpec(order="prediction_time", reorder_window_ms=600 * SECOND)
    result, _ = played(lines, join=join)
    assert (result.outcomes, result.pending) == (5, 0)


def test_the_clock_does_not_go_back_with_a_line_that_does(played):
    lines = [
        predicted_class("1", "m", "a", 10 * 86_400),
        labelled("1", "a", 1),
        predicted_class("2", "m", "a", 2),
    ]
    result, _ = played(lines)
    assert (result.outcomes, result.pending) == (1, 1)
    assert series(result)["clock_timestamp_seconds",] == 10 * 86_400
    assert series(result)["watermark_timestamp_seconds", "0", "recording"] == 10 * 86_400


def test_one_line_of_the_year_9999_expires_nothing_and_is_counted(played):
    lines = [predicted_class(str(n), "m", "a", 1_000 + n) for n in range(1_000)]
    lines.insert(500, predicted_class("far", "m", "a", 253_370_764_800))
    lines += [labelled(str(n), "a", 2_100 + n) for n in range(1_000)]
    result, _ = played(lines)
    assert (result.outcomes, result.pending) == (1_000, 1)
    assert counter(result, "predictions_expired_total") == 0
    assert series(result)["timestamps_corrected_total", "future"] == 1


def test_what_is_held_at_the_end_is_released_without_letting_anything_expire(played):
    lines = [predicted_class(str(n), "m", "ab"[n % 2], 1 + n) for n in range(40)]
    lines += [labelled(str(n), "a", 60 + n) for n in range(0, 40, 2)]
    join = {"horizon_ms": 600 * SECOND, "assume": "a"}
    ordered = JoinSpec(order="prediction_time", reorder_window_ms=30 * 86_400 * SECOND, **join)
    assert played(lines, join=JoinSpec(**join))[0].outcomes == 20
    result, _ = played(lines, join=ordered)
    assert (result.outcomes, result.pending) == (20, 20)
    assert counter(result, "outcomes_assumed_total") == 0


def test_outcomes_and_events_in_one_file_are_evaluated_in_its_order(played):
    lines = [
        predicted_class("1", "m", "a", 1),
        predicted_class("2", "m", "b", 2) | {"label": "b"},
        labelled("1", "b", 3),
        predicted_class("3", "m", "c", 4) | {"label": "a"},
    ]
    _, trace = played(lines, trace=True)
    assert [(r["y_true"], r["y_pred"]) for r in rows_of(trace)] == [("b", "b"), ("b", "a"), ("a", "c")]


def elec2(limit=None):
    with gzip.open(GOLDEN / "elec2_three_models.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))[:limit]
    true_class = np.array([r["y_true"] == "UP" for r in rows], float)
    return true_class, {m: np.array([r[m] == "UP" for r in rows], float) for m in ELEC2_MODELS}


def as_csv(true_class, models):
    name = ("DOWN", "UP")
    lines = ["id,model,prediction,label"]
    for i, y in enumerate(true_class.astype(int).tolist()):
        lines += [f"{i},{m},{name[int(p[i])]},{name[y]}" for m, p in models.items()]
    return "\n".join(lines) + "\n"


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
        accuracy, up, said = total(y == p) / n, total(y) / n, total(p) / n
        persistent, majority = repeats / pairs, np.maximum(up, 1 - up)
        chance = up * said + (1 - up) * (1 - said)
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
    spec = MonitorsSpec(
        forgetting=(LandmarkSpec(), FadingSpec(), SlidingSpec(), SlidingSpec(100), AdwinSpec())
    )
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
        width = [int(r["adwin_window_outcomes:adwin:0.002"]) for r in mine]
        assert width[:30] == list(range(1, 31))
        alarms = {(a.detector, a.outcome) for a in result.alarms if a.model == model}
        for detector in ("page_hinkley", "adwin"):
            flags = {n for n, r in enumerate(mine, 1) if r[f"alarm:{detector}"] == "1"}
            assert flags == {outcome for name, outcome in alarms if name == detector}


@pytest.mark.slow
def test_page_hinkley_in_a_trace_is_the_textbook_recursion(played):
    true_class, models = elec2(3_000)
    _, path = played(as_csv(true_class, {"nb@5": models["nb@5"]}), "elec2.csv", trace=True)
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


@pytest.mark.slow
def test_floats_in_a_trace_read_back_as_the_floats_of_the_result(played):
    true_class, models = elec2(1_500)
    result, path = played(as_csv(true_class, {"m": models["ht@5"]}), "elec2.csv", trace=True)
    last, values = rows_of(path)[-1], series(result)
    compared = 0
    for column, field in last.items():
        name, *labels = column.split(":", 1)
        key = (name, *_split_labels(name, labels), "m")
        if key in values:
            assert float(field) == values[key], column  # not approximately
            compared += 1
    assert compared > 50


def _split_labels(name, labels):
    """`persistent:landmark` is two label values, `fading:0.999` one."""
    if name == "baseline_accuracy_ratio":
        return labels[0].split(":", 1)
    return labels


def test_undefined_estimates_are_empty_fields_and_absent_from_json(played):
    result, path = played("id,model,prediction,label\n1,m,a,a\n", "one.csv", trace=True)
    (row,) = rows_of(path)
    assert row["kappa:landmark"] == row["baseline_accuracy_ratio:persistent:landmark"] == ""
    assert row["accuracy_ratio:landmark"] == "1.0"
    metrics = json.loads(to_json(result))["models"]["m"]["metrics"]
    assert "landmark" not in metrics.get("kappa", {})
    assert metrics["accuracy_ratio"]["landmark"] == 1.0


def test_the_json_document_says_everything(played):
    true_class, models = elec2(3_000)
    lines = as_csv(true_class, {"m": models["nb@5"]}) + "7,m,a\n"
    result, _ = played(lines, "elec2.csv")
    document = json.loads(to_json(result))
    assert document["lines"] == 3_001
    assert document["outcomes"] == 3_000
    assert document["invalid"] == {"wrong_number_of_columns": 1}
    assert document["first_invalid"] == [
        {"source": result.source, "line": 3_002, "reason": "wrong_number_of_columns"}
    ]
    assert document["models"]["m"]["metrics"]["outcomes_total"] == 3_000
    assert len(document["alarms"]) == len(result.alarms) > 0
    assert document["alarms"][0].keys() >= {
        "model",
        "detector",
        "outcome",
        "statistic",
        "threshold",
        "before",
        "after",
    }
    assert document["stream"]["predictions_accepted_total"] == 0


def test_the_tables_tell_the_estimates_the_alarms_and_what_was_left_over(played, capsys):
    true_class, models = elec2(3_000)
    lines = as_csv(true_class, {"m": models["nb@5"]}) + "7,m,a\n" * 7 + "8,m,UP,\n"
    result, _ = played(lines, "elec2.csv")
    print_result(result, Console(width=160))
    said = capsys.readouterr().out
    accuracy = f"{(true_class == models['nb@5']).mean():.4f}"
    assert any("landmark" in line and accuracy in line for line in said.splitlines())
    changes = sum(alarm.detector == "verdict" for alarm in result.alarms)
    drifts = len(result.alarms) - changes
    assert drifts > 1
    assert f"{drifts} drift alarms, {changes} verdict change" in said
    assert "page_hinkley" in said
    assert "1 predictions still waited for their label at the end." in said
    assert "7 lines could not be used: wrong_number_of_columns 7." in said
    assert "line 3,002: wrong_number_of_columns" in said
    assert "line 3,007" not in said  # the first five are enough


def test_evidence_of_a_verdict_is_told_by_its_order_of_magnitude(played, capsys):
    # A model that is always right, where the label before is always wrong.
    lines = "".join(f"{i},m,{'ab'[i % 2]},{'ab'[i % 2]}\n" for i in range(3_000))
    result, _ = played(f"id,model,prediction,label\n{lines}", "outcomes.csv")
    assert [alarm.detector for alarm in result.alarms] == ["verdict"]
    assert result.alarms[0].statistic > 1e9
    print_result(result, Console(width=160))
    said = capsys.readouterr().out
    assert "0 drift alarms, 1 verdict change" in said
    assert "verdict changes" not in said
    assert f"{result.alarms[0].statistic:.1e}" in said


def test_nothing_at_all_is_a_result_too(played, capsys):
    result, path = played("", trace=True)
    print_result(result, Console(width=160))
    assert "0 lines, 0 outcomes" in capsys.readouterr().out
    assert path.read_text().startswith("model,outcome,y_true,y_pred,accuracy_ratio:landmark")


def test_a_trace_that_cannot_be_written_is_refused(tmp_path):
    source = tmp_path / "events.jsonl"
    source.write_text("")
    with pytest.raises(RecordingError, match="trace cannot be written"):
        replay(ReplaySpec([source], trace=tmp_path / "absent" / "trace.csv"))


def test_events_shuffled_within_a_second_end_with_the_same_counts(played):
    rng = np.random.default_rng(4)
    events = [predicted_class(str(n), "m", "ab"[rng.integers(2)], n // 5) for n in range(200)]
    events += [labelled(str(n), "ab"[rng.integers(2)], n // 5 + 30) for n in range(0, 200, 2)]
    errors = set()
    for _ in range(3):
        events = [events[i] for i in rng.permutation(len(events))]
        events.sort(key=lambda e: e["timestamp"])
        result, _ = played(events)
        assert (result.outcomes, result.pending) == (100, 100)
        errors.add(series(result)["errors_total", "m"])
    assert len(errors) == 1
