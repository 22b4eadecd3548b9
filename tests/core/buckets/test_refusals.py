"""What a bucket refuses: pieces and logs of others, batches that were fed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from msgspec import structs

from streamwatch.core.buckets.id_bucket import ColumnIdBucket
from streamwatch.core.buckets.log import decode_entry, encode_entry
from streamwatch.core.buckets.model_bucket import ColumnModelBucket
from streamwatch.core.buckets.reader import ColumnReader
from streamwatch.core.records.events import Partition
from streamwatch.edge.keys import digest_bytes
from tests.core.buckets.logs import HOST_MS, a_log
from tests.core.buckets.test_contract import BUCKETS, a_cluster
from tests.core.buckets.test_drifts import JOIN, falling

BUCKET = {"ids": ColumnIdBucket, "models": ColumnModelBucket}


def parts_for(bucket):
    reader = ColumnReader(BUCKETS, digest_bytes)
    log = a_log(Random(1), 50)
    partition = next(iter(log.records))
    piece = dict(reader.split(partition, log.arrivals(partition, 0, 50), HOST_MS))
    return [
        dict(ColumnIdBucket(number, BUCKETS).feed(1, [piece[number]], None).parts)[bucket]
        for number in range(4)
    ]


def test_pieces_that_are_not_for_a_bucket_are_refused():
    reader = ColumnReader(BUCKETS, digest_bytes)
    log = a_log(Random(1), 5)
    partition = next(iter(log.records))
    pieces = reader.split(partition, log.arrivals(partition, 0, 5), HOST_MS)
    with pytest.raises(ValueError, match="expected pieces for bucket ids/0, got one for ids/1"):
        ColumnIdBucket(0, BUCKETS).feed(1, [pieces[1][1]], None)
    with pytest.raises(ValueError, match="expected a topic of predictions, mixed, labels, got 'other'"):
        reader.split(Partition("other", 0), log.arrivals(partition, 0, 5), HOST_MS)
    parts = parts_for(0)
    with pytest.raises(ValueError, match="expected parts for bucket models/1, got one for models/0"):
        ColumnModelBucket(1, BUCKETS).feed(1, parts, None)
    with pytest.raises(ValueError, match=r"one part of each of 4 id buckets .* got parts of \[0, 1, 3\]"):
        ColumnModelBucket(0, BUCKETS).feed(1, [parts[0], parts[1], parts[3]], None)


@pytest.mark.parametrize("kind", ["ids", "models"])
def test_a_batch_that_was_fed_is_refused(kind):
    bucket = BUCKET[kind](0, BUCKETS)
    pieces = [] if kind == "ids" else parts_for(0)
    bucket.feed(3, pieces, None)
    with pytest.raises(ValueError, match="expected a batch after 3 in bucket"):
        bucket.feed(3, pieces, None)


@pytest.mark.parametrize("kind", ["ids", "models"])
def test_a_log_of_another_bucket_or_with_a_part_missing_is_refused(kind):
    cluster = a_cluster()
    cluster.run(falling(300), 2, ended=False)
    kept = getattr(cluster, kind)[1]
    make = BUCKET[kind]
    base = kept.bucket.base()
    assert len(base) >= 2 or kind == "models"
    with pytest.raises(ValueError, match="expected an entry of bucket"):
        make(0, BUCKETS).take_in(base[0])
    if len(base) > 1:
        with pytest.raises(ValueError, match="expected part 0 of the base"):
            make(1, BUCKETS).take_in(base[1])
        partial = make(1, BUCKETS)
        partial.take_in(base[0])
        with pytest.raises(ValueError, match="parts of the base of bucket"):
            partial.feed(99, [], None)


@pytest.mark.parametrize("kind", ["ids", "models"])
def test_a_base_after_a_feed_or_with_a_part_too_many_is_refused(kind):
    cluster = a_cluster()
    cluster.run(falling(300), 2, ended=False)
    base = getattr(cluster, kind)[1].bucket.base()
    fed = BUCKET[kind](1, BUCKETS)
    fed.feed(1, [] if kind == "ids" else parts_for(1), None)
    with pytest.raises(ValueError, match=f"expected the base of bucket {kind}/1 first, got part 0"):
        fed.take_in(base[0])
    again = BUCKET[kind](1, BUCKETS)
    for part in base:
        again.take_in(part)
    last = decode_entry(base[-1], f"{kind}/1")
    with pytest.raises(ValueError, match=f"expected part {len(base)} of the base"):
        again.take_in(encode_entry(structs.replace(last, number=len(base))))


def test_predictions_that_are_revised_are_not_their_business():
    with pytest.raises(ValueError, match="conflicts of buckets must be 'first' or 'both', got 'last'"):
        replace(BUCKETS, join=replace(JOIN, conflicts="last"))
