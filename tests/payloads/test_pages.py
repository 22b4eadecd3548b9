"""Every example of the pages on payloads comes out as the page says."""

from __future__ import annotations

import pytest

from streamwatch.edge.decoders.envelopes import KINDS
from tests.payloads.pages import PAGES, Example, decoded, examples, shown

EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_an_example_comes_out_as_its_page_says(example: Example) -> None:
    assert shown(decoded(example)) == list(example.events)


def test_every_envelope_has_an_example_and_every_page_is_listed() -> None:
    used = {
        topic.envelope
        for example in EXAMPLES
        for topic in (*example.topics().topics.predictions, *example.topics().topics.labels)
    }
    assert used - {None} == set(KINDS)
    index = (PAGES / "README.md").read_text()
    assert all(f"]({page.name})" in index for page in PAGES.glob("*.md") if page.name != "README.md")
