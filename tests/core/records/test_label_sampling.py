"""Probabilities of labels as small numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.records.events import (
    LEAST_PROBABILITY,
    MOST_SAMPLING,
    as_float32,
    is_sampling,
    probability_of,
    requested_of,
    sampling_of,
)


@given(st.floats(LEAST_PROBABILITY, 1), st.none() | st.booleans())
def test_the_nearest_float32_comes_back_with_what_was_asked(probability, requested):
    rounded = as_float32(probability)
    assert rounded == float(np.float32(probability))
    number = sampling_of(rounded, requested)
    assert 0 < number <= MOST_SAMPLING < 2**31
    assert (probability_of(number), requested_of(number)) == (rounded, requested)
    assert is_sampling(np.array([number]))


def test_nothing_is_0_and_nothing_else_stands_for_it():
    assert sampling_of(None, None) == 0
    assert (probability_of(0), requested_of(0)) == (None, None)
    assert is_sampling(np.array([0]))
    above_one = sampling_of(1.0, None) + 1
    for wrong in (-1, 1 << 29, 2 << 29, above_one, above_one | 1 << 29, 3 << 29, 2**31 - 1):
        assert not is_sampling(np.array([wrong]))
