"""What the error names to install where a package is missing, by what made the environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from streamwatch.edge.extras import command_for


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("pyvenv.cfg", "pip install 'streamwatchd[demo]'"),
        ("pipx_metadata.json", "pipx install --force 'streamwatchd[demo]'"),
        ("uv-receipt.toml", "uv tool install 'streamwatchd[demo]'"),
    ],
)
def test_an_extra_is_asked_of_what_made_the_environment(file: str, shown: str, tmp_path: Path) -> None:
    (tmp_path / file).touch()
    assert command_for("demo", tmp_path) == shown


def test_an_environment_that_uvx_keeps_for_nobody_is_made_anew_with_the_extra(tmp_path: Path) -> None:
    environment = tmp_path / "uv" / "archive-v0" / "k2VnOb"
    assert command_for("lab", environment) == "uvx --from 'streamwatchd[lab]' streamwatch"


def test_it_is_about_the_environment_of_the_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pipx_metadata.json").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert command_for("avro").startswith("pipx ")
