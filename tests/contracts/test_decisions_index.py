"""docs/decisions.md lists every decision of the pages behind it, once and under the page's subject."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_index_lists_every_decision_of_every_page():
    index = (DOCS / "decisions.md").read_text("utf-8")
    listed = re.findall(r"^- \[(.+)\]\((decisions/[a-z-]+\.md)#[^)]+\)$", index, re.MULTILINE)
    pages = sorted((DOCS / "decisions").glob("*.md"))
    assert len(pages) > 10
    written = [
        (title, f"decisions/{page.name}")
        for page in pages
        for title in re.findall(r"^## (.+)$", page.read_text("utf-8"), re.MULTILINE)
    ]
    assert sorted(listed) == sorted(written)
