"""`streamwatch tune`: what it refuses, and in which words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from streamwatch.cli import app
from tests.commands import CliRunner
from tests.core.join.join_stream import label, predict
from tests.edge.stores.rocksdb.joins import Life


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
    ("options", "shown"),
    [
        (["--detectors", "page_hinkly"], "--detectors: expected some of page_hinkley, adwin, ddm"),
        (["--since", "yesterday"], "--since: expected a time such as 2026-03-01"),
        (["--every", "a month"], "--every: "),
        (["--traffic", "0"], "--traffic: expected a number above 0, got 0.0"),
        (["-o", "nowhere/a.yaml"], "--output: nowhere/a.yaml cannot be written: there is no folder nowhere"),
        (["-o", f"{'x' * 300}/a.yaml"], "cannot be written: File name too long"),
    ],
)
def test_an_option_that_cannot_be_read_is_named(recording: str, options: list[str], shown: str) -> None:
    result = CliRunner().invoke(app, ["tune", recording, *options])
    assert result.exit_code == 2
    assert shown in result.output


@pytest.mark.parametrize("output", ["rows.csv", "link.yaml", "streamwatch.yaml"])
def test_an_output_does_not_overwrite_what_is_read(recording: str, output: str) -> None:
    Path("link.yaml").symlink_to(recording)
    Path("streamwatch.yaml").write_text("monitors: {}\n")
    before = Path(output).read_bytes()
    result = CliRunner().invoke(app, ["tune", recording, "-c", "streamwatch.yaml", "-o", output])
    assert result.exit_code == 2
    assert (
        f"--output: {output} cannot be written: expected another file than those that are read"
        in result.output
    )
    assert Path(output).read_bytes() == before


@pytest.mark.slow
def test_a_history_that_is_too_short_is_refused_and_nothing_is_written(recording: str) -> None:
    result = CliRunner().invoke(app, ["tune", recording, "-o", "found.yaml"])
    assert result.exit_code == 1
    assert "no promise: the history has 900 outcomes; at least 1,000 are needed" in result.output
    assert not Path("found.yaml").exists()


@pytest.mark.slow
def test_what_of_a_recording_could_not_be_used_is_said(recording: str) -> None:
    with Path(recording).open("a") as file:
        file.write("900,m,a\n901,m,a,,\n")
    result = CliRunner().invoke(app, ["tune", recording])
    assert "902 lines, 900 outcomes in " in result.stderr
    assert "1 predictions still waited for their label at the end." in result.stderr
    assert "1 lines could not be used: wrong_number_of_columns 1." in result.stderr


@pytest.mark.slow
def test_a_part_of_the_recording_is_chosen_by_time(recording: str) -> None:
    chosen = ["--since", "2026-01-01T01:00", "--until", "2026-01-01T02:00:00Z"]
    result = CliRunner().invoke(app, ["tune", recording, *chosen])
    assert "m: 60 outcomes" in result.output


@pytest.mark.parametrize("sources", [[], ["rows.csv", "--url", "http://a"], ["--url", "u", "--state", "d"]])
def test_exactly_one_source_is_asked_for(recording: str, sources: list[str]) -> None:
    del recording
    result = CliRunner().invoke(app, ["tune", *sources])
    assert result.exit_code == 2
    assert "expected one of FILE…, --state DIR, --url URL" in result.output


def test_a_directory_that_is_no_state_and_a_url_that_is_none_are_refused(recording: str) -> None:
    del recording
    assert "nowhere" in CliRunner().invoke(app, ["tune", "--state", "nowhere"]).output
    reported = CliRunner().invoke(app, ["tune", "--url", "ftp://a"])
    assert reported.exit_code == 2
    assert "expected a URL such as http://127.0.0.1:9877" in reported.output


def test_options_without_an_effect_are_refused(recording: str) -> None:
    without = CliRunner().invoke(app, ["tune", recording, "--token-file", "token"])
    assert "--token-file: expected with the URL of a daemon only, got token" in without.output
    of_files = CliRunner().invoke(app, ["tune", "--url", "http://127.0.0.1:1", "--format", "csv"])
    assert "--format: expected with files only" in of_files.output


@pytest.mark.slow
def test_a_state_whose_past_is_too_short_is_refused_and_nothing_is_written(recording: str) -> None:
    del recording
    life = Life(Path("state"))
    for n in range(40):
        life.feed(
            predict(f"a{n}", "x" if n % 4 else "y", n * 1_000, "m"), label(f"a{n}", "x", n * 1_000, "m")
        )
    life.commit()
    life.store.close()
    result = CliRunner().invoke(app, ["tune", "--state", "state", "-o", "found.yaml"])
    assert result.exit_code == 1
    assert "m: 40 outcomes, error 0.2500" in result.output
    assert "no promise: its past is 1 stretches of time with 10 errors, too few to see" in result.output
    assert not Path("found.yaml").exists()
