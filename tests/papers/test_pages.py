"""docs/papers.md, docs/testbed.md and the experiments' pages: each complete, with pictures that exist."""

from __future__ import annotations

import re

import pytest

from docs.experiments.generate import DOCS, EVIDENCE, papers_page
from streamwatch.papers.catalogue import KINDS as EXPERIMENTS
from streamwatch.papers.streams.testbed import KINDS as STREAMS


def test_the_index_of_the_papers_lists_the_experiments():
    assert (DOCS / "papers.md").read_text(encoding="utf-8") == papers_page()


def test_every_experiment_has_a_page_and_every_page_an_experiment():
    assert {page.stem for page in EVIDENCE.iterdir()} == {kind.name for kind in EXPERIMENTS}


@pytest.mark.parametrize("kind", EXPERIMENTS, ids=lambda kind: kind.name)
def test_a_page_names_its_command_and_shows_its_pictures(kind):
    page = (EVIDENCE / f"{kind.name}.md").read_text(encoding="utf-8")
    assert f"\n# {kind.title}\n\n{kind.source}. `python -m streamwatch.papers {kind.name}`, seed " in page
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", page)
    assert pictures
    for picture in pictures:
        assert (EVIDENCE / picture).is_file(), picture


def test_every_stream_of_the_testbed_has_a_card_and_a_picture():
    testbed = (DOCS / "testbed.md").read_text(encoding="utf-8")
    for stream in STREAMS:
        assert f"\n## {stream.name}\n" in testbed
        assert stream.drifts in testbed
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", testbed)
    assert len(pictures) >= len(STREAMS)
    for picture in pictures:
        assert (DOCS / picture).is_file(), picture
