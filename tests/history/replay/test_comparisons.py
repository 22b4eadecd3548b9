"""Comparisons of a recording: of lines with both sides, of sides that are joined, and their trace."""

from __future__ import annotations

import csv
import gzip
import io
import json
from dataclasses import replace
from itertools import combinations, islice
from pathlib import Path

import pytest
from rich.console import Console

from streamwatch.core.specs import ComparisonSpec, JoinSpec, MonitorsSpec
from streamwatch.history.replay.replay import ReplaySpec, replay
from streamwatch.history.replay.tables import print_result, to_json
from tests.core.estimators.comparisons.plain_comparison import PlainComparison
from tests.tiers import by_tier

GOLDEN = Path(__file__).parents[2] / "golden" / "elec2_three_models.csv.gz"
MODELS = ("nb@5", "ht@5", "levbag@8")
COMPARED = (ComparisonSpec(MODELS[0], ("*",)), ComparisonSpec(MODELS[1], (MODELS[2],)))
MONITORS = replace(MonitorsSpec(), comparisons=COMPARED)
JOIN = JoinSpec(comparisons=COMPARED)
ROWS = by_tier(fast=300, default=2_000, everything=45_312)


def elec2(limit):
    with gzip.open(GOLDEN, "rt") as file:
        yield from islice(csv.DictReader(file), limit)


def lines_with_both(file, limit):
    """A row per model and id."""
    with file.open("w") as out:
        out.write("id,model,prediction,label\n")
        for number, row in enumerate(elec2(limit)):
            for model in MODELS:
                out.write(f"{number},{model},{row[model]},{row['y_true']}\n")


def lines_of_sides(file, limit):
    """Predictions, and a label for all of them one row later."""
    late = None
    with file.open("w") as out:
        for number, row in enumerate([*elec2(limit), None]):
            if row is not None:
                for model in MODELS:
                    line = {"id": str(number), "model": model, "prediction": row[model], "timestamp": number}
                    out.write(json.dumps(line) + "\n")
            if late is not None:
                out.write(json.dumps(late | {"timestamp": number}) + "\n")
            late = None if row is None else {"id": str(number), "label": row["y_true"]}


def played(file, **options):
    return replay(ReplaySpec([file], join=JOIN, monitors=MONITORS, **options))


def compared(result):
    return {
        (family.name, *values): value
        for family in result.families
        if family.name.startswith("comparison_")
        for values, value in family.samples
    }


def test_elec2_is_compared_as_a_direct_computation_does_it_however_it_is_recorded(tmp_path):
    lines_with_both(tmp_path / "outcomes.csv", ROWS)
    lines_of_sides(tmp_path / "events.jsonl", ROWS)
    whole, joined = played(tmp_path / "outcomes.csv"), played(tmp_path / "events.jsonl")
    found = compared(whole)
    timeless = {key for key in found if "timestamp" not in key[0]}
    assert timeless == {key for key in compared(joined) if "timestamp" not in key[0]}
    for key in timeless:
        assert compared(joined)[key] == found[key], key  # bit for bit
    for champion, challenger in combinations(MODELS, 2):
        plain = PlainComparison()
        for row in elec2(ROWS):
            plain.take(row["y_true"], row[champion], row[challenger], 0)
        for forgetting, expected in {
            "landmark": plain.landmark(),
            "fading:0.999": plain.faded(0.999),
            "sliding:1000": plain.sliding(1_000),
        }.items():
            for name, value in expected.items():
                got = found[name, challenger, champion, forgetting]
                assert got == pytest.approx(value, rel=1e-9, abs=1e-9), (name, forgetting)
        assert found["comparison_verdict", challenger, champion] == plain.verdict.verdict


def test_every_row_of_a_trace_of_pairs_is_what_the_definition_gives(tmp_path):
    lines_of_sides(tmp_path / "events.jsonl", 60)
    result = played(tmp_path / "events.jsonl", trace_comparisons=tmp_path / "pairs.csv")
    with (tmp_path / "pairs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert result.trace_rows == len(rows) == 180
    plain = {pair: PlainComparison() for pair in combinations(MODELS, 2)}
    for row in rows:
        one = plain[row["champion"], row["challenger"]]
        one.take(row["y_true"], row["champion_pred"], row["challenger_pred"], 0)
        assert int(row["pair"]) == len(one.pairs)
        for forgetting, expected in (("landmark", one.landmark()), ("fading:0.999", one.faded(0.999))):
            stated = {
                name.removesuffix(f":{forgetting}"): float(value)
                for name, value in row.items()
                if name.endswith(f":{forgetting}") and value
            }
            assert stated == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert float(row["comparison_verdict"]) == one.verdict.verdict
    last = {(row["challenger"], row["champion"]): row for row in rows}
    for (name, *pair), value in compared(result).items():
        if name == "comparison_lead_dispersion":
            assert float(last[tuple(pair)][name]) == value


def test_a_trace_changes_nothing(tmp_path):
    lines_of_sides(tmp_path / "events.jsonl", 50)
    alone = played(tmp_path / "events.jsonl")
    both = played(tmp_path / "events.jsonl", trace=tmp_path / "a.csv", trace_comparisons=tmp_path / "b.csv")
    pairs = played(tmp_path / "events.jsonl", trace_comparisons=tmp_path / "c.csv")
    models = played(tmp_path / "events.jsonl", trace=tmp_path / "d.csv")
    assert compared(alone) == compared(both) == compared(pairs) == compared(models)
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "c.csv").read_bytes()
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "d.csv").read_bytes()


def test_of_lines_with_both_the_first_of_a_model_and_id_is_paired_while_the_id_is_remembered(tmp_path):
    text = "id,model,prediction,label,timestamp\n"
    rows = [
        ("1", MODELS[0], 0), ("1", MODELS[0], 1), ("1", MODELS[1], 2), ("1", MODELS[1], 3),
        ("2", MODELS[0], 4), ("2", MODELS[1], 9_000_000_000),
    ]  # fmt: skip
    file = tmp_path / "outcomes.csv"
    file.write_text(text + "".join(f"{key},{model},a,a,{at + 1}\n" for key, model, at in rows))
    found = compared(played(file))
    assert found["comparison_pairs_total", MODELS[1], MODELS[0]] == 1


def test_document_and_tables_tell_the_comparisons(tmp_path):
    lines_with_both(tmp_path / "outcomes.csv", 300)
    result = played(tmp_path / "outcomes.csv")
    document = json.loads(to_json(result))
    assert {(c["champion"], c["challenger"]) for c in document["comparisons"]} == set(combinations(MODELS, 2))
    first = document["comparisons"][0]
    values = compared(result)
    key = first["challenger"], first["champion"], "fading:0.999"
    assert first["measures"]["fading:0.999"]["q"] == values["comparison_q", *key]
    assert not [name for name in document["stream"] if name.startswith("comparison")]
    shown = io.StringIO()
    print_result(result, Console(file=shown, width=160))
    assert "comparisons on the same ids" in shown.getvalue()
    assert f"{values['comparison_q', *key]:.4f}" in shown.getvalue()
    without = replay(ReplaySpec([tmp_path / "outcomes.csv"]))
    assert json.loads(to_json(without))["comparisons"] == []
