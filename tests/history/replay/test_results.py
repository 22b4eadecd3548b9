"""What a replay shows: fields of the trace, the JSON document, tables on the terminal."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import pytest
from rich.console import Console

from streamwatch.core.records.events import Alarm
from streamwatch.core.specs import (
    AdwinDriftSpec,
    AdwinSpec,
    DriftWeightedSpec,
    FadingSpec,
    LandmarkSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
)
from streamwatch.history.recordings.file import RecordingError
from streamwatch.history.replay.replay import ReplaySpec, replay
from streamwatch.history.replay.tables import print_result, to_json
from tests.history.replay.elec2 import as_csv, elec2
from tests.history.replay.events import rows_of, series


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
        {"source": result.source, "line": 3_002, "reason": "wrong_number_of_columns", "why": ""}
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
    window = {"delta": 0.002, "dependence": "ignored"}
    monitors = MonitorsSpec(
        (LandmarkSpec(), FadingSpec(), SlidingSpec(), AdwinSpec(**window)),
        (PageHinkleySpec(threshold=50.0, dependence="ignored"), AdwinDriftSpec(**window)),
        (DriftWeightedSpec(**window),),
    )
    result, _ = played(lines, "elec2.csv", monitors=monitors)
    print_result(result, Console(width=160))
    stated = capsys.readouterr().out
    accuracy = f"{(true_class == models['nb@5']).mean():.4f}"
    assert any("landmark" in line and accuracy in line for line in stated.splitlines())
    changes = sum(alarm.detector == "verdict" for alarm in result.alarms)
    drifts = len(result.alarms) - changes
    assert drifts > 1
    assert f"{drifts} drift alarms, {changes} verdict change" in stated
    assert "page_hinkley" in stated
    assert "1 predictions still waited for their label at the end." in stated
    assert "7 lines could not be used: wrong_number_of_columns 7." in stated
    assert "line 3,002: wrong_number_of_columns" in stated
    assert "line 3,007" not in stated  # the first five are enough


def test_evidence_of_a_verdict_is_reported_by_its_order_of_magnitude(played, capsys):
    # A model that is always right, where the label before is always wrong.
    lines = "".join(f"{i},m,{'ab'[i % 2]},{'ab'[i % 2]}\n" for i in range(3_000))
    result, _ = played(f"id,model,prediction,label\n{lines}", "outcomes.csv")
    assert [alarm.detector for alarm in result.alarms] == ["verdict"]
    assert result.alarms[0].statistic > 1e9
    print_result(result, Console(width=160))
    stated = capsys.readouterr().out
    assert "0 drift alarms, 1 verdict change" in stated
    assert "verdict changes" not in stated
    assert f"{result.alarms[0].statistic:.1e}" in stated


def test_nothing_at_all_is_a_result_too(played, capsys):
    result, path = played("", trace=True)
    print_result(result, Console(width=160))
    assert "0 lines, 0 outcomes" in capsys.readouterr().out
    assert path.read_text().startswith("model,outcome,y_true,y_pred,accuracy_ratio:landmark")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "'", "＝", "＋", "－", "＠"])
def test_no_cell_of_a_trace_is_a_formula_and_numbers_stay_numbers(played, start):
    name = f"{start}HYPERLINK(0)"
    labels = ("-1", "+1.5", name) * 3
    events = [{"id": str(n), "model": name, "prediction": name, "label": labels[n]} for n in range(9)]
    result, path = played(events, trace=True)
    assert result.outcomes == 9
    header, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    columns = list(zip(*rows, strict=True))
    shown = dict(zip(header, columns, strict=True))
    assert set(shown["model"]) == set(shown["y_pred"]) == {f"'{name}"}
    assert set(shown["y_true"]) == {"-1", "+1.5", f"'{name}"}
    for cell in (*header, *(cell for row in rows for cell in row)):
        try:
            float(cell or "0")
        except ValueError:
            assert cell[0] not in "=+-@＝＋－＠\t\r\n"


def test_a_trace_that_cannot_be_written_is_refused(tmp_path):
    source = tmp_path / "events.jsonl"
    source.write_text("")
    with pytest.raises(RecordingError, match="trace cannot be written"):
        replay(ReplaySpec([source], trace=tmp_path / "absent" / "trace.csv"))


def test_a_table_of_some_alarms_says_how_many_came_before_them(played, capsys):
    result, _ = played("id,model,prediction,label\n1,m,a,a\n", "one.csv")
    alarms = [Alarm("m", "adwin", n, n, n, n, 1.0, 1.0, 0.1, 0.2, 9.0) for n in range(1, 1_246)]
    print_result(replace(result, alarms=alarms), Console(width=160))
    stated = "1,245 drift alarms, 0 verdict changes; the last 20, and 1,225 more before them"
    assert stated in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "names", [("events.jsonl", None), (None, "events.jsonl"), ("trace.csv", "trace.csv")]
)
def test_a_trace_does_not_overwrite_a_recording_or_the_other_trace(tmp_path, monkeypatch, names):
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "events.jsonl"
    source.write_text('{"id": "1", "model": "m", "prediction": "a", "label": "a"}\n', encoding="utf-8")
    with pytest.raises(RecordingError, match="the trace cannot be written to "):
        replay(ReplaySpec([source], trace=names[0], trace_comparisons=names[1]))
    assert source.read_text(encoding="utf-8").endswith('"a"}\n')
