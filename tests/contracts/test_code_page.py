"""`docs/how-to/change-the-code.md` names only what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "change-the-code.md").read_text("utf-8")
PATHS = sorted(set(re.findall(r"(?<![\w./~])(?:[a-z_]+/)+(?:[a-z_]+\.py)?", PAGE)))


def test_paths_are_found_in_the_page() -> None:
    assert {"core/join/rules.py", "core/estimators/registers/", "tests/core/join/naive_join.py"} < set(PATHS)


@pytest.mark.parametrize("path", PATHS)
def test_what_the_page_names_exists(path: str) -> None:
    base = ROOT if path.startswith(("tests/", "docs/", "streamwatch/")) else ROOT / "streamwatch"
    assert (base / path).exists()
