"""Whether promises are kept."""

from __future__ import annotations

import pytest

from tests.lab.tuning.promises import KINDS, promises


@pytest.mark.slow
@pytest.mark.parametrize("process", ["independent, error .2", "correlated .5, error .1"])
def test_promises_are_kept(process) -> None:
    """The short form: 6 histories, of which one may fall out (a fair share is one in 20)."""
    found = promises("page_hinkley", process, 6, length=8_000_000)
    assert found.kept >= 5 / 6
    assert found.loosest < 1.5


@pytest.mark.long
@pytest.mark.parametrize("process", KINDS)
@pytest.mark.parametrize("kind", ["page_hinkley", "ewma"])
def test_promises_are_kept_over_two_hundred_histories(kind, process) -> None:
    """Of a cycle, streams drawn in blocks begin anywhere, so that they alarm more often than it does."""
    found = promises(kind, process, 200)
    if "2,000" in process:  # thirty cycles are recorded
        assert found.refused >= 190
        return
    assert found.refused <= 10
    assert found.kept >= 0.97
    assert found.covered >= 0.8 or process.startswith("cycle")
