"""`/api/v1/folds`: under which forgetting models with folds are compared."""

from __future__ import annotations

import json

import pytest

from streamwatch.core.metrics.series import Report
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.comparisons import FoldsExporter
from streamwatch.edge.web.routes.json_api import JsonExporter
from tests.edge.web.http_faces import BEGAN_MS, Model, families_of

DETAILS = {
    "a": {"folds": {"landmark": {"0": 0.9, "1": 0.8}, "fading:0.99": {"0": 0.7, "1": 0.6}}},
    "b": {"folds": {"landmark": {"0": 0.5, "1": 0.4}, "fading:0.99": {"0": 0.6, "1": 0.7}}},
    "plain": {"classes": ["x"]},
}


def asked(report, **query):
    return json.loads(FoldsExporter().render(Asked(report, query)))


@pytest.fixture
def report():
    return Report(families_of({name: Model() for name in DETAILS}), BEGAN_MS, DETAILS)


def test_models_are_compared_under_the_mechanism_that_fades_unless_another_is_asked_for(report) -> None:
    found = asked(report)
    assert found["forgetting"] == "fading:0.99"
    assert found["mechanisms"] == ["landmark", "fading:0.99"]
    assert found["accuracies"] == {"a": {"0": 0.7, "1": 0.6}, "b": {"0": 0.6, "1": 0.7}}
    assert asked(report, forgetting="landmark")["pairs"][0]["sign"] == {"wins": 2, "losses": 0, "p": 0.5}


def test_under_a_forgetting_that_is_not_used_no_model_has_an_accuracy(report) -> None:
    found = asked(report, forgetting="sliding:7")
    assert (found["forgetting"], found["accuracies"]) == ("sliding:7", {"a": {}, "b": {}})
    assert found["pairs"] == []


def test_without_folds_or_a_report_nothing_is_compared() -> None:
    for empty in (None, Report(families_of({"m": Model()}), BEGAN_MS, {"m": {}})):
        found = asked(empty)
        assert (found["models"], found["pairs"], found["ranks"]) == ({}, [], None)
        assert (found["forgetting"], found["mechanisms"]) == (None, [])


def test_a_models_own_document_has_its_folds(report) -> None:
    document = json.loads(JsonExporter().render(Asked(report, {"model": "a"})))
    assert document["details"]["folds"] == DETAILS["a"]["folds"]
