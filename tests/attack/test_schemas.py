"""No schema, answer of a registry or envelope ends, stalls or fills whoever reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.attack import envelopes, schemas
from tests.processor_time import own_garbage
from tests.tiers import by_tier

SEEDS = 4
SCHEMAS = by_tier(fast=400, default=4_000, everything=100_000)
RECORDS = by_tier(fast=4_000, default=40_000, everything=1_000_000)


@pytest.fixture(autouse=True)
def _no_collection_of_what_other_tests_left() -> Iterator[None]:
    """Each of them bounds the processor time of one record."""
    with own_garbage():
        yield


@pytest.mark.parametrize("seed", range(SEEDS))
def test_hostile_schemas_and_answers_cost_little_and_stop_nobody(seed: int) -> None:
    tally = asyncio.run(schemas.attack(SCHEMAS // SEEDS, seed))
    assert tally.faults == []
    assert tally.schemas == SCHEMAS // SEEDS
    assert sum(tally.readable.values()) > tally.schemas // 10
    assert tally.decoded > tally.records // 20
    assert tally.transcoded > tally.records // 100


@pytest.mark.parametrize("seed", range(SEEDS))
def test_hostile_envelopes_raise_nothing_and_cost_little(seed: int) -> None:
    tally = envelopes.attack(RECORDS // SEEDS, seed)
    assert tally.faults == []
    assert tally.records == RECORDS // SEEDS
    assert tally.events["Prediction"] > tally.records // 200
