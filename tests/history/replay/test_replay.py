"""Replay of predictions, labels and outcomes in one file: what is joined, and in which order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from streamwatch.core.estimators.names import TraceChunk
from streamwatch.core.specs import JoinSpec
from streamwatch.history.replay.replay import ReplaySpec, replay
from streamwatch.history.replay.trace_csv import TraceCsv, TraceError
from tests.history.replay.events import SECOND, counter, labelled, predicted_class, rows_of, series


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


def test_a_trace_does_not_overwrite_the_recording_or_the_other_trace(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"id":1,"model":"m","prediction":"a","label":"a"}\n')
    before = path.read_bytes()
    (tmp_path / "link.csv").symlink_to(path)
    for trace in (path, tmp_path / "link.csv", tmp_path / "none" / ".." / "events.jsonl"):
        (tmp_path / "none").mkdir(exist_ok=True)
        for traces in ({"trace": trace}, {"trace_comparisons": trace}):
            with pytest.raises(TraceError, match="expected another file than the recording"):
                replay(ReplaySpec([path], **traces))
    assert path.read_bytes() == before
    with pytest.raises(TraceError, match=r"one\.csv: the other trace is written there"):
        replay(ReplaySpec([path], trace=tmp_path / "one.csv", trace_comparisons=str(tmp_path / "one.csv")))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is full is simulated by /dev/full")
@pytest.mark.parametrize("rows", [1, 100_000])
def test_a_trace_on_a_full_disk_is_named(rows):
    with pytest.raises(TraceError, match="the trace cannot be written to /dev/full: No space left"):  # noqa: SIM117
        with TraceCsv("/dev/full") as trace:
            trace.write(TraceChunk(["model", "outcome", "y_true", "y_pred"], [["m", 1, "a", "b"]] * rows, []))
