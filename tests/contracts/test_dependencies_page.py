"""The page on dependencies lists what an installation brings, and nothing else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PINNED_ONLY = {"fast-start"}
"""Extras that bring no library of their own."""


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=;,\s]", each, maxsplit=1)[0] for each in requirements}


def listed(table: str) -> set[str]:
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    return {name.strip() for row in rows[1:] for name in row.split(",")}


def test_each_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    own, _, of_extras = (ROOT / "docs" / "dependencies.md").read_text("utf-8").partition("With extras:")
    assert listed(own) == names(project["dependencies"])
    extras = project["optional-dependencies"]
    brought = {name for extra, each in extras.items() if extra not in PINNED_ONLY for name in names(each)}
    assert listed(of_extras) == brought
    rows = [line.split("|")[2].strip() for line in of_extras.splitlines() if line.startswith("| ")]
    assert {row.strip("`") for row in rows[1:]} == extras.keys() - PINNED_ONLY
