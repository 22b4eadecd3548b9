"""The list of worse models is the largest one that its threshold allows; digests have that of the API."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.fleet import Listed, WorsePair, worse_pairs
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.caveats import details_with, models_without_verdicts
from streamwatch.core.metrics.series import Report
from streamwatch.core.records.events import Outcome
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.comparisons import WorseExporter
from tests.core.estimators.registers.cohorts.observed import batch_of, register_of
from tests.core.estimators.registers.cohorts.streams import Stream, outcomes_of
from tests.layouts import TINY

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


def watched() -> EstimatorSet:
    """Estimators of a model that is nearly always wrong, one that is right, and one that has hardly begun."""
    spec = replace(TINY, max_models=4, registers=(CohortsSpec(16_000, outcomes=1_000),))
    estimators = EstimatorSet(spec)
    errors = {"bad": lambda i: i % 10 > 0, "good": lambda _: False, "new": lambda _: False}
    estimators.fold(
        [
            Outcome(
                model,
                "ab"[i % 2],
                "ab"[(i + errs(i)) % 2],
                i * 40,
                1_000,
                label_at_prediction="a",
                made=i,
                resolved_ms=i * 40,
                waited_ms=1_000,
            )
            for i in range(6_000)
            for model, errs in errors.items()
            if model != "new" or i < 100
        ]
    )
    return estimators


def by_the_api(estimators: EstimatorSet, unrepresentative: Collection[str] = ()) -> Any:
    """What `GET /api/v1/worse` says."""
    report = Report([], 0, details_with(estimators.details(), (), unrepresentative))
    return json.loads(WorseExporter().render(Asked(report)))


def document(pair: WorsePair) -> dict[str, object]:
    """A pair as the API has it."""
    times = {"since": pair.since_ms, "earliest": pair.earliest_ms, "latest": pair.latest_ms}
    began = {f"{name}_timestamp_seconds": ms / 1000 for name, ms in times.items() if ms is not None}
    evidence = {"e_value": pair.e_value, "verdict": pair.verdict}
    return {"model": pair.model, "opponent": pair.opponent, **evidence, **began}


def test_facts_have_the_list_that_the_api_has() -> None:
    estimators = watched()
    found, listed = estimators.facts.worse(0.05), by_the_api(estimators)
    assert found.number == listed["pairs"] == 6
    assert {pair.model for pair in found.pairs} == {"bad"}
    assert {pair.verdict for pair in found.pairs} == {"worse"}
    assert listed["worse"] == [document(pair) for pair in found.pairs]
    assert all(pair.since_ms is not None and pair.latest_ms is not None for pair in found.pairs)


def test_models_whose_verdicts_are_withheld_neither_count_nor_are_listed() -> None:
    estimators = watched()
    withheld = models_without_verdicts((), {"bad"})
    found = estimators.facts.worse(0.05, withheld)
    listed = by_the_api(estimators, withheld)
    assert listed["pairs"] == found.number < by_the_api(estimators)["pairs"]
    assert listed["worse"] == [document(pair) for pair in found.pairs]
    assert "bad" in {each["model"] for each in by_the_api(estimators)["worse"]}
    assert (found.number, found.pairs) == (4, ())


def test_nothing_is_listed_where_no_register_judges() -> None:
    assert EstimatorSet(TINY).facts.worse(0.05) == (0, ())
