"""What an engine may rely on: pieces for every bucket, results that may come twice, errors in words."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from streamwatch.core.buckets.contract import ALARM, TOTALS, BucketsSpec
from streamwatch.core.buckets.id_bucket import ColumnIdBucket
from streamwatch.core.buckets.model_bucket import ColumnModelBucket
from streamwatch.core.buckets.pieces import PIECES
from streamwatch.core.buckets.reader import ColumnReader
from streamwatch.core.buckets.view import ResultsView
from streamwatch.core.merge import Arrivals
from streamwatch.core.records.batch import ROW, RecordBatch
from streamwatch.core.records.events import Label, Partition, Prediction
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.core.specs import ComparisonSpec, JoinSpec
from streamwatch.edge.keys import bytes_of_keys, digest_bytes, digest_ids
from tests.core.buckets.cluster import Cluster
from tests.core.buckets.logs import BEGIN_MS, HOST_MS, SIDES, Log, a_log
from tests.core.buckets.test_drifts import JOIN, falling
from tests.core.buckets.test_equals_one_process import SPEC

PREDICTIONS, LABELS = Partition("predictions", 0), Partition("labels", 0)
BUCKETS = BucketsSpec(SIDES, JOIN, SPEC, 4, 3)


def a_cluster(spec=BUCKETS, rebuilds=0.0):
    return Cluster(spec, Random(0), rebuilds)


def fed(cluster, end_ms, **records):
    """Feed records of a topic's partition 0, by topic: lists of seconds and events; offsets go on."""
    pieces = []
    for topic, several in records.items():
        partition = Partition(topic, 0)
        log = cluster.__dict__.setdefault("log", Log())
        own = log.records.setdefault(partition, [])
        start = len(own)
        own += [(BEGIN_MS + int(1000 * second), event) for second, event in several]
        pieces.append(cluster.reader.split(partition, log.arrivals(partition, start, len(own)), HOST_MS))
    cluster.feed(pieces, None if end_ms is None else BEGIN_MS + int(1000 * end_ms))
    return cluster.view.totals


def predict(key="a", predicted_class="x", model="m"):
    return Prediction(key, model, predicted_class, -1)


def label(key="a", true_class="x", model="m"):
    return Label(key, true_class, -1, model)


def test_what_lies_beyond_the_time_of_a_batch_waits_for_a_later_one():
    cluster = a_cluster()
    totals = fed(cluster, 5, predictions=[(1, predict()), (9, predict("b"))], labels=[(6, label())])
    assert totals.counters.predictions_accepted == 1
    assert totals.held_records == 2
    assert totals.records.evaluated == {"predictions": 1}
    totals = fed(cluster, 9)
    assert (totals.counters.predictions_accepted, totals.counters.predictions_resolved) == (2, 1)
    assert totals.records.evaluated == {"labels": 1, "predictions": 2}
    assert totals.held_records == 0


def test_a_record_that_comes_too_late_is_joined_at_once_and_counted():
    cluster = a_cluster()
    fed(cluster, 5, predictions=[(1, predict()), (5, predict("b"))])
    totals = fed(cluster, 8, labels=[(2, label())], predictions=[(8, predict("c"))])
    assert totals.counters.predictions_resolved == 1
    assert totals.records.out_of_order == {"labels": 1}
    assert totals.records.lateness_ms == {"labels": 3_000}


def test_a_timestamp_that_is_not_believed_is_counted_and_moves_no_time():
    cluster = a_cluster()
    totals = fed(cluster, 9, predictions=[(1, predict()), (10**7, predict("b")), (2, predict("c"))])
    assert totals.records.corrected == {"future": 1}
    assert totals.counters.predictions_accepted == 3
    assert totals.clock_ms == BEGIN_MS + 2_000


def test_time_comes_no_further_than_the_newest_record():
    cluster = a_cluster()
    assert fed(cluster, 500, predictions=[(1, predict())]).clock_ms == BEGIN_MS + 1_000
    assert cluster.view.totals.counters.predictions_expired == 0


@pytest.mark.parametrize("seconds", [99, 115])
def test_what_was_settled_is_known_for_the_dedup_horizon_and_forgotten_an_eighth_later(seconds):
    join = JoinSpec(horizon_ms=10_000, dedup_horizon_ms=100_000)
    cluster = a_cluster(BucketsSpec(SIDES, join, SPEC, 4, 3))
    fed(cluster, 1, predictions=[(0, predict())], labels=[(1, label())])
    totals = fed(cluster, 1 + seconds, predictions=[(n, predict(f"b{n}")) for n in range(2, 1 + seconds)])
    duplicates = fed(cluster, 200, predictions=[(1 + seconds, predict())]).counters.predictions_duplicate
    assert totals.counters.predictions_duplicate == 0
    assert duplicates == (1 if seconds == 99 else 0)


def test_each_bucket_has_its_share_of_a_limit_and_everything_is_accounted_for():
    join = JoinSpec(horizon_ms=60_000, max_pending=40, max_labels=20, max_dedup_entries=80)
    cluster = a_cluster(BucketsSpec(SIDES, join, SPEC, 4, 3), rebuilds=0.3)
    for second in range(10):  # identities are checked with every batch
        predictions = [(second, predict(f"{second}/{n}")) for n in range(60)]
        labels = [(second, label(f"{second - 1}/{n}")) for n in range(0, 60, 2)]
        totals = fed(cluster, second, predictions=predictions, labels=labels)
    assert totals.pending <= 40
    assert totals.early <= 20
    assert totals.dedup_entries <= 80
    assert totals.counters.predictions_evicted > 0


def test_more_models_than_there_is_room_for_are_counted_and_the_others_evaluated():
    join = JoinSpec(horizon_ms=60_000, max_models=5)
    cluster = a_cluster(BucketsSpec(SIDES, join, SPEC, 1, 3))
    names = [f"m{n}" for n in range(8)]
    totals = fed(cluster, 1, predictions=[(0, predict("a", "x", name)) for name in names])
    assert (totals.counters.predictions_accepted, totals.counters.models_over_limit) == (5, 3)
    assert sorted(totals.models) == names[:5]


def test_a_model_that_only_revises_a_prediction_is_not_silent():
    cluster = a_cluster(replace(BUCKETS, join=replace(JOIN, conflicts="both")))
    fed(cluster, 2, predictions=[(1, predict())])
    totals = fed(cluster, 5, predictions=[(5, predict("a", "y"))])
    assert (totals.counters.predictions_accepted, totals.counters.predictions_conflict) == (1, 1)
    assert totals.models["m"].last_ms == BEGIN_MS + 5_000


def test_an_id_goes_to_one_bucket_as_a_row_and_as_an_event_and_every_record_is_counted_once():
    ids = [f"id {n}" for n in range(200)]
    rows = np.zeros(200, ROW)
    halves = np.frombuffer(digest_bytes(ids), ">u8").reshape(-1, 2)
    rows["id_high"], rows["id_low"] = halves[:, 0], halves[:, 1]
    rows["object"] = -1
    rows["timestamp_ms"] = -1
    names = Vocabulary()
    names.models.number("m"), names.classes.number("x")
    stamps = BEGIN_MS + np.arange(200)
    arrivals = Arrivals(np.arange(200), stamps, np.ones(200, np.bool_), RecordBatch(rows, None, (), names))
    log = Log({PREDICTIONS: [(BEGIN_MS, predict(key)) for key in digest_ids(ids)]})
    reader = ColumnReader(BUCKETS, bytes_of_keys)
    found = []
    for each in (arrivals, log.arrivals(PREDICTIONS, 0, 200)):
        pieces = [PIECES.decode(piece) for _, piece in reader.split(PREDICTIONS, each, HOST_MS)]
        assert [piece.bucket for piece in pieces] == [0, 1, 2, 3]
        assert sum(int(piece.moments.unpacked().columns[:, 1].sum()) for piece in pieces) == 200
        chunks = [piece.chunk.unpacked() for piece in pieces]
        assert min(len(chunk.rows) for chunk in chunks) > 20
        columns = ["high", "low", "model", "class"]
        found.append([(chunk.rows[columns].tolist(), chunk.models, chunk.classes) for chunk in chunks])
    assert found[0] == found[1]


def test_results_that_are_written_twice_leave_what_they_leave_once():
    cluster = a_cluster(rebuilds=0.3)
    again = ResultsView(BUCKETS)
    log = falling(600)
    times = {partition: log.times(partition) for partition in log.records}
    for start in range(0, 600, 100):
        upto = BEGIN_MS + 100 * (start + 100)
        pieces = []
        for partition, several in times.items():
            first, last = (sum(t <= ms for t in several) for ms in (upto - 10_000 if start else -1, upto))
            arrivals = log.arrivals(partition, first, last)
            pieces.append(cluster.reader.split(partition, arrivals, HOST_MS))
        cluster.feed(pieces, upto)
        for _ in range(2):
            for result in cluster.results:
                again.take(*result)
    assert again.totals == cluster.view.totals
    assert again.families() == cluster.view.families()
    assert again.alarms == cluster.view.alarms


def test_a_view_refuses_a_kind_that_there_is_not():
    with pytest.raises(ValueError, match="expected a result of totals, model, comparisons, alarm, got 'x'"):
        ResultsView(BUCKETS).take("x", "y", b"")


ORDERED = {"order": "prediction_time", "reorder_window_ms": 10_000}


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules",
    [
        {},
        {**ORDERED, "comparisons": (ComparisonSpec("m", ("*",)),)},
        {**ORDERED, "folds": True, "folds_share_stream": True, "assume": "x"},
    ],
    ids=["plain", "compared in the order of predictions", "folds in that order"],
)
def test_a_base_of_a_base_is_the_same(rules):
    cluster = a_cluster(replace(BUCKETS, join=replace(JOIN, **rules)))
    cluster.run(a_log(Random(5), 300, folds="folds" in rules), 5, ended=False)
    assert ("order" in rules) == (cluster.view.totals.held > 0)
    for kept in (*cluster.ids, *cluster.models):
        base = kept.bucket.base()
        again = kept.make()
        for part in base:
            again.take_in(part)
        assert again.base() == base


def test_a_state_goes_on_when_a_topic_is_added():
    fewer = BucketsSpec({"labels": "label", "predictions": "prediction"}, JOIN, SPEC, 4, 3)
    cluster = a_cluster(fewer)
    fed(cluster, 2, predictions=[(1, predict()), (5, predict("c"))], labels=[(3, label("c"))])
    cluster.reader = ColumnReader(BUCKETS, digest_bytes)
    for several, make in ((cluster.ids, ColumnIdBucket), (cluster.models, ColumnModelBucket)):
        for number, kept in enumerate(several):
            base = kept.bucket.base()
            kept.bucket = make(number, BUCKETS)
            for part in base:
                kept.bucket.take_in(part)
    totals = fed(cluster, 6, mixed=[(4, label()), (6, predict("d"))])
    assert totals.counters.predictions_accepted == 3
    assert totals.counters.predictions_resolved == 1
    assert totals.counters.with_model.accepted == 2


def test_results_say_which_bucket_they_are_of():
    cluster = a_cluster()
    cluster.run(falling(1_200), 3, ended=False)
    names = [name for kind, name, _ in cluster.results if kind == TOTALS]
    assert sorted(names) == ["ids/0", "ids/1", "ids/2", "ids/3", "models/0", "models/1", "models/2"]
    assert cluster.view.alarms
    assert {name.rsplit("/", 1)[0] for name in cluster.view.alarms} <= {f"models/{n}" for n in range(3)}
    assert ALARM == "alarm"
