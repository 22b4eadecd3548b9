"""Writing of docs/evidence/detector-benchmark.md, in which each part is between two marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from streamwatch.papers.benchmark.experiment import (
    generated_tables,
    recorded_tables,
    reproduced,
    tuned_tables,
)
from streamwatch.papers.benchmark.simulated import calibration_tables, frozen_tables
from streamwatch.papers.result import Effort, Table, markdown

PARTS: Final[dict[str, Callable[[Effort], list[Table]]]] = {
    "reproduced": reproduced,
    "generated": generated_tables,
    "recorded": recorded_tables,
    "tuned": tuned_tables,
    "frozen": frozen_tables,
    "calibration": calibration_tables,
}
"""Functions that build the tables of each part, by the value of `--part`."""
WITHOUT_MOA: Final = ("frozen", "calibration")
"""Parts that can be built without MOA, from the other libraries alone."""


class PageError(ValueError):
    """Page without the marks of a part; the message names them."""


def written(page: str, part: str, tables: Sequence[Table]) -> str:
    """Replace the text between the marks of a part by its tables, and return the page.

    Raises
    ------
    PageError
        If the page does not have both marks.
    """
    begin, end = f"<!-- benchmark: {part} -->", f"<!-- end of {part} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise PageError(f"expected {begin} and {end} in the page")
    text = "\n".join(markdown(table) for table in tables)
    return pattern.sub(lambda _: f"{begin}\n\n{text}\n{end}", page, count=1)


def check(page: Path, parts: Sequence[str]) -> None:
    """Check that a page has the marks of all parts, before hours of runs.

    Raises
    ------
    PageError
        If marks are missing.
    """
    text = page.read_text(encoding="utf-8")
    for part in parts:
        written(text, part, ())
