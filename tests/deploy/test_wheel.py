"""The wheel that the package index, pipx and uvx are given, built and run."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.deploy.repository import ROOT, version

pytestmark = pytest.mark.slow

UV = ROOT / ".cache" / "tools" / "bin" / "uv"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [UV, "build", "--quiet", "--offline", "--wheel", "--python", sys.executable, "-o", folder, ROOT]
    subprocess.run(command, check=True)
    (built,) = folder.glob("*.whl")
    return built


def installed(wheel: Path, folder: Path, *command: str) -> str:
    """Output of a command with the wheel in front of everything else that is installed."""
    if not folder.exists():
        subprocess.run(
            [UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--target", folder, wheel], check=True
        )
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, "-P", *command],
        cwd=folder.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_it_bears_a_name_that_is_free_and_brings_the_command_and_all_extras(wheel: Path) -> None:
    assert wheel.name == f"streamwatchd-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as files:
        folder = f"streamwatchd-{version()}.dist-info"
        metadata = email.message_from_bytes(files.read(f"{folder}/METADATA"))
        scripts = files.read(f"{folder}/entry_points.txt").decode()
    assert "streamwatch = streamwatch.cli:main" in scripts
    assert {"demo", "compression"} <= set(metadata.get_all("Provides-Extra", []))
    assert metadata["Requires-Python"] == ">=3.11"


def test_it_holds_every_file_of_the_package_but_the_papers_experiments_and_nothing_else(wheel: Path) -> None:
    files_of_git = subprocess.check_output(["git", "ls-files", "streamwatch"], cwd=ROOT, text=True).split()
    tracked = [name for name in files_of_git if not name.startswith("streamwatch/papers/")]
    with zipfile.ZipFile(wheel) as files:
        held = {name for name in files.namelist() if ".dist-info/" not in name}
    assert set(tracked) <= held
    assert not {name for name in held if name.startswith("streamwatch/papers/")}
    assert {name.split("/")[0] for name in held} == {"streamwatch"}


def test_what_it_installs_runs_and_finds_its_page(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "installed"
    assert installed(wheel, folder, "-m", "streamwatch", "--version").startswith(f"streamwatch {version()} ")
    where = installed(wheel, folder, "-c", "import streamwatch; print(streamwatch.__file__)")
    assert Path(where.strip()) == folder / "streamwatch" / "__init__.py"
    example = installed(wheel, folder, "-m", "streamwatch", "config", "example")
    assert "bootstrap_servers" in example


def test_the_page_on_installing_names_the_wheel_and_all_extras(wheel: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "install.md").read_text("utf-8")
    assert set(re.findall(r"streamwatchd-[\w.-]+\.whl", page)) == {wheel.name}
    with zipfile.ZipFile(wheel) as files:
        metadata = files.read(f"streamwatchd-{version()}.dist-info/METADATA").decode()
    extras = set(email.message_from_string(metadata).get_all("Provides-Extra", []))
    rows = "".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`([\w-]+)`", rows)) == extras


def test_every_hint_to_install_something_names_this_distribution() -> None:
    """The package index knows another project by the name of the command."""
    found = subprocess.run(
        [
            "git",
            "grep",
            "-nE",
            r"(pip|pipx|uvx|uv tool) (install |run |--from )?['\"]?streamwatch(\[|['\"]|\s|$)",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""
