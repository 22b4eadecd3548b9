"""Outcomes in columns come back as they were, and what is none is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.commit.outcome_columns import models_of, read, written
from streamwatch.core.events import Outcome, PairedAnswer
from streamwatch.core.outcomes import OUTCOME, OutcomeBatch
from tests.core.commit.outcome_batches import batch_of

names = st.sampled_from(["a", "b", "ü", "a longer name"])
outcomes = st.builds(
    Outcome,
    names,
    names,
    names,
    st.integers(-(2**40), 2**45),
    st.integers(0, 2**40),
    st.booleans(),
    st.none(),
    st.none() | names,
    st.none() | st.lists(st.builds(PairedAnswer, names, names), min_size=1, max_size=3).map(tuple),
)


@given(st.lists(st.lists(outcomes, min_size=1), min_size=1, max_size=4))
def test_outcomes_of_several_batches_come_back_in_order(parts):
    value = written([batch_of(part) for part in parts])
    found = read(value)
    assert isinstance(found, OutcomeBatch)
    assert list(found) == [outcome for part in parts for outcome in part]
    assert models_of(found) == list(dict.fromkeys(outcome.model for part in parts for outcome in part))


@given(st.lists(outcomes, min_size=1), st.lists(outcomes, min_size=1))
def test_outcomes_in_rows_among_them_come_back_in_order(rows, columns):
    assert read(written([rows, batch_of(columns)])) == rows + columns


@given(st.lists(outcomes, min_size=1, max_size=20), st.data())
def test_outcomes_that_are_selected_keep_their_pairs(some, data):
    batch = batch_of(some)
    chosen = data.draw(st.lists(st.integers(0, len(some) - 1), unique=True))
    assert list(batch.only(np.array(chosen, np.int64))) == [some[number] for number in chosen]
    assert list(batch[2:7]) == some[2:7]
    assert list(batch.paired()) == [outcome for outcome in some if outcome.pairs]
    assert batch[0] == some[0]


@given(st.lists(outcomes, min_size=1, max_size=5), st.data())
def test_a_value_that_is_cut_short_or_has_more_is_refused(some, data):
    value = written([batch_of(some)])
    cut = data.draw(st.integers(1, len(value) - 1))
    for wrong in (value[:cut], value + b"x"):
        with pytest.raises(ValueError, match=r"expected|Input data|bytes"):
            read(wrong)


def test_outcomes_take_few_bytes():
    some = [
        Outcome("m", str(n % 3), "0", 10**12 + n, 30_000 + n % 1_000, label_at_prediction="1")
        for n in range(5_000)
    ]
    assert len(written([batch_of(some)])) < 10 * len(some)
    assert OUTCOME.itemsize == 56
