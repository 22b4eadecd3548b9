"""The list of worse models is the largest one that its threshold allows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.fleet import Listed, worse_pairs
from tests.core.estimators.registers.cohorts.observed import batch_of, register_of
from tests.core.estimators.registers.cohorts.streams import Stream, outcomes_of

E_VALUES = st.lists(st.floats(0, 1e6), max_size=12)


@given(E_VALUES, st.integers(0, 5), st.sampled_from([0.01, 0.05, 0.5]))
def test_it_is_the_largest_set_of_which_each_has_enough_evidence(
    values: list[float], without: int, delta: float
) -> None:
    pairs = [Listed(f"m{i:02d}", "majority", value) for i, value in enumerate(values)]
    number = len(pairs) + without
    listed = worse_pairs(pairs, number, delta)
    self_consistent = [
        k for k in range(len(pairs) + 1) if sum(p.e_value >= number / (k * delta) for p in pairs if k) >= k
    ]
    assert len(listed) == max(self_consistent)
    assert {p.e_value for p in listed} == set(sorted(values, reverse=True)[: len(listed)])
    assert listed == sorted(listed, key=lambda p: -p.e_value)


def test_one_model_among_many_needs_more_evidence_than_alone() -> None:
    worse = Listed("worse", "majority", 100.0)
    even = [Listed(f"even-{i}", "majority", 0.5) for i in range(9)]
    assert worse_pairs([worse], 1, 0.05) == [worse]
    assert worse_pairs([worse, *even], 10, 0.05) == []


def test_a_worse_model_gathers_evidence_that_no_claim_resets_and_a_better_one_does_not() -> None:
    for accuracy, is_worse in ((0.4, True), (0.9, False)):
        stream = Stream(predictions=12_000, accuracy=(accuracy, accuracy), mean_delays=(0.05, 0.05))
        register = register_of(CohortsSpec(stream.horizon_ms, outcomes=1_000), start=(100.0, 100.0))
        assert np.isnan(register.read([0]).e_value).all(), "there is no evidence before the first cohort"
        register.observe(batch_of(outcomes_of(stream, 1)))
        found = register.read([0])
        assert found.verdict[0, 1] == (-1 if is_worse else 1)
        assert (found.e_value[0, 1] > 1e6) is np.bool_(is_worse)
