"""The rule by which alarms are put down to known changes, against counting outcome by outcome."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.papers.detection.experiment import restricted
from streamwatch.papers.detection.streams import Change, score
from tests.tiers import examples


def counted(alarms, changes, outcomes):
    """The same, outcome by outcome: (delays, missed, false, repeats, calm)."""
    owner = {}
    for outcome in range(1, outcomes + 1):
        last = max((change for change in changes if change.at < outcome), key=lambda c: c.at, default=None)
        if last is not None and outcome - last.at <= last.span:
            owner[outcome] = last
    delays, false, repeats, found = [], 0, 0, set()
    for alarm in alarms:
        change = owner.get(alarm)
        if change is None:
            false += 1
        elif change.rises and change.at in found:
            repeats += 1
        elif change.rises:
            found.add(change.at)
            delays.append(alarm - change.at)
    rises = sum(change.rises for change in changes)
    return tuple(delays), rises - len(delays), false, repeats, outcomes - len(owner)


@given(st.data())
@settings(max_examples=examples(4), deadline=None)
def test_scores_are_those_of_a_walk_over_every_outcome(data):
    outcomes = data.draw(st.integers(1, 60))
    starts = sorted(data.draw(st.sets(st.integers(0, outcomes - 1), max_size=4)))
    changes = [Change(at, data.draw(st.integers(1, 30)), data.draw(st.booleans())) for at in starts]
    alarms = sorted(data.draw(st.sets(st.integers(1, outcomes))))
    found = score(alarms, changes, outcomes)
    assert (found.delays, found.missed, found.false, found.repeats, found.calm) == counted(
        alarms, changes, outcomes
    )


def test_the_rule_by_hand():
    """Rise at 10, found at 13, again at 15; fall at 20, excused; rise at 30, missed; 8, 19, 41 false."""
    changes = [Change(10, 8), Change(20, 8, rises=False), Change(30, 8)]
    found = score([8, 13, 15, 19, 21, 41], changes, 45)
    assert found.delays == (3,)
    assert (found.missed, found.false, found.repeats, found.calm) == (1, 3, 1, 45 - 24)
    assert found.rises == 2


@pytest.mark.parametrize("starts", [(5, 3), (3, 3), (10,), (-1,)])
def test_changes_out_of_order_or_out_of_the_stream_are_refused(starts):
    with pytest.raises(ValueError, match="in order within 10 outcomes"):
        score([], [Change(at, 5) for at in starts], 10)


def test_a_change_that_was_missed_counts_with_its_whole_span():
    assert restricted([[3, 12, 14], [], [99]], Change(10, 20)).tolist() == [2.0, 20.0, 20.0]
