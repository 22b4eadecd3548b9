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


def details(verdict: str, no_change: dict[str, Any], majority: dict[str, Any], **more: Any) -> dict[str, Any]:
    opponents = {"persistent_at_prediction": no_change, "majority": majority}
    return {
        "headline": {"basis": "cohorts", "verdict": verdict, **more},
        "cohorts": {"age_seconds": 60.0, "opponents": opponents},
    }


@pytest.mark.parametrize("opponent", ["persistent_at_prediction", "majority"])
def test_worse_is_shown_with_the_opponent_that_it_is_about(opponent: str) -> None:
    found = headline_of(
        details(
            "worse",
            judged("worse", -0.1),
            judged("worse", -0.2),
            opponent=opponent,
            status="early",
            since_timestamp_seconds=2_000.0,
        )
    )
    lead = {"persistent_at_prediction": -0.1, "majority": -0.2}[opponent]
    assert found == {
        "verdict": "worse",
        "verdict_opponent": opponent,
        "verdict_status": "early",
        "verdict_since_timestamp_seconds": 2_000.0,
        "verdict_age_seconds": 60.0,
        "lead": lead,
        "lead_lower": lead - 0.02,
        "lead_upper": lead + 0.02,
    }


@pytest.mark.parametrize("verdict", ["better", "open"])
def test_another_verdict_is_shown_with_the_smaller_lead(verdict: str) -> None:
    found = headline_of(details(verdict, judged(verdict, 0.1), judged(verdict, 0.05)))
    assert (found["verdict"], found["verdict_opponent"], found["lead"]) == (verdict, "majority", 0.05)
    assert "verdict_status" not in found


def test_it_is_provisional_while_it_is_that_in_the_order_of_labels_and_absent_without_cohorts() -> None:
    assert headline_of({}) == {}
    unheaded = {"cohorts": {"opponents": {"persistent_at_prediction": {"retracted": 0}}}}
    assert headline_of(unheaded) == {}
    assert headline_of({"headline": {"basis": "labels"}, **unheaded}) == {"verdict_provisional": 1}


def row(**told: Any) -> dict[str, Any]:
    """Row of a model that is worse in the order of labels, with these details."""
    made = replace(report_of({"m": worse(Model())}), details={"m": told})
    return json.loads(OverviewExporter().render(made, (), JSON, {}))["models"]["m"]


def test_in_a_row_it_takes_the_place_of_the_verdict_in_the_order_of_labels() -> None:
    plain = row()
    assert plain["verdict"] == plain["trouble"] == "worse"
    shown = row(**details("better", judged("better", 0.1), judged("better", 0.2)))
    assert shown["verdict"] == shown["trouble"] == "better"
    assert "verdict_since_outcome" not in shown
    assert shown["lead"] == 0.1
    waiting = row(headline={"basis": "labels"})
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
    judged_worse = details("worse", judged("worse", -0.3), judged("worse", -0.3), status="early")
    beside = {**judged_worse, **sampled(by_labels("better", 0.2), by_labels("better", 0.1))}
    exporter = OverviewExporter()
    rows = json.loads(exporter.render(replace(made, details={"m": beside}), (), JSON, {}))["models"]
    assert (rows["m"]["verdict"], rows["m"]["accuracy"], rows["m"]["trouble"]) == ("better", 0.9, "better")
    assert (rows["m"]["lower"], rows["m"]["effective_sample_size"]) == (0.88, 1_500.0)
    unweighted = {"persistent", "majority", "kappa_plus", "verdict_status", "verdict_since_timestamp_seconds"}
    assert not unweighted & rows["m"].keys()
    assert unweighted - {"verdict_status"} <= rows["n"].keys()
