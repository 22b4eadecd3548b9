"""The release finds each Python that is installed, past commands of its name that do not start."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from deploy.release.build import interpreter

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
DEAD = "#!/bin/sh\necho 'pyenv: command not found' >&2\nexit 127\n"
"""What a command of pyenv's does for a version that is not chosen."""


def command(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def working(file: Path) -> Path:
    return command(file, f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')


@pytest.fixture
def finder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A finder that gives up at a dead command, on a machine with that command only."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "shims"), str(tmp_path / "later")]))
    command(tmp_path / "shims" / f"python{PYTHON}", DEAD)
    return str(command(tmp_path / "uv", "#!/bin/sh\nexit 2\n"))


def test_what_uv_finds_is_taken(finder: str, tmp_path: Path) -> None:
    working(tmp_path / "later" / f"python{PYTHON}")
    command(tmp_path / "uv", '#!/bin/sh\necho "/found/$1/$2/$3"\n')
    assert interpreter(finder, PYTHON) == f"/found/python/find/{PYTHON}"


def test_a_later_command_on_the_path_is_found_past_a_dead_one(finder: str, tmp_path: Path) -> None:
    wanted = working(tmp_path / "later" / f"python{PYTHON}")
    assert interpreter(finder, PYTHON) == str(wanted)


def test_what_pyenv_has_installed_and_not_chosen_is_found(finder: str, tmp_path: Path) -> None:
    command(tmp_path / "pyenv" / "versions" / "1" / "bin" / f"python{PYTHON}", DEAD)
    wanted = working(tmp_path / "pyenv" / "versions" / "2" / "bin" / f"python{PYTHON}")
    assert interpreter(finder, PYTHON) == str(wanted)


def test_a_command_of_that_name_that_is_another_python_is_passed_over(finder: str, tmp_path: Path) -> None:
    working(tmp_path / "later" / "python3.99")
    assert interpreter(finder, "3.99") is None


def test_none_that_starts_is_none(finder: str, tmp_path: Path) -> None:
    command(tmp_path / "later" / f"python{PYTHON}", "not a program of this machine")
    assert interpreter(finder, PYTHON) is None


def test_the_finder_of_this_machine_misses_no_python_that_runs_this_test() -> None:
    uv = str(Path(__file__).parents[2] / ".cache" / "tools" / "bin" / "uv")
    assert interpreter(uv, PYTHON) is not None
