"""`docs/how-to/change-the-code.md` names only what exists, and so do Python files that other pages name."""

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


def test_python_files_that_pages_name_exist() -> None:
    # Draws of files are a record of what was read then.
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.name != "files-by-chance.md"]
    named = {
        (page.name, name)
        for page in (ROOT / "README.md", *pages)
        for name in re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", page.read_text("utf-8"))
    }
    assert len(named) > 100
    folders = (ROOT / folder for folder in ("streamwatch", "tests", "deploy", "docs"))
    files = [f"/{path.relative_to(ROOT)}" for folder in folders for path in folder.rglob("*.py")]
    found = [(page, name) for page, name in sorted(named) if not any(f.endswith(f"/{name}") for f in files)]
    assert not found, "pages name files that do not exist"
