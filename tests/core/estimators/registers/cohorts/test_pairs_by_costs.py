"""Delays are learnt from pairs of models that are judged by costs if one leads, run by Python one by one."""

from __future__ import annotations

from itertools import product

import numpy as np

from streamwatch.core.estimators.registers.cohorts import CohortsSpec, counting
from streamwatch.core.estimators.registers.cohorts.state import BY_COSTS, CLASS, MODEL, OUTCOME
from streamwatch.core.estimators.registers.cohorts.trackers import NEVER
from tests.core.estimators.registers.cohorts.observed import register_of
from tests.mutants.interpreted import call

UTILITY = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.25], [0.0, 0.0, 1.0]])
"""By label and answer; two different wrong answers may be worth the same."""


def test_a_pair_counts_with_its_delay_on_the_side_of_the_model_that_leads_and_not_without_a_lead() -> None:
    parameters = register_of(CohortsSpec(16_000)).parameters[0]
    model, costs, kind, outcome = (np.zeros(1, each)[0] for each in (MODEL, BY_COSTS, CLASS, OUTCOME))
    model["bounds_ms"], model["settled_unit"], costs["table"] = NEVER, 1.0, 1
    sizes = [0.0, 0.0]
    expected = np.zeros_like(kind["counts"])
    ages_ms = parameters["ages_ms"].tolist()
    rng = np.random.default_rng(1)
    for label, own, champion in product(range(3), repeat=3):
        predicted_ms, delay_ms = int(rng.integers(0, 16_000)), int(rng.integers(0, 16_001))
        outcome["predicted_class"], outcome["known"] = 3 * label + own, 2 * (champion + 1)
        given = UTILITY[np.newaxis], parameters, outcome, predicted_ms, delay_ms
        call(counting.count_pair_by_costs, model, costs, kind, *given)
        lead = UTILITY[label, own] - UTILITY[label, champion]
        if lead:
            age = next(k for k, age_ms in enumerate(ages_ms) if age_ms >= delay_ms)
            expected[predicted_ms // 1_000, int(lead < 0), age] += 1
            sizes[int(lead < 0)] += abs(lead)
        assert kind["lead_sizes"].tolist() == sizes
        assert kind["counts"].tolist() == expected.tolist()
        by_bucket = model["bucket_outcomes"][: len(expected)]
        assert by_bucket.tolist() == expected.sum(axis=(1, 2)).tolist()
    assert 10 < expected.sum() < 20
