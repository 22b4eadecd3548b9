"""docs/papers.md and docs/testbed.md: made from what the experiments wrote, with pictures that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.experiments.generate import DOCS, papers_page
from streamwatch.papers.catalogue import KINDS as EXPERIMENTS
from streamwatch.papers.streams.testbed import KINDS as STREAMS


def test_the_page_of_the_papers_is_what_the_experiments_wrote():
    assert (DOCS / "papers.md").read_text(encoding="utf-8") == papers_page()


def test_every_experiment_and_every_stream_has_its_place():
    papers, testbed = ((DOCS / name).read_text(encoding="utf-8") for name in ("papers.md", "testbed.md"))
    for kind in EXPERIMENTS:
        assert f"\n## {kind.title}\n" in papers
        assert f"`python -m streamwatch.papers {kind.name}`" in papers
    for stream in STREAMS:
        assert f"\n## {stream.name}\n" in testbed
        assert stream.drifts in testbed


@pytest.mark.parametrize("page", ["papers.md", "testbed.md"])
def test_every_picture_is_there(page):
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", (DOCS / page).read_text(encoding="utf-8"))
    assert len(pictures) >= 9
    for picture in pictures:
        assert (DOCS / Path(picture)).is_file(), picture
