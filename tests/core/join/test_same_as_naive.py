"""The compiled join says what a naive one says, after every batch, whatever its form."""

from __future__ import annotations

from random import Random

import pytest

from tests.core.join.streams import compare, cramped, crowded_digests
from tests.tiers import by_tier

STREAMS = by_tier(fast=4, rotating=25, default=100, everything=10_000)


def test_every_outcome_counter_and_entry_is_the_same_on_adversarial_streams():
    outcomes = sum(compare(Random(seed)) for seed in range(STREAMS))
    assert outcomes > 5 * STREAMS


def test_ids_with_nearly_equal_digests_are_told_apart():
    for seed in range(10**6, 10**6 + STREAMS // 4):
        compare(Random(seed), crowded_digests)


@pytest.mark.slow
def test_it_is_the_same_with_little_room_and_with_names_that_are_released():
    with cramped():
        for seed in range(2 * 10**6, 2 * 10**6 + STREAMS // 2):
            compare(Random(seed))
