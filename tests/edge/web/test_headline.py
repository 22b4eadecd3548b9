"""The headline of a model: by cohorts of predictions against no change and the majority."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, cast

import pytest

from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.comparisons import WorseExporter
from streamwatch.edge.web.routes.overview import (
    OverviewExporter,
    headline_of,
    overview,
    sampled_headline_of,
    warnings_of,
)
from tests.edge.web.http_faces import AT_PREDICTION_LESS, Model, report_of, worse

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
            earliest_timestamp_seconds=1_000.0,
            latest_timestamp_seconds=3_000.0,
        )
    )
    lead = {"persistent_at_prediction": -0.1, "majority": -0.2}[opponent]
    assert found == {
        "verdict": "worse",
        "verdict_opponent": opponent,
        "verdict_status": "early",
        "verdict_since_timestamp_seconds": 2_000.0,
        "verdict_earliest_timestamp_seconds": 1_000.0,
        "verdict_latest_timestamp_seconds": 3_000.0,
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


def test_no_change_is_the_one_that_the_verdict_is_about() -> None:
    """By cohorts, the last label known at the prediction; in the order of labels, the previous one."""
    of_cohorts = details("better", judged("better", 0.1), judged("better", 0.05))
    made = report_of({"cohorts": Model(), "labels": Model()})
    rows = overview(replace(made, details={"cohorts": of_cohorts})).rows
    assert rows["labels"]["no_change"] == Model().persistent
    assert rows["cohorts"]["no_change"] == Model().persistent - AT_PREDICTION_LESS
    assert "persistent_at_prediction" not in rows["labels"] | rows["cohorts"]


def test_it_is_provisional_while_it_is_that_in_the_order_of_labels_and_absent_without_cohorts() -> None:
    assert headline_of({}) == {}
    unheaded = {"cohorts": {"opponents": {"persistent_at_prediction": {"retracted": 0}}}}
    assert headline_of(unheaded) == {}
    assert headline_of({"headline": {"basis": "labels"}, **unheaded}) == {"verdict_provisional": 1}


def row(**reported: Any) -> dict[str, Any]:
    """Row of a model that is worse in the order of labels, with these details."""
    made = replace(report_of({"m": worse(Model())}), details={"m": reported})
    return json.loads(OverviewExporter().render(Asked(made)))["models"]["m"]


def test_in_a_row_it_replaces_the_verdict_in_the_order_of_labels() -> None:
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
    (stated, page), *_ = warnings_of(missing)
    assert "only 66% of the labels that were asked for have come" in stated
    (differ, same_page), *_ = warnings_of(sampled(*leads, arrived_ratio=1.4, probabilities_differ=True))
    assert "labels are not asked for as often" in differ
    assert page == same_page == "docs/sampled-labels.md"
    assert sampled_headline_of({}) == {}


def test_a_row_of_a_model_with_sampled_labels_has_nothing_from_unweighted_ones() -> None:
    made = report_of({"m": worse(Model()), "n": worse(Model())})
    judged_worse = details("worse", judged("worse", -0.3), judged("worse", -0.3), status="early")
    beside = {**judged_worse, **sampled(by_labels("better", 0.2), by_labels("better", 0.1))}
    exporter = OverviewExporter()
    rows = json.loads(exporter.render(Asked(replace(made, details={"m": beside}))))["models"]
    assert (rows["m"]["verdict"], rows["m"]["accuracy"], rows["m"]["trouble"]) == ("better", 0.9, "better")
    assert (rows["m"]["lower"], rows["m"]["effective_sample_size"]) == (0.88, 1_500.0)
    unweighted = {"no_change", "majority", "kappa_plus", "verdict_status", "verdict_since_timestamp_seconds"}
    assert not unweighted & rows["m"].keys()
    assert unweighted - {"verdict_status"} <= rows["n"].keys()


def test_only_models_with_evidence_among_so_many_are_listed_as_worse() -> None:
    def fleet(values: dict[str, tuple[float, float]]) -> dict[str, dict[str, Any]]:
        return {
            model: details("open", judged("open", 0.0, e_value=first), judged("open", 0.0, e_value=second))
            for model, (first, second) in values.items()
        }

    even = {f"even-{i}": (0.5, 1.0) for i in range(8)}
    found = fleet({**even, "worse": (1.0, 500.0), "much-worse": (1e9, 3.0)})
    found["in-folds"] = {"cohorts": {"opponents": {"majority": judged("worse", -0.1, e_value=1e12)}}}
    made = replace(report_of({name: Model() for name in found}), details=found)

    def listed(**asked: str) -> dict[str, Any]:
        return json.loads(WorseExporter().render(Asked(made, asked)))

    # Of 20 pairs: the largest needs 20/0.05, the second half of it.
    document = listed()
    assert (document["share"], document["pairs"]) == (0.05, 20)
    assert [(each["model"], each["opponent"]) for each in document["worse"]] == [
        ("much-worse", "persistent_at_prediction"),
        ("worse", "majority"),
    ]
    assert document["worse"][0]["verdict"] == "open"
    assert "since_timestamp_seconds" not in document["worse"][0]
    assert [each["model"] for each in listed(share=".01")["worse"]] == ["much-worse"]
    assert json.loads(WorseExporter().render(Asked(None)))["worse"] == []


def test_a_pair_that_is_listed_says_since_when_it_is_worse_if_it_still_is() -> None:
    times = {"since_timestamp_seconds": 900.0, "latest_timestamp_seconds": 1_000.0}
    held, over = judged("worse", -0.1, e_value=1e9, **times), judged("better", 0.1, e_value=1e8, **times)
    made = replace(report_of({"m": Model()}), details={"m": details("worse", held, over)})
    first, second = json.loads(WorseExporter().render(Asked(made)))["worse"]
    assert {name: first[name] for name in times} == times
    assert "earliest_timestamp_seconds" not in first
    assert second["verdict"] == "better"
    assert not times.keys() & second.keys()


def test_delays_that_moved_are_stated_of_an_early_verdict_only() -> None:
    moved = {"late_labels": {"delays_moved": {"hits": {}, "errors": {}}}}

    def stated(status: str, **more: Any) -> object:
        found = details(
            "worse", judged("worse", -0.1), judged("open", 0.0), opponent="majority", status=status
        )
        made = replace(report_of({"m": Model()}), details={"m": {**found, **more}})
        return overview(made).rows["m"].get("verdict_delays_moved_of")

    assert stated("early", **moved) == "errors and hits"
    assert stated("confirmed", **moved) is None
    assert stated("early", late_labels={"delays_moved": {}}) is None
    assert stated("early") is None


@pytest.mark.parametrize("utility", ["accuracy", "balanced", "costs"])
@pytest.mark.parametrize("basis", ["cohorts", "labels"])
def test_a_row_says_what_its_verdict_is_about_unless_that_is_accuracy(utility: str, basis: str) -> None:
    found = details("worse", judged("worse", -0.1), judged("open", 0.0), opponent="majority")
    headline = {**cast("dict[str, Any]", found["headline"]), "basis": basis}
    judged_by = {} if utility == "accuracy" else {"utility": utility}
    stated = headline_of({**found, "headline": headline, **judged_by}).get("verdict_utility")
    assert stated == (None if utility == "accuracy" else utility)
    assert headline_of(judged_by) == ({} if utility == "accuracy" else {"verdict_utility": utility})


@pytest.mark.parametrize("value", ["0", "1", "0.0", "x", "1e-3", ""])
def test_a_share_of_false_ones_is_a_decimal_between_0_and_1(value: str) -> None:
    ((share,),) = (route.query for route in WorseExporter.routes)
    assert re.fullmatch(share.pattern, value) is None
