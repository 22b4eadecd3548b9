"""Everything in the catalogue has a formula, a source and an example that runs and is right by hand."""

from __future__ import annotations

import doctest
import math
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from docs.reference.examples import EXAMPLES
from streamwatch.cli.catalogue import document

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "catalogue.md"
KNOWN = {"sqrt": math.sqrt, "log": math.log, "min": min}
BY_HAND = re.compile(r"round\(.*, (\d)\)\s+# = (.*)\n(\S+)\n|# = (.*)\n(\S+)\n")


def test_every_line_has_a_formula_a_source_and_an_example() -> None:
    for kind, lines in document().items():
        assert [line["name"] for line in lines] == sorted(
            EXAMPLES[kind], key=[line["name"] for line in lines].index
        )
        assert all(line["formula"] and line["source"] for line in lines)


@pytest.mark.slow  # an example of each detector alone is a layout of its own
def test_the_page_runs_from_its_beginning_to_its_end() -> None:
    blocks = re.findall(r"^```pycon\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1 + sum(map(len, EXAMPLES.values()))
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "catalogue.md", str(PAGE), 0)
    stated: list[str] = []
    result = doctest.DocTestRunner().run(session, out=stated.append)
    assert result.failed == 0, "".join(stated)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_what_is_shown_is_what_counts_give_by_hand(kind: str) -> None:
    shown: Mapping[str, str] = EXAMPLES[kind]
    for name, example in shown.items():
        for digits, rounded, as_rounded, plain, as_plain in BY_HAND.findall(example):
            expected = float(eval(rounded or plain, {"__builtins__": {}}, KNOWN))  # noqa: S307 - our own pages
            found = float(as_rounded or as_plain)
            assert found == (round(expected, int(digits)) if digits else pytest.approx(expected)), name
