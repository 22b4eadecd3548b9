"""Counts that `inspect` shows add up, and it says why what is alone may be so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamwatch.cli import app
from tests.commands import CliRunner

BEGAN_MS = 1_760_000_000_000


def written(file: Path, rows: list[dict[str, Any]], beside: tuple[str, ...] = ()) -> str:
    file.write_text("\n".join([*map(json.dumps, rows), *beside]) + "\n")
    return str(file)


def prediction(number: int, at: int) -> dict[str, Any]:
    return {
        "id": f"t{number}",
        "model": "m",
        "prediction": "ab"[number % 2],
        "timestamp": BEGAN_MS + at * 1_000,
    }


def label(name: str, at: int) -> dict[str, Any]:
    return {"id": name, "label": "ab"[len(name) % 2], "timestamp": BEGAN_MS + at * 1_000}


@pytest.fixture
def shown(tmp_path: Path) -> str:
    """Of 400 predictions the youngest 100 have no label, 30 labels are of predictions before the sample."""
    predictions = [prediction(i, i) for i in range(400)]
    labels = [label(f"t{i}", i + 60) for i in range(300)]
    labels += [label(f"old{i}", -3_600 + i) for i in range(30)]
    broken = ('{"id": "z", "model": "m"}', "no json")
    files = [
        written(tmp_path / "p.jsonl", [*predictions, predictions[0]], broken),
        written(tmp_path / "l.jsonl", labels),
    ]
    found = CliRunner().invoke(app, ["inspect", "--file", files[0], "--file", files[1]])
    assert found.exit_code == 0, found.output
    return " ".join(found.output.split())


@pytest.mark.slow
def test_counts_add_up_and_what_is_alone_is_explained(shown: str) -> None:
    assert "read of p: 403 records: 400 predictions, 1 of an id that came before, 2 invalid" in shown
    assert "read of l: 330 records: 330 labels" in shown
    assert "of 100 predictions without a label, 100 are younger than every one that has its label" in shown
    assert "of 30 labels without a prediction, 30 are older than the first prediction of the sample" in shown
    assert "1 record of p would be invalid: invalid_json: is not JSON" in shown
    assert "1 record of p would be invalid: missing_prediction: has no predicted class" in shown
