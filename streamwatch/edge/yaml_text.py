"""Writes YAML for settings files that people read and edit."""

from __future__ import annotations

import textwrap
from typing import Any, Final

import yaml

WIDTH: Final = 100
"""Columns of a line of comment at most."""


def block(value: Any) -> str:
    """Write a value on lines of its own, keys in their order."""
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


def inline(value: Any) -> str:
    """Write a value on one line, for use after its key."""
    dumped = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1_000, allow_unicode=True)
    return dumped.removesuffix("\n").removesuffix("...").rstrip()


def comment(text: str, indent: str = "") -> list[str]:
    """Wrap a text into lines of YAML comment, each after `indent`; no lines for an empty text."""
    return [f"{indent}# {line}" for line in textwrap.wrap(" ".join(text.split()), WIDTH - len(indent))]
