"""Lines that could not be used are listed with their line, the reason in words, and where was looked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamwatch.cli import app
from tests.commands import CliRunner

GOOD = ['{"id":"1","model":"m","prediction":"a"}', '{"id":"1","label":"a"}']
BAD = [
    '{"ident":"2","model":"m","prediction":"secret"}',
    '{"id":"4","model":"m","pred":"secret"}',
    "no json",
]


@pytest.mark.slow
def test_unusable_lines_are_listed_with_line_reason_and_fields_and_without_contents(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text("\n".join([*GOOD, *BAD]) + "\n")
    shown = CliRunner().invoke(app, ["replay", str(file)])
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.output.split())
    assert (
        "line 3: missing_id: has no id where the mapping looks for it (looked at value.id: value has" in text
    )
    assert (
        "line 4: neither_prediction_nor_label (looked at value.prediction: value has the fields id, model"
        in text
    )
    assert "line 5: invalid_json: is not JSON" in text
    assert "secret" not in text
    document = json.loads(CliRunner().invoke(app, ["replay", str(file), "--json"]).stdout)
    assert [each["line"] for each in document["first_invalid"]] == [3, 4, 5]
    assert document["first_invalid"][0]["why"].startswith("looked at value.id")


@pytest.mark.slow
def test_where_none_can_be_used_the_example_says_where_was_looked(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text("\n".join(BAD[:1] * 3) + "\n")
    shown = CliRunner().invoke(app, ["replay", str(file)])
    assert shown.exit_code == 1
    assert "looked at value.id: value has the fields ident, model, prediction" in " ".join(
        shown.output.split()
    )
