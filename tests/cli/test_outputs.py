"""Standard output that is full, or that lacks characters, ends no command with a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamwatch.cli import app
from tests.commands import CliRunner


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "arguments", [["config", "example"], ["catalogue"], ["--version"], ["replay", "--help"]]
)
def test_a_full_standard_output_is_one_clear_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "streamwatch", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        2,
        "standard output cannot be written: No space left on device\n",
    )


ANOTHER = """
import streamwatch.cli
def app():
    print("shown")
    {raised}
streamwatch.cli.app = app
streamwatch.cli.main()
"""


@pytest.mark.parametrize(
    "raised", ["open('/absent/file')", "import errno; raise OSError(errno.ETIMEDOUT, 'late')"]
)
def test_nothing_is_written_to_find_out_that_another_error_is_none_of_standard_output(raised: str) -> None:
    script = ANOTHER.format(raised=raised)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (1, "shown\n")
    assert "Traceback" in done.stderr


def test_characters_that_the_terminal_lacks_are_escaped() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "streamwatch", "catalogue", "mechanisms"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "S \\u2190 " in done.stdout


@pytest.mark.parametrize("command", [["replay", "--report"], ["report", "--output"]])
def test_a_report_without_a_folder_is_refused_before_anything_is_read(
    command: list[str], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    target = tmp_path / "absent" / "report.html"
    done = CliRunner().invoke(app, [command[0], "nothing.csv", command[1], str(target)])
    assert done.exit_code == 2
    assert f"{target} cannot be written: there is no folder {target.parent}" in done.stderr


@pytest.mark.slow
def test_a_replay_without_any_label_says_where_labels_were_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.csv"
    path.write_text("id,model,prediction,label\n1,m,a,a\n")
    done = CliRunner().invoke(app, ["replay", str(path), "--columns", "label=y"])
    assert done.exit_code == 0
    assert "no prediction has met a label\n" in done.stderr
    assert "looked for in labels: id at value.id, label at value.y" in done.stderr
