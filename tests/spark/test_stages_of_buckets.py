"""Stages with the project's own buckets in Spark's tester: they give what one process gives, to the bit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="needs the extra `spark`: make test-spark")
pytest.importorskip("pyarrow")

from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming import TwsTester

from streamwatch.core.buckets.contract import BucketsSpec, FeedResult
from streamwatch.core.buckets.id_bucket import ColumnIdBucket
from streamwatch.core.buckets.model_bucket import ColumnModelBucket
from streamwatch.core.records.events import Partition
from streamwatch.core.specs import ComparisonSpec, JoinSpec
from streamwatch.spark.placement import dealt_keys
from streamwatch.spark.processors import KEPT, PackedResults, Row, Stage, StageSpec
from tests.core.buckets.cluster import Cluster
from tests.core.buckets.logs import HOST_MS, SIDES, Log, a_log, one_process
from tests.core.buckets.test_equals_one_process import FOREVER, SPEC, assert_same_results
from tests.tiers import examples

ID_KEYS, MODEL_KEYS = dealt_keys(4, 4), dealt_keys(3, 4)
WORKERS = 2
SOMEWHERE = Partition("predictions", 0)
PLAIN = JoinSpec(horizon_ms=2_500, early_horizon_ms=400, dedup_horizon_ms=FOREVER, max_models=24)
JOINS = {
    "plain": PLAIN,
    "by the time of predictions": replace(PLAIN, order="prediction_time", reorder_window_ms=700),
    "compared": replace(PLAIN, comparisons=(ComparisonSpec("m", ("n", "o*")),)),
    "folds": replace(PLAIN, folds=True),
}


class BucketInTester:
    """A bucket of a stage in Spark's tester, fed by workers drawn by chance, some of whose attempts fail."""

    def __init__(self, number, spec, *, stage, chance):
        make = {"ids": ColumnIdBucket, "models": ColumnModelBucket}[stage]
        keys, self.next_keys = {"ids": (ID_KEYS, MODEL_KEYS), "models": (MODEL_KEYS, ())}[stage]
        rebase_bytes = chance.choice([1, 5_000, 10**9])
        stage_spec = StageSpec(stage, keys, partial(_made, make, spec), self.next_keys, rebase_bytes)
        self.key, self.chance = keys[number], chance
        self.tester = TwsTester(Stage(stage_spec))
        self.workers = [{} for _ in range(WORKERS)]

    def feed(self, batch, pieces, end_ms):
        assert pieces, "Spark calls nothing without rows"
        reached_ms = -1 if end_ms is None else end_ms
        pieces_in = [
            Row(self.key, batch, reached_ms, origin, 0, None, None, piece)
            for origin, piece in enumerate(pieces)
        ]
        rows = [SparkRow(**row._asdict()) for row in pieces_in]
        while self.chance.random() < 0.2:
            self._failed(rows)
        out = self._attempted(rows)
        if not self.next_keys:
            found = [each for row in out for each in PackedResults(row.batch, bytes(row.results)).unpacked()]
            return FeedResult((), [each[1:] for each in found], b"")
        results = [(r.kind, r.name, bytes(r.body)) for r in out if r.kind is not None]
        parts = [(self.next_keys.index(r.bucket), bytes(r.body)) for r in out if r.kind is None]
        return FeedResult(parts, results, b"")

    def _attempted(self, rows):
        worker = self.chance.randrange(WORKERS)
        if self.chance.random() < 0.1:
            self.workers[worker].clear()  # another process
        KEPT.objects.clear()
        KEPT.objects.update(self.workers[worker])
        out = self.tester.test(self.key, rows)
        self.workers[worker] = dict(KEPT.objects)
        return out

    def _failed(self, rows):
        """An attempt that Spark does not commit: the worker keeps its object, the state is as before."""
        handle = self.tester.handle
        values = {name: dict(each.state) for name, each in handle.value_states.items()}
        maps = {
            name: {key: dict(of_key) for key, of_key in each.state.items()}
            for name, each in handle.map_states.items()
        }
        self._attempted(rows)
        for name, state in values.items():
            handle.value_states[name].state = state
        for name, state in maps.items():
            handle.map_states[name].state = state


class EveryBatchHasRows(Cluster):
    """A cluster whose batches bring pieces, be they empty: without records the job has no batch."""

    def feed(self, pieces, end_ms):
        nothing = Log({SOMEWHERE: []}).arrivals(SOMEWHERE, 0, 0)
        super().feed(pieces or [self.reader.split(SOMEWHERE, nothing, HOST_MS)], end_ms)


def _made(make, spec, number):
    return make(number, spec)


@pytest.fixture(autouse=True)
def fresh_worker():
    KEPT.objects.clear()


@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS.keys())
@settings(max_examples=examples(0.5))
@given(st.integers(0, 2**32))
def test_whatever_workers_do_both_stages_say_what_one_process_says(join, seed):
    chance = Random(seed)
    log = a_log(chance, chance.choice([80, 200]), folds=join.folds)
    folds = "bootstrap, 3 folds" if join.folds else SPEC.folds
    spec = replace(SPEC, folds=folds, comparisons=join.comparisons)
    one = one_process(log, join, spec, ended=False)
    ids, models = (partial(BucketInTester, stage=stage, chance=chance) for stage in ("ids", "models"))
    cluster = EveryBatchHasRows(
        BucketsSpec(SIDES, join, spec, 4, 3), chance, rebuilds=0.0, ids=ids, models=models
    )
    cluster.run(log, chance.choice([3, 9]), ended=False)
    assert_same_results(cluster.view, one, excused=["pairs_expired_total"] if join.comparisons else [])
