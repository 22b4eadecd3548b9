"""Keys of buckets against Spark's hash."""

from __future__ import annotations

import pytest

from streamwatch.spark.placement import dealt_keys, partition_of


@pytest.mark.parametrize(("key", "hashed"), [(0, 933211791), (1, -559580957), (42, 29417773)])
def test_the_hash_is_that_of_spark(key, hashed):
    """Values of `SELECT hash(0), hash(1), hash(42)` in Spark 4.2."""
    for partitions in (1, 4, 7, 1_000_003):
        assert partition_of(key, partitions) == hashed % partitions


@pytest.mark.parametrize(("buckets", "partitions"), [(4, 4), (3, 4), (10, 4), (1, 1), (200, 200)])
def test_every_partition_gets_its_share_of_buckets(buckets, partitions):
    keys = dealt_keys(buckets, partitions)
    assert len(set(keys)) == buckets
    assert [partition_of(key, partitions) for key in keys] == [i % partitions for i in range(buckets)]


def test_no_buckets_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        dealt_keys(0, 4)
