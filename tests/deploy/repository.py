"""Where things stand in the repository, and how its YAML is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

import streamwatch

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def documents(file: Path) -> list[dict[str, Any]]:
    """Every document of a YAML file."""
    return [document for document in yaml.safe_load_all(file.read_text("utf-8")) if document]


def version() -> str:
    """The version of the project."""
    return streamwatch.__version__
