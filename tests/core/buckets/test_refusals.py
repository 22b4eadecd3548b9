"""What a bucket refuses: pieces and logs of others, batches that were fed; and who has which form."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from streamwatch.core.events import Partition
from streamwatch.core.specs import ComparisonSpec
from streamwatch.edge.keys import digest_bytes
from tests.core.buckets.cluster import BY_SETTINGS, COLUMNS, ROWS
from tests.core.buckets.logs import HOST_MS, a_log
from tests.core.buckets.test_contract import BUCKETS, a_cluster
from tests.core.buckets.test_drifts import JOIN, falling


def parts_for(form, bucket):
    reader = form.reader(BUCKETS, digest_bytes)
    log = a_log(Random(1), 50)
    partition = next(iter(log.records))
    piece = dict(reader.split(partition, log.arrivals(partition, 0, 50), HOST_MS))
    return [
        dict(form.ids(number, BUCKETS).feed(1, [piece[number]], None).parts)[bucket] for number in range(4)
    ]


def test_pieces_that_are_not_for_a_bucket_are_refused(form):
    reader = form.reader(BUCKETS, digest_bytes)
    log = a_log(Random(1), 5)
    partition = next(iter(log.records))
    pieces = reader.split(partition, log.arrivals(partition, 0, 5), HOST_MS)
    with pytest.raises(ValueError, match="expected pieces for bucket ids/0, got one for ids/1"):
        form.ids(0, BUCKETS).feed(1, [pieces[1][1]], None)
    with pytest.raises(ValueError, match="expected a topic of predictions, mixed, labels, got 'other'"):
        reader.split(Partition("other", 0), log.arrivals(partition, 0, 5), HOST_MS)
    parts = parts_for(form, 0)
    with pytest.raises(ValueError, match="expected parts for bucket models/1, got one for models/0"):
        form.models(1, BUCKETS).feed(1, parts, None)
    with pytest.raises(ValueError, match=r"one part of each of 4 id buckets .* got parts of \[0, 1, 3\]"):
        form.models(0, BUCKETS).feed(1, [parts[0], parts[1], parts[3]], None)


@pytest.mark.parametrize("kind", ["ids", "models"])
def test_a_batch_that_was_fed_is_refused(form, kind):
    bucket = getattr(form, kind)(0, BUCKETS)
    pieces = [] if kind == "ids" else parts_for(form, 0)
    bucket.feed(3, pieces, None)
    with pytest.raises(ValueError, match="expected a batch after 3 in bucket"):
        bucket.feed(3, pieces, None)


@pytest.mark.parametrize("kind", ["ids", "models"])
def test_a_log_of_another_bucket_or_with_a_part_missing_is_refused(form, kind):
    cluster = a_cluster(form)
    cluster.run(falling(300), 2, ended=False)
    kept = getattr(cluster, kind)[1]
    make = getattr(form, kind)
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
def test_what_the_other_form_wrote_is_refused(form, kind):
    other = ROWS if form is COLUMNS else COLUMNS
    cluster = a_cluster(other)
    cluster.run(falling(300), 2, ended=False)
    kept = getattr(cluster, kind)[1]
    for delta in (kept.log[0], kept.bucket.base()[0]):
        with pytest.raises(ValueError, match="expected an entry of bucket"):
            getattr(form, kind)(1, BUCKETS).take_in(delta)
    pieces = parts_for(other, 1)
    if kind == "ids":
        log = a_log(Random(1), 5)
        partition = next(iter(log.records))
        arrivals = log.arrivals(partition, 0, 5)
        pieces = [dict(other.reader(BUCKETS, digest_bytes).split(partition, arrivals, HOST_MS))[1]]
    with pytest.raises(ValueError, match="Expected"):
        getattr(form, kind)(1, BUCKETS).feed(1, pieces, None)


@pytest.mark.parametrize("rules", [{"order": "prediction_time"}, {"folds": True}])
def test_buckets_are_in_columns_where_the_compiled_join_suffices(rules):
    others = replace(BUCKETS, join=replace(JOIN, **rules))
    compared = replace(BUCKETS, join=replace(JOIN, comparisons=(ComparisonSpec("m", ("n",)),)))
    for spec, expected in ((BUCKETS, COLUMNS), (compared, COLUMNS), (others, ROWS)):
        assert type(BY_SETTINGS.reader(spec, digest_bytes)) is expected.reader
        assert type(BY_SETTINGS.ids(0, spec)) is expected.ids
        assert type(BY_SETTINGS.models(0, spec)) is expected.models


@pytest.mark.parametrize("conflicts", ["last", "both"])
def test_predictions_that_are_revised_are_not_their_business(conflicts):
    with pytest.raises(ValueError, match=f"conflicts of buckets must be 'first', got '{conflicts}'"):
        replace(BUCKETS, join=replace(JOIN, conflicts=conflicts))
