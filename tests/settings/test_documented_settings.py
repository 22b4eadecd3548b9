"""Settings that a page shows can be used: every such block of the documentation loads."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from streamwatch.settings import Settings, load
from streamwatch.settings.loading import YamlRefused, parse

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "deploy").rglob("*.md"))]
ELSEWHERE = {"kafka": {"bootstrap_servers": "broker:9092"}, "topics": {"predictions": "p", "labels": "l"}}
"""What a page need not repeat."""
_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^ {4}.*\n)+", re.MULTILINE)
_FILE = re.compile(r"(?<=_file: )[\w./-]+|(?<=_files: \[)[\w./-]+")


def loaded(text: str, folder: Path) -> Settings:
    """Settings from a text, in which every file that it names exists."""
    (folder / "named").write_text("https://hooks.example.com/named\n", encoding="utf-8")
    file = folder / "streamwatch.yaml"
    file.write_text(_FILE.sub(str(folder / "named"), text), encoding="utf-8")
    return load(file, [], {}, otherwise=ELSEWHERE)


def are_settings(text: str) -> bool:
    """Whether a text has sections of the settings at its first level; others are part of one, or not ours."""
    try:
        found = parse(text)
    except YamlRefused:  # a command, or what one prints
        return False
    return isinstance(found, dict) and bool(set(Settings.model_fields) & found.keys())


def blocks() -> list[Any]:
    """Blocks with settings, fenced or indented."""
    return [
        pytest.param(text, id=f"{page.relative_to(ROOT)}:{number}")
        for page in PAGES
        for content in [page.read_text(encoding="utf-8")]
        for number, text in enumerate([*_BLOCK.findall(content), *map(dedent, _INDENTED.findall(content))], 1)
        if are_settings(text)
    ]


def test_pages_have_settings() -> None:
    assert len(blocks()) > 20


@pytest.mark.parametrize("text", blocks())
def test_settings_of_a_page_load(text: str, tmp_path: Path) -> None:
    assert loaded(text, tmp_path).model_fields_set >= parse(text).keys()


def test_blocks_of_the_tutorial_make_one_file_together(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert loaded("\n".join(_BLOCK.findall(page)), tmp_path).alerts.receivers
