"""The pages that are made from the code say what the code says, and the site has no dead link."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from docs.reference.generate import FOLDER, metrics_page, sections, written
from tests.deploy.repository import ROOT

README = ROOT / "README.md"
LOADED = (
    re.compile(r"<(?:script|img|iframe)[^>]*\ssrc=\"?([^\s\">]+)"),
    re.compile(r"<link[^>]*rel=\"?stylesheet[^>]*href=\"?([^\s\">]+)"),
)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("name", sorted(written()))
def test_pages_are_as_the_code_is(name: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == written()[name], "run: make generated"


def test_the_page_of_metrics_has_a_row_for_each() -> None:
    rows = [line for line in metrics_page().splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == [m.name for _, metrics in sections() for m in metrics]
    assert all(row.replace(r"\|", "").count("|") == 5 for row in rows)


def test_the_readme_is_short_and_has_its_two_pictures() -> None:
    text = README.read_text("utf-8")
    assert len(text.encode()) <= 8_000
    assert "docs/pictures/drift.png" in text
    assert "docs/pictures/architecture.svg" in text


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md"])
def test_links_lead_somewhere(name: str) -> None:
    file = ROOT / name
    targets = [target for target in LINK.findall(file.read_text("utf-8")) if not urlsplit(target).scheme]
    missing = [target for target in targets if not (file.parent / target).exists()]
    assert missing == []


@pytest.mark.slow
def test_the_site_is_built_without_a_dead_link_and_asks_no_other_address_for_anything(tmp_path: Path) -> None:
    site = tmp_path / "site"
    done = subprocess.run(
        [Path(sys.executable).with_name("mkdocs"), "build", "--quiet", "--strict", "--site-dir", site],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        text = page.read_text("utf-8")
        addresses = [address for pattern in LOADED for address in pattern.findall(text)]
        assert not [address for address in addresses if urlsplit(address).netloc], page.name
