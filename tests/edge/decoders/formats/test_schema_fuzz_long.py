"""A hundred thousand mutated records of each format: nothing raises, nothing hangs, memory stays bounded."""

from __future__ import annotations

import resource

import pytest

from tests.edge.decoders.formats.test_schema_decoder import mutate

GROWTH_KILOBYTES = 100_000


@pytest.mark.long
@pytest.mark.parametrize("kind", ["avro", "protobuf", "json_schema"])
def test_a_hundred_thousand_mutated_records_decode_alike_alone_and_together(kind: str) -> None:
    mutate(kind, 20, seed=2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert mutate(kind, 2_000, seed=3) > 10_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH_KILOBYTES
