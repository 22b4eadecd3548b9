"""Pieces, positions of predictions, labels known at them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.buckets.contract import BucketsSpec
from streamwatch.core.buckets.histories import ColumnHistories
from streamwatch.core.buckets.id_bucket import ColumnIdBucket
from streamwatch.core.buckets.made import PredictionPositions
from streamwatch.core.buckets.model_bucket import ColumnModelBucket
from streamwatch.core.buckets.parts import PARTS
from streamwatch.core.buckets.pieces import ENCODER, PIECES
from streamwatch.core.buckets.reader import ColumnReader
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.layout import NUMBER_BITS
from streamwatch.core.merge import Arrivals
from streamwatch.core.records.batch import LABEL, OBJECT, PREDICTION, RecordBatch, rows_of, words_of
from streamwatch.core.records.events import Event, Label, Partition, Prediction, segments_text
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.edge.keys import digest_bytes
from tests.core.buckets.cluster import Cluster
from tests.core.buckets.logs import BEGIN_MS, HOST_MS, SIDES, Log, a_log
from tests.core.buckets.test_contract import fed, label, predict
from tests.core.buckets.test_drifts import JOIN
from tests.core.buckets.test_equals_one_process import SPEC

BUCKETS = BucketsSpec(SIDES, JOIN, SPEC, 4, 3)


def in_rows(arrivals: Arrivals) -> Arrivals:
    """The same records, with a row that says everything wherever a decoder would give one."""
    records, names = arrivals.records, Vocabulary()
    rows = rows_of(words_of(records.rows).copy())
    elements = replace(records.elements, rows=rows_of(words_of(records.elements.rows).copy()))
    for row in (*rows, *elements.rows):
        if row["side"] == OBJECT:
            fill(row, records.objects[row["object"]], names)
    return replace(arrivals, records=RecordBatch(rows, None, records.objects, names, elements=elements))


def fill(row: np.void, event: Event, names: Vocabulary) -> None:
    """Have a row say everything of an event that it can."""
    if not isinstance(event, Prediction | Label) or getattr(event, "scores", None):
        return
    if isinstance(event, Prediction) and (event.label_probability, event.label_requested) != (None, None):
        return
    high, low = np.frombuffer(digest_bytes([event.id]), ">u8")
    row["id_high"], row["id_low"], row["object"] = high, low, -1
    row["timestamp_ms"] = -1 if event.timestamp_ms is None else event.timestamp_ms
    row["model"] = -1 if event.model is None else names.models.number(event.model)
    row["class"] = names.classes.number(
        event.predicted_class if isinstance(event, Prediction) else event.true_class
    )
    row["side"] = PREDICTION if isinstance(event, Prediction) else LABEL
    values = getattr(event, "segments", None)
    row["segments"] = 1 + names.segments.number(segments_text(values)) if values else 0


def content(piece: bytes) -> object:
    """A piece with names for numbers."""
    found = PIECES.decode(piece)
    chunk = found.chunk.unpacked()
    names = {
        "model": [*chunk.models, None],
        "class": [*chunk.classes, None],
        "segments": [*chunk.segments, None],
    }
    rows = [
        tuple(
            names[name][row[name]] if name in names else row[name].item() for name in chunk.rows.dtype.names
        )
        for row in chunk.rows
    ]
    return rows, list(chunk.objects), found.newest_ms, found.moments.unpacked().columns.tolist()


@given(st.integers(0, 2**32))
def test_a_record_makes_the_same_piece_as_a_row_and_as_an_event(seed):
    log = a_log(Random(seed), 60)
    reader = ColumnReader(BUCKETS, digest_bytes)
    for partition, records in log.records.items():
        arrivals = log.arrivals(partition, 0, len(records))
        pieces = reader.split(partition, arrivals, HOST_MS)
        again = reader.split(partition, in_rows(arrivals), HOST_MS)
        assert [(n, content(piece)) for n, piece in again] == [(n, content(piece)) for n, piece in pieces]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), max_size=30),
    st.integers(0, 2 * NUMBER_BITS),
    st.randoms(use_true_random=False),
)
def test_the_position_of_a_pending_prediction_is_the_one_it_was_accepted_at(steps, accepted, chance):
    kept = PredictionPositions()
    kept.restore(PredictionPositions().state(np.empty(0, np.int32))[0])
    kept.accepted = accepted
    kept.forget_before(None)
    pending: dict[int, list[int]] = {}
    for fresh, settled in steps:
        positions = np.array([[chance.randrange(2**40) for _ in range(4)] for _ in range(fresh)], np.int64)
        kept.add(positions.reshape(-1, 4))
        pending |= {kept.accepted - fresh + 1 + n: position for n, position in enumerate(positions.tolist())}
        for number in chance.sample(sorted(pending), min(settled, len(pending))):
            del pending[number]
        short = np.array([number & NUMBER_BITS for number in pending], np.int32)
        kept.forget_before(min(pending) & NUMBER_BITS if pending else None)
        assert kept.of(short).tolist() == list(pending.values())
        if chance.random() < 0.3:
            state, numbers = kept.state(short)
            assert numbers.tolist() == short.tolist()
            kept = PredictionPositions()
            assert kept.restore(state).tolist() == short.tolist()


def test_positions_are_kept_from_the_oldest_pending_prediction_on():
    kept = PredictionPositions()
    for start in range(0, 100_000, 1_000):
        kept.add(np.full((1_000, 4), start, np.int64))
        kept.forget_before(start + 990)
    assert len(kept) < 2_100
    assert kept.of(np.array([100_000], np.int32)).tolist() == [[99_000] * 4]


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 40), st.sampled_from("xyz"), st.booleans()), max_size=40
    ),
    st.lists(st.integers(0, 40), max_size=3),
    st.integers(0, 40),
)
def test_the_label_at_a_prediction_is_the_last_one_before_it_(outcomes, cuts, forgotten):
    outcomes.sort(key=lambda each: each[0])
    histories = ColumnHistories()
    found: list[str | None] = []
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), len(outcomes)], strict=True):
        some = outcomes[start:stop]
        numbers = dict(zip("zyx", histories.numbers("zyx").tolist(), strict=True))
        accepted = np.array([(at, 0, 0, 0) for _, at, _, _ in some], np.int64).reshape(-1, 4)
        resolved = np.array([(at, 0, 1, n, 0) for n, (at, _, _, _) in enumerate(some)], np.int64)
        labels = np.array([-1 if assumed else numbers[name] for _, _, name, assumed in some], np.int64)
        known = histories.look_up("m", accepted, resolved.reshape(-1, 5), labels)
        found += [None if number < 0 else histories.names[number] for number in known.tolist()]
        again = ColumnHistories()
        again.restore(histories.state(-1))
        histories = again
    for k, (_, accepted_at, _, _) in enumerate(outcomes):
        before = [name for at, _, name, assumed in outcomes[:k] if at < accepted_at and not assumed]
        assert found[k] == (before[-1] if before else None)
    kept = ColumnHistories()
    kept.restore(histories.state(forgotten))
    asked = np.array([(at, 0, 0, 0) for at in range(forgotten, 41)], np.int64)
    assumed_later = np.array([(41, 0, 1, n, 0) for n in range(len(asked))], np.int64)
    numbers = kept.look_up("m", asked, assumed_later, np.full(len(asked), -1, np.int64)).tolist()
    for at, number in zip(range(forgotten, 41), numbers, strict=True):
        labels_before = [name for time, _, name, assumed in outcomes if time < at and not assumed]
        last = None if number < 0 else kept.names[number]
        assert last == (labels_before[-1] if labels_before else None)


def test_labels_that_no_history_has_are_forgotten():
    histories = ColumnHistories()
    for start in range(0, 140_000, 10_000):
        names = [f"class {number}" for number in range(start, start + 10_000)]
        histories.release_names()
        numbers = histories.numbers(names).astype(np.int64)
        times = np.arange(start, start + 10_000)
        resolved = np.zeros((10_000, 5), np.int64)
        resolved[:, 0] = times
        known = histories.look_up("m", resolved[:, :4].copy(), resolved, numbers)
        assert [histories.names[number] for number in known[1:].tolist()] == names[:-1]
        histories.forget_before(start + 9_990)
    assert len(histories.names) < 100_000


def test_the_join_of_a_bucket_forgets_classes_and_goes_on():
    soon = replace(JOIN, horizon_ms=1_000, early_horizon_ms=1_000, dedup_horizon_ms=1_000)
    spec = replace(BUCKETS, id_buckets=1, join=soon)
    cluster = Cluster(spec, Random(0), 0.0)
    for n in range(8):
        second = 20 * n
        several = [(second, predict(f"{n}/{k}", f"class {n}/{k}")) for k in range(12_000)]
        fed(cluster, second, predictions=[*several, (second, predict(f"{n}/last"))])
    classes = cluster.ids[0].bucket.join.join.classes
    assert len(classes) < 60_000
    totals = fed(cluster, 140.5, labels=[(140.5, label("7/last"))])
    assert totals.counters.predictions_resolved == 1


def test_each_event_is_in_one_piece_and_they_are_spread():
    log = Log({Partition("predictions", 0): [(BEGIN_MS, predict(f"id {n}")) for n in range(400)]})
    partition = Partition("predictions", 0)
    found = Counter()
    for bucket, piece in ColumnReader(BUCKETS, digest_bytes).split(
        partition, log.arrivals(partition, 0, 400), HOST_MS
    ):
        found[bucket] = len(PIECES.decode(piece).chunk.unpacked().rows)
    assert sum(found.values()) == 400
    assert min(found.values()) > 40
    assert len(found) == BUCKETS.id_buckets


def test_numbers_without_a_name_are_refused():
    log = Log({Partition("predictions", 0): [(BEGIN_MS, predict())], Partition("labels", 0): []})
    partition = Partition("predictions", 0)
    spec = replace(BUCKETS, id_buckets=1, model_buckets=1)
    [(_, piece)] = ColumnReader(spec, digest_bytes).split(partition, log.arrivals(partition, 0, 1), HOST_MS)
    good = PIECES.decode(piece)
    bad = msgspec.structs.replace(good, chunk=msgspec.structs.replace(good.chunk, models=[]))
    with pytest.raises(PackedError, match="expected numbers of 0 as model"):
        ColumnIdBucket(0, spec).feed(1, [ENCODER.encode(bad)], None)
    log.records[Partition("labels", 0)].append((BEGIN_MS, label()))
    bucket = ColumnIdBucket(0, spec)
    [(_, other)] = ColumnReader(spec, digest_bytes).split(
        Partition("labels", 0), log.arrivals(Partition("labels", 0), 0, 1), HOST_MS
    )
    part = PARTS.decode(bucket.feed(1, [piece, other], None).parts[0][1])
    worse = msgspec.structs.replace(part, outcomes=msgspec.structs.replace(part.outcomes, classes=[]))
    with pytest.raises(PackedError, match="expected numbers of 0 names or scores"):
        ColumnModelBucket(0, spec).feed(1, [ENCODER.encode(worse)], None)
