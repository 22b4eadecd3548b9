"""Details of models: parts that are asked for, and layers that add to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.late_labels.register import LateLabelsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.caveats import Caveats, details_with_caveats
from streamwatch.core.metrics.series import Document, Layered, Report, detail_at, with_parts
from streamwatch.core.specs import MonitorsSpec
from streamwatch.edge.web.routes.overview import overview
from tests.core.estimators.registers.cohorts.streams import Stream, outcomes_of

PARTS = {"cohorts", "late_labels", "confusion", "recovery"}
STREAM = replace(Stream(), predictions=40_000, horizon_ms=4_000_000_000, classes=2, majority=0.5)


@pytest.fixture(scope="module")
def monitors() -> EstimatorSet:
    """A model with an early verdict by cohorts after a drift, and another with one outcome."""
    registers = (CohortsSpec(STREAM.horizon_ms), LateLabelsSpec(STREAM.horizon_ms))
    found = EstimatorSet(replace(MonitorsSpec(), max_models=2, registers=registers))
    stream = replace(STREAM, accuracy=(0.8, 0.4), mean_delays=(0.2, 0.02))
    outcomes = outcomes_of(stream, 1).events()
    found.fold([replace_model(outcomes[0], "n")])
    for start in range(0, len(outcomes), 500):
        found.fold(outcomes[start : start + 500])
        if detail_at(found.details()["m"], "headline", "status") == "early":
            return found
    raise AssertionError("there is no early verdict")


def replace_model(outcome, model):  # type: ignore[no-untyped-def]
    return type(outcome)(model, outcome.true_class, outcome.predicted_class, outcome.event_ms, 0)


@pytest.mark.parametrize("parts", [(), ("cohorts",), ("late_labels", "confusion"), ("recovery",)])
def test_only_the_parts_that_are_asked_for_are_built(monitors: EstimatorSet, parts: tuple[str, ...]) -> None:
    details = monitors.details()
    whole = details["m"]
    assert whole.keys() > PARTS
    assert with_parts(details, "m", parts) == {
        name: value for name, value in whole.items() if name not in PARTS or name in parts
    }
    assert with_parts(details, "unknown", parts) == {}
    with pytest.raises(KeyError):
        details["unknown"]


def test_layers_add_to_parts_what_they_add_to_the_whole(monitors: EstimatorSet) -> None:
    def marked(model: str, shown: Document) -> Document:
        return {**shown, "fields": (model, len(shown.keys() - PARTS))}

    layered = Layered(Layered(monitors.details(), ("further",), marked), ("more",), lambda _, shown: shown)
    assert with_parts(layered, "m", ())["fields"] == layered["m"]["fields"]
    assert "late_labels" not in with_parts(layered, "m", ())
    assert with_parts(layered, "further", ()) == layered["further"] == {"fields": ("further", 0)}
    assert with_parts(layered, "more", ()) == layered["more"] == {}
    assert with_parts(Layered({"m": {"late_labels": 1}}, (), lambda _, shown: shown), "m", ()) == {
        "late_labels": 1
    }


def test_an_overview_of_parts_is_that_of_whole_details(monitors: EstimatorSet) -> None:
    families = monitors.families()
    moved = {"delays_moved": {"hits": {}, "errors": {}}}
    details = Layered(
        details_with_caveats(
            monitors.details(), {"n": Caveats(predictions=3, labelled=1, horizon_ends_ms=9_000)}, families
        ),
        (),
        lambda _, shown: {**shown, "late_labels": moved} if "late_labels" in shown else shown,
    )
    of_parts = overview(Report(families, 5, details)).rows
    assert of_parts == overview(Report(families, 5, {model: dict(details[model]) for model in details})).rows
    assert of_parts["m"]["verdict_status"] == "early"
    assert of_parts["m"]["verdict_delays_moved_of"] == "errors and hits"
    assert "verdict_delays_moved_of" not in of_parts["n"]
    assert of_parts["n"]["first_horizon_only_label"] == "0"
