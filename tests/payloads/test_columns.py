"""A CSV file with a column for each model, replayed with options alone and with settings."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from streamwatch.cli import app
from tests.commands import CliRunner
from tests.inspection.story import story

SETTINGS = """
topics:
  predictions: {name: rows, mapping: {id: value.id, model: {key_of: value.pred_*}, timestamp: null}}
  labels: {name: truths, mapping: {id: value.id, model: null, label: value.y, timestamp: null}}
"""


def written(folder: Path) -> tuple[Path, dict[str, float]]:
    """A file with the classes of two models beside the true one; the accuracy of each, counted here."""
    items = story(940)
    second = {item.number: item.true if item.number % 3 else "fraud" for item in items}
    file = folder / "models.csv"
    with file.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["id", "y", "pred_tree", "pred_linear", "amount"])
        rows.writerows([i.number, i.true, i.predicted, second[i.number], i.amount] for i in items)
    right = {
        "tree": sum(item.predicted == item.true for item in items),
        "linear": sum(second[item.number] == item.true for item in items),
    }
    return file, {model: count / len(items) for model, count in right.items()}


@pytest.mark.parametrize("by_settings", [False, True])
def test_each_column_is_a_model_whose_accuracy_is_counted(by_settings: bool, tmp_path: Path) -> None:  # noqa: FBT001
    file, expected = written(tmp_path)
    asked = ["replay", str(file), "--json"]
    if by_settings:
        (tmp_path / "s.yaml").write_text(SETTINGS)
        asked += ["--config", str(tmp_path / "s.yaml"), "--set", "kafka.bootstrap_servers=none:1"]
    else:
        asked += ["--columns", "id=id,label=y,prediction=pred_*"]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 0, found.output
    result = json.loads(found.stdout)
    assert result["invalid"] == {}
    accuracies = {
        name: model["metrics"]["accuracy_ratio"]["landmark"] for name, model in result["models"].items()
    }
    assert accuracies == pytest.approx(expected, abs=1e-12)
