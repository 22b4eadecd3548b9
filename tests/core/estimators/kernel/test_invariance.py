"""What must not matter: how a stream is cut into batches, where a model stands, stopping and resuming."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.estimators.kernel.streams import drifting, follow, one_row, table_of
from tests.layouts import EVERYTHING
from tests.tiers import examples

MODELS = 3
LENGTH = 1_200


def folded(table, rows, true_class, predicted_class, cuts):
    """Fold in batches; alarms by position in the whole stream."""
    alarms = []
    edges = [0, *sorted(cuts), len(rows)]
    for start, stop in pairwise(edges):
        part = slice(start, stop)
        found = table.fold(rows[part], true_class[part], predicted_class[part])
        alarms += [alarm._replace(position=start + alarm.position) for alarm in found]
    return alarms


def streams(seed, n=LENGTH, classes=9, **shape):
    true_class, predicted_class = drifting(n, classes, seed, **shape)
    return np.random.default_rng(seed).integers(0, MODELS, n).astype(np.int32), true_class, predicted_class


@settings(max_examples=examples(0.3))
@given(
    seed=st.integers(0, 5),
    cuts=st.lists(st.integers(0, LENGTH), max_size=12),
)
def test_any_cut_into_batches_gives_the_same_bytes_and_alarms(seed, cuts) -> None:
    stream = streams(seed, every=120)
    whole, cut = table_of(EVERYTHING, MODELS), table_of(EVERYTHING, MODELS)
    assert folded(whole, *stream, []) == folded(cut, *stream, cuts)
    for row in range(MODELS):
        assert whole.snapshot(row) == cut.snapshot(row)


def test_folding_one_by_one_tracing_and_folding_at_once_are_the_same() -> None:
    stream = streams(7, n=600, every=120)
    whole, single, traced = (table_of(EVERYTHING, MODELS) for _ in range(3))
    alarms = folded(whole, *stream, [])
    assert alarms
    assert folded(single, *stream, list(range(1, 600))) == alarms
    assert traced.trace(*stream).alarms == alarms
    for row in range(MODELS):
        assert whole.snapshot(row) == single.snapshot(row) == traced.snapshot(row)


@settings(max_examples=examples(0.3))
@given(seed=st.integers(0, 5), stop=st.integers(0, LENGTH), other=st.integers(0, 2))
def test_resuming_from_a_snapshot_continues_as_if_never_stopped(seed, stop, other) -> None:
    rows, true_class, predicted_class = streams(seed, every=120)
    going, stopped = table_of(EVERYTHING, MODELS), table_of(EVERYTHING, MODELS)
    going.fold(rows[:stop], true_class[:stop], predicted_class[:stop])
    stopped.fold(rows[:stop], true_class[:stop], predicted_class[:stop])

    resumed = table_of(EVERYTHING, MODELS + other)
    moved = np.array([(row + other) % (MODELS + other) for row in range(MODELS)])
    resumed.fold(moved[:1].astype(np.int32), np.array([4], np.int32), np.array([1], np.int32))
    resumed.retire(moved[0])  # its memory is handed out again
    assert resumed.add_model() == moved[0]
    follow(resumed, EVERYTHING, moved[0])
    for row in range(MODELS):
        resumed.restore(moved[row], stopped.snapshot(row))
        assert resumed.snapshot(moved[row]) == stopped.snapshot(row)

    rest = slice(stop, None)
    alarms = going.fold(rows[rest], true_class[rest], predicted_class[rest])
    again = resumed.fold(moved[rows[rest]].astype(np.int32), true_class[rest], predicted_class[rest])
    assert [alarm._replace(row=moved[alarm.row]) for alarm in alarms] == again
    for row in range(MODELS):
        assert going.snapshot(row) == resumed.snapshot(moved[row])


def test_a_snapshot_with_large_buckets_resumes_through_the_cut_that_drops_them() -> None:
    n, stop = 4_000, 3_290
    true_class, predicted_class = drifting(n, 30, seed=30, stationary=3_300)
    going, resumed = table_of(EVERYTHING), table_of(EVERYTHING)
    going.fold(one_row(stop), true_class[:stop], predicted_class[:stop])
    resumed.restore(0, going.snapshot(0))
    rest = slice(stop, None)
    alarms = going.fold(one_row(n - stop), true_class[rest], predicted_class[rest])
    assert alarms == resumed.fold(one_row(n - stop), true_class[rest], predicted_class[rest])
    assert going.snapshot(0) == resumed.snapshot(0)
    assert {alarm.detector for alarm in alarms} >= {0, 1}


def test_a_snapshot_does_not_share_memory_with_the_table() -> None:
    table = table_of(EVERYTHING)
    true_class, predicted_class = drifting(300, 5, seed=1)
    table.fold(one_row(150), true_class[:150], predicted_class[:150])
    before = table.snapshot(0)
    kept = {name: bytes(bytearray(section)) for name, section in before.items()}
    table.fold(one_row(150), true_class[150:], predicted_class[150:])
    assert before == kept
    assert table.snapshot(0) != kept
