"""Scores of chosen predictions are those that a plain list of dictionaries has."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.records.scores import lists_of

plain = st.lists(st.dictionaries(st.integers(0, 5), st.floats(0, 1), max_size=4), min_size=1, max_size=8)


@given(plain, st.data())
def test_chosen_ones_come_in_the_order_asked_for(scores: list[dict[int, float]], data: st.DataObject) -> None:
    several = st.lists(st.integers(0, len(scores) - 1), max_size=10)
    between = st.tuples(st.integers(0, len(scores) - 1), st.integers(1, len(scores))).map(
        lambda bounds: list(range(bounds[0], max(bounds)))
    )
    numbers = data.draw(several | between)
    found = lists_of(scores, range(len(scores))).only(np.array(numbers, np.int64))
    assert found.beside.tolist() == numbers
    names = [str(number) for number in range(6)]
    expected = [{str(number): score for number, score in scores[each].items()} for each in numbers]
    assert found.by_class(np.arange(len(numbers)), names) == expected


def test_what_is_chosen_is_a_copy() -> None:
    lists = lists_of([{0: 0.5}, {0: 0.25}], [1, 2])
    chosen = lists.only(np.arange(2))
    chosen.values[:], chosen.classes[:], chosen.beside[:], chosen.ends[:] = 0, 7, 7, 7
    assert lists.values.tolist() == [0.5, 0.25]
    assert lists.classes.tolist() == [0, 0]
    assert (lists.beside.tolist(), lists.ends.tolist()) == ([1, 2], [1, 2])
