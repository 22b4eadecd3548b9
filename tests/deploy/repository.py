"""Where things stand in the repository, and how its YAML is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def documents(file: Path) -> list[dict[str, Any]]:
    """Every document of a YAML file."""
    return [document for document in yaml.safe_load_all(file.read_text("utf-8")) if document]


def version() -> str:
    """The version of the project."""
    import tomllib  # noqa: PLC0415

    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
