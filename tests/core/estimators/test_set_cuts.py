"""Neither cuts into batches nor a restart show in the state, the alarms or a trace."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.specs import MonitorsSpec
from tests.core.estimators.estimated import SPEC, SPECS, STREAM, cut, folded, outcomes_of, state, streams
from tests.tiers import examples


@given(points=st.lists(st.integers(0, len(STREAM)), max_size=6))
@settings(max_examples=examples(0.15))
def test_any_cut_into_batches_gives_bitwise_the_same_state_and_the_same_alarms(points):
    whole, alarms = folded(STREAM)
    assert alarms
    pieces, in_pieces = EstimatorSet(SPEC), []
    for batch in cut(STREAM, points):
        in_pieces += pieces.fold(batch)
    assert in_pieces == alarms
    assert state(pieces) == state(whole)
    assert pieces.families() == whole.families()


@pytest.mark.parametrize("spec", SPECS)
@given(drawn=streams, data=st.data())
@settings(max_examples=examples(0.25))
def test_any_cut_of_any_stream_gives_bitwise_the_same_state_overflow_included(spec, drawn, data):
    outcomes = outcomes_of(drawn)
    points = data.draw(st.lists(st.integers(0, len(outcomes)), max_size=4))
    whole, _ = folded(outcomes, spec)
    pieces = EstimatorSet(spec)
    for batch in cut(outcomes, points):
        pieces.fold(batch)
    assert state(pieces) == state(whole)
    assert pieces.records_over_limit == whole.records_over_limit


@given(at=st.integers(0, len(STREAM)))
@settings(max_examples=examples(0.15))
def test_a_restored_model_goes_on_bitwise_as_if_nothing_had_happened(at):
    whole, alarms = folded(STREAM)
    before, early = folded(STREAM[:at])
    after = EstimatorSet(SPEC)
    for name in reversed(before.models()):
        assert after.restore(before.snapshot(name)) == name
    assert state(after) == state(before)
    assert early + after.fold(STREAM[at:]) == alarms
    assert state(after) == state(whole)
    assert after.families() == whole.families()


def test_restoring_replaces_a_model_of_the_same_name():
    before, _ = folded(STREAM[:300])
    monitors, _ = folded(STREAM)
    for name in before.models():
        monitors.restore(before.snapshot(name))
    assert state(monitors) == state(before)


def test_a_snapshot_under_other_limits_or_no_snapshot_at_all_is_refused_in_words():
    monitors, _ = folded(STREAM[:50])
    narrow = EstimatorSet(MonitorsSpec(max_classes=4))
    with pytest.raises(
        ValueError, match="max_classes must be at least 5 as in the snapshot of model 'a', got 4"
    ):
        narrow.restore(monitors.snapshot("a"))
    with pytest.raises(ValueError, match=r".+"):
        narrow.restore(pickle.dumps("not a snapshot"))
    assert narrow.models() == []


def test_traces_do_not_depend_on_how_they_are_cut_either():
    whole, pieces = EstimatorSet(SPEC), EstimatorSet(SPEC)
    rows = [row for batch in cut(STREAM, [1, 2, 450]) for row in pieces.trace(batch).rows]
    assert rows == whole.trace(STREAM).rows
