"""`streamwatch tune`: what it refuses, and in which words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from streamwatch.cli import app


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Nine hundred outcomes, one a minute, a tenth of them wrong."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    wrong = np.random.default_rng(1).random(900) < 0.1
    rows = [f"{i},m,{'b' if w else 'a'},a,{1_767_225_600_000 + 60_000 * i}" for i, w in enumerate(wrong)]
    (tmp_path / "rows.csv").write_text("\n".join(["id,model,prediction,label,timestamp", *rows]) + "\n")
    return "rows.csv"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--detectors", "page_hinkly"], "--detectors: expected some of page_hinkley, adwin, ddm"),
        (["--since", "yesterday"], "--since: expected a time such as 2026-03-01"),
        (["--every", "a month"], "--every: "),
        (["--traffic", "0"], "--traffic: expected a number above 0, got 0.0"),
    ],
)
def test_an_option_that_cannot_be_read_is_named(recording: str, options: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["tune", recording, *options])
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.slow
def test_a_history_that_is_too_short_is_refused_and_nothing_is_written(recording: str) -> None:
    result = CliRunner().invoke(app, ["tune", recording, "-o", "found.yaml"])
    assert result.exit_code == 1
    assert "no promise: the history has 900 outcomes; at least 1,000 are needed" in result.output
    assert not Path("found.yaml").exists()


@pytest.mark.slow
def test_a_part_of_the_recording_is_chosen_by_time(recording: str) -> None:
    chosen = ["--since", "2026-01-01T01:00", "--until", "2026-01-01T02:00:00Z"]
    result = CliRunner().invoke(app, ["tune", recording, *chosen])
    assert "m: 60 outcomes" in result.output
