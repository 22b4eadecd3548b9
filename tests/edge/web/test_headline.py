"""The headline of a model: by cohorts of predictions against no change and the majority."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from streamwatch.edge.web.routes.overview import (
    OverviewExporter,
    headline_of,
    sampled_headline_of,
    warning_of,
)
from tests.edge.web.http_faces import Model, report_of, worse

JSON = "application/json; charset=utf-8"


def judged(verdict: str, lead: float, since: float = 1_000.0, **more: Any) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "lead": lead,
        "lower": lead - 0.02,
        "upper": lead + 0.02,
        "since_timestamp_seconds": since,
        "status": "confirmed",
        **more,
    }


def details(no_change: dict[str, Any], majority: dict[str, Any]) -> dict[str, Any]:
    return {
        "cohorts": {
            "age_seconds": 60.0,
            "opponents": {"persistent_at_prediction": no_change, "majority": majority},
        }
    }


@pytest.mark.parametrize(
    ("no_change", "majority", "verdict", "opponent"),
    [
        ("better", "better", "better", "majority"),
        ("better", "worse", "worse", "majority"),
        ("worse", "better", "worse", "persistent_at_prediction"),
        ("worse", "worse", "worse", "majority"),
        ("better", "open", "open", "majority"),
        ("open", "open", "open", "majority"),
    ],
)
def test_it_is_the_worse_of_the_two(no_change: str, majority: str, verdict: str, opponent: str) -> None:
    leads = {"better": 0.1, "open": 0.0, "worse": -0.1}
    found = headline_of(
        details(judged(no_change, leads[no_change] + 0.01), judged(majority, leads[majority], 2_000.0))
    )
    assert (found["verdict"], found["verdict_opponent"]) == (verdict, opponent)
    chosen = {"persistent_at_prediction": leads[no_change] + 0.01, "majority": leads[majority]}[opponent]
    assert (found["lead"], found["lead_lower"], found["lead_upper"]) == (chosen, chosen - 0.02, chosen + 0.02)
    assert found["verdict_age_seconds"] == 60.0


def test_better_holds_since_both_hold_and_worse_since_the_one_that_is_shown() -> None:
    both = headline_of(details(judged("better", 0.1), judged("better", 0.2, 2_000.0)))
    assert both["verdict_since_timestamp_seconds"] == 2_000.0
    one = headline_of(details(judged("better", 0.1, 5_000.0), judged("worse", -0.2, 2_000.0)))
    assert one["verdict_since_timestamp_seconds"] == 2_000.0


@pytest.mark.parametrize(("verdict", "status"), [("better", "early"), ("worse", "early"), ("open", None)])
def test_it_is_early_where_one_that_it_rests_on_is(verdict: str, status: str | None) -> None:
    early = judged(verdict, -0.1, status="early")
    found = headline_of(details(early, judged("better" if verdict == "better" else "open", 0.1)))
    assert found.get("verdict_status") == status


def test_it_is_provisional_until_an_opponent_is_judged_and_absent_without_cohorts() -> None:
    assert headline_of({}) == {}
    assert headline_of({"cohorts": {"opponents": {"persistent_at_prediction": {"retracted": 0}}}}) == {
        "verdict_provisional": 1
    }


def test_better_takes_a_verdict_against_both() -> None:
    found = headline_of(details(judged("better", 0.1), {"retracted": 0}))
    assert found["verdict"] == "open"


def row(**told: Any) -> dict[str, Any]:
    """Row of a model that is worse in the order of labels, with these details."""
    made = replace(report_of({"m": worse(Model())}), details={"m": told})
    return json.loads(OverviewExporter().render(made, (), JSON, {}))["models"]["m"]


def test_in_a_row_it_takes_the_place_of_the_verdict_in_the_order_of_labels() -> None:
    plain = row()
    assert plain["verdict"] == plain["trouble"] == "worse"
    shown = row(**details(judged("better", 0.1), judged("better", 0.2)))
    assert shown["verdict"] == shown["trouble"] == "better"
    assert "verdict_since_outcome" not in shown
    assert shown["lead"] == 0.1
    waiting = row(cohorts={"opponents": {"persistent_at_prediction": {"retracted": 0}}})
    assert (waiting["verdict"], waiting["verdict_provisional"]) == ("worse", 1)


def sampled(no_change: dict[str, Any], majority: dict[str, Any], **more: Any) -> dict[str, Any]:
    leads = {"persistent_at_prediction": no_change, "majority": majority}
    accuracy = {"value": 0.9, "lower": 0.88, "upper": 0.92, "effective_labels": 1_500.0}
    return {"sampled_labels": {"leads": leads, "accuracy": accuracy, "share_expected": 0.05, **more}}


def by_labels(verdict: str, lead: float) -> dict[str, Any]:
    return {"verdict": verdict, "value": lead, "lower": lead - 0.02, "upper": lead + 0.02}


@pytest.mark.parametrize(
    ("no_change", "majority", "verdict", "opponent"),
    [
        ("better", "better", "better", "majority"),
        ("better", "worse", "worse", "majority"),
        ("worse", "better", "worse", "persistent_at_prediction"),
        ("better", "open", "open", "majority"),
    ],
)
def test_where_labels_are_sampled_it_is_what_the_intervals_of_leads_show(
    no_change: str, majority: str, verdict: str, opponent: str
) -> None:
    leads = {"better": 0.1, "open": 0.0, "worse": -0.1}
    given = by_labels(no_change, leads[no_change] + 0.01), by_labels(majority, leads[majority])
    found = sampled_headline_of(sampled(*given))
    chosen = given[0] if opponent == "persistent_at_prediction" else given[1]
    assert found == {
        "verdict": verdict,
        "verdict_opponent": opponent,
        "lead": chosen["value"],
        "lead_lower": chosen["lower"],
        "lead_upper": chosen["upper"],
        "accuracy": 0.9,
        "lower": 0.88,
        "upper": 0.92,
        "effective_sample_size": 1_500.0,
        "labels_sampled_ratio": 0.05,
    }


def test_what_is_missing_of_sampled_labels_stands_in_the_row() -> None:
    leads = {"verdict": "open"}, {"verdict": "open"}
    missing = sampled(*leads, labels_missing=True, arrived_ratio=0.66, share_without_probability=0.25)
    found = sampled_headline_of(missing)
    assert (found["labels_sampled_arrived_ratio"], found["labels_sampled_without_ratio"]) == (0.66, 0.25)
    assert found["verdict"] == "open"
    assert "lead" not in found
    assert "labels_sampled_arrived_ratio" not in sampled_headline_of(
        sampled(*leads, labels_missing=False, arrived_ratio=0.99, share_without_probability=0.0)
    )
    assert "only 66% of the labels that were asked for have come" in warning_of(missing)
    assert "labels are not asked for as often" in warning_of(
        sampled(*leads, arrived_ratio=1.4, probabilities_differ=True)
    )
    assert sampled_headline_of({}) == {}


def test_a_row_of_a_model_with_sampled_labels_has_nothing_from_unweighted_ones() -> None:
    made = report_of({"m": worse(Model()), "n": worse(Model())})
    judged_worse = details(judged("worse", -0.3), judged("worse", -0.3))
    beside = {**judged_worse, **sampled(by_labels("better", 0.2), by_labels("better", 0.1))}
    exporter = OverviewExporter()
    rows = json.loads(exporter.render(replace(made, details={"m": beside}), (), JSON, {}))["models"]
    assert (rows["m"]["verdict"], rows["m"]["accuracy"], rows["m"]["trouble"]) == ("better", 0.9, "better")
    assert (rows["m"]["lower"], rows["m"]["effective_sample_size"]) == (0.88, 1_500.0)
    unweighted = {"persistent", "majority", "kappa_plus", "verdict_status", "verdict_since_timestamp_seconds"}
    assert not unweighted & rows["m"].keys()
    assert unweighted - {"verdict_status"} <= rows["n"].keys()
