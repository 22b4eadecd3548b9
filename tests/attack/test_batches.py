"""No mutation of a record in a raw batch ends reading, or is read otherwise than by a slow decoder."""

from __future__ import annotations

import pytest

from tests.attack.batches import fuzz
from tests.tiers import by_tier

SEEDS = 8
RECORDS = by_tier(fast=4_000, default=60_000, everything=10_000_000)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_mutated_records_are_read_as_by_a_slow_decoder(seed: int) -> None:
    tally = fuzz(RECORDS // SEEDS, seed)
    assert tally.differences == []
    assert tally.mutated >= RECORDS // SEEDS
    assert tally.faulty > tally.mutated // 10
    assert tally.broken < 0.8 * tally.batches  # a third; with few batches more
