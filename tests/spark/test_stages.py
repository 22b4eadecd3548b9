"""Stages in Spark's own tester, over buckets that count."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`: make test-spark")
pytest.importorskip("pyarrow")

from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming import TwsTester

from streamwatch.spark.processors import KEPT, PackedResults, ResultRow, Row, Stage, StageSpec, packed_results
from tests.spark.counting import CountingIds, CountingModels

IDS = StageSpec("ids", (12, 6), CountingIds, (3, 5), 100)
MODELS = StageSpec("models", (3, 5), CountingModels, rebase_bytes=100)


@pytest.fixture(autouse=True)
def fresh_worker():
    KEPT.objects.clear()


def rows(key, batch, words, origin=1):
    return [spark_row(Row(key, batch, 10 * batch, origin, 0, None, None, word.encode())) for word in words]


def spark_row(row):
    return SparkRow(**row._asdict())


def pieces_for(out, bucket):
    return [bytes(row.body).decode() for row in out if row.bucket == bucket and row.kind is None]


def results_of(out):
    return [each for row in out for each in PackedResults(row.batch, bytes(row.results)).unpacked()]


def test_a_stage_hands_pieces_to_the_keys_of_the_next_and_results_along():
    out = TwsTester(Stage(IDS)).test(12, rows(12, 7, ["a bb", "ccc"]))
    assert pieces_for(out, 3) == ["bb"]
    assert pieces_for(out, 5) == ["a ccc"]
    results = [row for row in out if row.kind is not None]
    assert [(r.bucket, r.batch, r.end_ms, r.kind, r.name) for r in results] == [(3, 7, 70, "totals", "ids/0")]


def test_pieces_are_fed_in_the_order_of_their_origins_however_they_arrive():
    came = [*rows(12, 1, ["late"], origin=9), *rows(12, 1, ["soon"], origin=2)]
    for order in (came, came[::-1]):
        out = TwsTester(Stage(IDS)).test(12, order)
        assert pieces_for(out, 3) == ["soon late"]


def test_results_of_the_source_ride_along_to_the_sink():
    mark = spark_row(Row(12, 4, 40, 0, 0, "batch", "", b"mark"))
    middle = TwsTester(Stage(IDS)).test(12, [*rows(12, 4, ["a"]), mark])
    onward = [row for row in middle if row.bucket == 3]
    last = TwsTester(Stage(MODELS)).test(3, onward)
    assert [(r.batch, r.kind, r.name) for r in results_of(last)][:2] == [
        (4, "batch", ""),
        (4, "totals", "ids/0"),
    ]


@pytest.mark.parametrize("worker", ["the same worker", "another worker"])
def test_buckets_go_on_from_the_state_of_spark(worker):
    tester = TwsTester(Stage(MODELS))
    counted: Counter[str] = Counter()
    for batch in range(1, 30):
        words = [f"w{batch % 4}", "w1"]
        counted.update(words)
        if worker == "another worker":
            KEPT.objects.clear()
        out = tester.test(3, rows(3, batch, words))
        results = {r.name: msgspec.msgpack.decode(r.body) for r in results_of(out)}
        assert results == {word: counted[word] for word in set(words)}


def test_an_attempt_that_fails_leaves_no_trace():
    tester, words = TwsTester(Stage(MODELS)), ["a", "b"]
    tester.test(3, rows(3, 1, words))
    before = {name: dict(each.state) for name, each in tester.handle.value_states.items()}
    maps = {
        name: {k: dict(v) for k, v in each.state.items()} for name, each in tester.handle.map_states.items()
    }
    tester.test(3, rows(3, 2, ["lost"]))
    for name, state in before.items():
        tester.handle.value_states[name].state = state
    for name, state in maps.items():
        tester.handle.map_states[name].state = state
    out = tester.test(3, rows(3, 2, ["a", "lost"]))
    results = {r.name: msgspec.msgpack.decode(r.body) for r in results_of(out)}
    assert results == {"a": 2, "lost": 1}


def test_rows_of_two_batches_are_refused():
    with pytest.raises(ValueError, match="of one batch"):
        TwsTester(Stage(MODELS)).test(3, [*rows(3, 1, ["a"]), *rows(3, 2, ["b"])])


@pytest.mark.parametrize(("megabytes", "rows"), [([], 0), ([0, 0], 1), ([5], 1), ([5, 0, 3, 3, 1], 3)])
def test_results_are_packed_into_rows_of_some_megabytes_and_come_out_as_they_were(megabytes, rows):
    results = [("model", f"m{number}", b"x" * size * 1_000_000) for number, size in enumerate(megabytes)]
    packed = list(packed_results(7, results))
    assert len(packed) == rows
    assert [each for row in packed for each in row.unpacked()] == [ResultRow(7, *each) for each in results]
