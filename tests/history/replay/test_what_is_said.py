"""What a replay says beside its numbers: why there is no verdict, odd times, tables on narrow terminals."""

from __future__ import annotations

import io
import json
import os
import random

import pytest
from rich.console import Console

from streamwatch.history.replay.replay import ReplaySpec, replay
from streamwatch.history.replay.tables import leftovers, print_result, to_json, unusable

HEADER = "id,model,prediction,label,timestamp\n"
START_MS = 1_772_442_000_000


def shown(result, width=200):
    console = Console(file=io.StringIO(), width=width)
    print_result(result, console)
    return console.file.getvalue()


def rows(count, written=str, start=START_MS, step=1_000, model="m"):
    chance = random.Random(1)
    return [
        f"{k},{model},{chance.randrange(2)},{written(chance.randrange(2))},{start + step * k}\n"
        for k in range(count)
    ]


def as_events(lines):
    """Return predictions and labels of rows, each in a line of its own."""
    for line in lines:
        id_, model, predicted, true, at = line.strip().split(",")
        yield {"id": id_, "model": model, "prediction": predicted, "timestamp": int(at)}
        yield {"id": id_, "label": true, "timestamp": int(at) + 1}


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True])
def test_disjoint_classes_have_no_verdict_and_the_answer_says_so(played, apart):
    lines = rows(3_000, lambda true: f"{true}.0")
    result, _ = played(list(as_events(lines))) if apart else played(HEADER + "".join(lines), "outcomes.csv")
    document = json.loads(to_json(result))
    assert "verdict" not in document["models"]["m"]["metrics"]
    assert [alarm for alarm in document["alarms"] if alarm["detector"] == "verdict"] == []
    assert "and true classes (0.0, 1.0) have nothing in common (lately" in shown(result)
    assert "m has no verdict, because predicted classes (" in shown(result)
    assert "worse than no change" not in shown(result)


def test_lines_that_go_back_in_time_are_counted(played):
    lines = rows(300)
    sorted_, _ = played(HEADER + "".join(lines), "sorted.csv")
    assert sorted_.back_in_time == 0
    back, _ = played(HEADER + "".join(lines[150:] + lines[:150]), "back.csv")
    assert back.back_in_time == 150
    text = "150 lines have an earlier time than a line before them: a file is evaluated in the order"
    assert any(text in line for line in leftovers(back))
    split, _ = played([*as_events(lines[150:]), *as_events(lines[:150])], "back.jsonl")
    assert split.back_in_time == 300


def test_events_without_an_outcome_are_accounted_for(played):
    """Every line of a replay is an outcome, a waiting prediction or unusable, or is named beside them."""
    day_ms = 86_400_000
    given = [{"id": k, "model": "m", "prediction": "a", "timestamp": START_MS + k} for k in range(5)]
    given += [given[0], {**given[1], "prediction": "b"}]
    labels = [{"id": k, "label": "a", "timestamp": START_MS + 100} for k in (0, 1, 0, 7)]
    labels.append({"id": 1, "label": "b", "timestamp": START_MS + 101})
    early, _ = played([*given, *labels])
    assert "3 predictions still waited for their label at the end." in leftovers(early)
    assert "Predictions: 1 repeated, 1 repeated with another class." in leftovers(early)
    assert "Labels: 1 without a prediction, 1 repeated, 1 that contradict an earlier one." in leftovers(early)
    late = {"id": 2, "label": "a", "timestamp": START_MS + 100 * day_ms}
    gone, _ = played([*given, *labels, late])
    assert any("3 without a label within join.horizon" in line for line in leftovers(gone))
    assert "Models: 1 not shown, as they made no prediction for twice join.horizon." in leftovers(gone)
    plain, _ = played([{"id": 1, "model": "m", "prediction": "a"}, {"id": 1, "label": "a"}])
    assert len(leftovers(plain)) == 1


@pytest.mark.slow
def test_a_verdict_on_a_steady_model_is_not_taken_back_when_cohorts_are_judged(played):
    """Rows with a prediction and its label do not say which label was known before."""
    chance, lines, true = random.Random(1), [], 0
    for k in range(6_000):
        true = true if chance.random() < 0.7 else 1 - true
        predicted = true if chance.random() < 0.9 else 1 - true
        lines.append(f"{k},m,{predicted},{true},{START_MS + 60_000 * k}\n")
    result, _ = played(HEADER + "".join(lines), "steady.csv")
    assert [(alarm.detector, alarm.judgement.verdict) for alarm in result.alarms] == [("verdict", 1)]
    assert "neither better nor worse" not in shown(result)


def test_times_of_january_1970_are_pointed_out(played):
    seconds, _ = played(HEADER + "".join(rows(50, start=START_MS // 1_000, step=1)), "seconds.csv")
    [line] = [line for line in leftovers(seconds) if "--timestamp-unit" in line]
    assert line.startswith("The last time is 1970-01-21 12:20:42 UTC")
    for lines in (HEADER + "".join(rows(50)), "id,model,prediction,label\n" + "1,m,a,a\n" * 50):
        fine, _ = played(lines, "fine.csv")
        assert not any("--timestamp-unit" in line for line in leftovers(fine))


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_digit_is_lost_on_a_narrow_terminal(played, width):
    result, _ = played(HEADER + "".join(rows(300)), "outcomes.csv")
    text = shown(result, width)
    assert "…" not in text
    accuracy = json.loads(to_json(result))["models"]["m"]["metrics"]["accuracy_ratio"]["landmark"]
    assert f"{accuracy:.4f}" in text
    assert ("left out, as the terminal is narrow" in text) == (width < 110)


@pytest.mark.parametrize(
    ("lines", "command"),
    [('[{"id":1,"label":"a"}]\n', "jq -c '.[]'"), ('{\n"id":1,\n"label":"a"}\n', "jq -c .")],
)
def test_json_that_is_not_written_line_by_line_is_explained(played, lines, command):
    result, _ = played(lines, "events.json")
    assert f"expected a JSON object in each line, as {command} writes them" in (unusable(result) or "")


def test_names_are_shown_as_they_are(tmp_path):
    path = tmp_path / "x[bold]y.csv"
    path.write_text(HEADER + "".join(rows(3, model="m[bold]")))
    text = shown(replay(ReplaySpec([path])))
    assert "x[bold]y.csv: estimates at the end" in text
    assert text.count("m[bold]") == 2
    other = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.csv")
    path.rename(other)
    assert json.loads(to_json(replay(ReplaySpec([other]))))["source"].endswith("caf\\xe9.csv")
