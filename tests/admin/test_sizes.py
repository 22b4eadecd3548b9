"""Sizes are written with the largest unit of which there is at least one."""

from __future__ import annotations

import pytest

from streamwatch.admin.sizes import size_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1 kB"),
        (12_400_000, "12 MB"),
        (1_500_000_000, "1.5 GB"),
        (2e12, "2000.0 GB"),
    ],
)
def test_a_size_has_the_largest_unit_of_which_there_is_one(count: float, text: str) -> None:
    assert size_text(count) == text
