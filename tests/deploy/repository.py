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
    read = yaml.load_all(file.read_text("utf-8"), yaml.CSafeLoader)  # a tenth of the pure loader's time
    return [document for document in read if document]


def version() -> str:
    """The version of the project."""
    return streamwatch.__version__
