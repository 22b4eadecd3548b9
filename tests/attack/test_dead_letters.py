"""Every dead letter arrives as it was, as a stub, or is counted alone, whatever brokers refuse."""

from __future__ import annotations

import pytest

from streamwatch.edge.decoders.mapping import REASONS
from tests.attack.dead_letters import attack
from tests.tiers import by_tier

RECORDS = by_tier(fast=1_000, default=5_000, everything=200_000)


@pytest.mark.parametrize("seed", range(2))
async def test_each_arrives_or_is_counted_and_none_takes_others_along(seed: int) -> None:
    tally = await attack(RECORDS, seed)
    assert tally.differences == []
    assert tally.reasons == set(REASONS)
    assert min(tally.unchanged, tally.stubs, tally.dropped) > RECORDS // 50
