"""The README names every metric there is, as it is."""

from __future__ import annotations

import pytest

from tests.contracts.readme_metrics import BEGIN, END, README, every_family, table, with_table


def test_the_readme_has_the_table_of_metrics_as_they_are() -> None:
    readme = README.read_text(encoding="utf-8")
    assert readme == with_table(readme, table()), "run: python -m tests.contracts.readme_metrics --write"


def test_the_table_has_a_row_for_every_family() -> None:
    rows = [line for line in table().splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == [family.name for family in every_family()]
    assert all(row.replace(r"\|", "").count("|") == 5 for row in rows)


def test_only_what_is_between_the_markers_is_rewritten() -> None:
    before = f"# Title\n{BEGIN}\nold\n{END}\nmore\n"
    assert with_table(before, "new\n") == f"# Title\n{BEGIN}\nnew\n{END}\nmore\n"
    with pytest.raises(SystemExit, match=r"README\.md needs the lines"):
        with_table("# Title\n", "new\n")
