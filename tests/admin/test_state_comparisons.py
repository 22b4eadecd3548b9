"""`state verify` puts the comparisons' snapshot back, and says what is wrong with it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from streamwatch.admin.state_contents import Faults, check_comparisons
from streamwatch.core.pipeline.checkpoint import PAIRS
from tests.core.join.join_stream import label_for_all, predict
from tests.core.pipeline.test_checkpoint import SPEC, Life


@pytest.fixture
def state():
    """What a store holds of a life with one pair."""
    life = Life(journal=1)
    life.feed(predict("1", "x", 0, "m"), predict("1", "y", 0, "n"), label_for_all("1", "x", 0))
    life.commit()
    store = life.model_store
    return SimpleNamespace(sections=dict(store.sections), manifest=SimpleNamespace(commits=store.commits))


def faults_of(state):
    faults = Faults()
    return check_comparisons(state, faults), faults.named


def test_a_snapshot_that_comes_out_the_same_has_no_fault(state):
    assert faults_of(state) == (len(state.sections[PAIRS]), [])


def test_a_state_without_comparisons_has_none_to_check(state):
    del state.sections[PAIRS]
    assert faults_of(state) == (0, [])


def test_a_damaged_snapshot_and_one_of_the_future_are_faults(state):
    whole = state.sections[PAIRS]
    state.sections[PAIRS] = whole[:-1]
    assert "comparisons" in faults_of(state)[1][0]
    state.sections[PAIRS] = whole
    state.manifest.commits = 0
    assert faults_of(state)[1] == ["comparisons are of commit 1, later than the last"]


def test_what_is_left_of_comparisons_no_longer_asked_for_is_not_checked(state):
    life = Life(spec=replace(SPEC, comparisons=()), journal=1)
    life.feed(predict("1", "x", 0, "m"))
    life.commit()
    state.sections |= life.model_store.sections
    assert faults_of(state)[1] == []
