"""What `/api/v1/comparisons` returns is what the comparisons say, in an order a person can read."""

from __future__ import annotations

import json
import math

import pytest

from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.metrics.series import Report
from streamwatch.core.records.events import Outcome, PairedAnswer
from streamwatch.core.specs import ComparisonSpec, FadingSpec, LandmarkSpec, MonitorsSpec
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.comparisons import ComparisonsExporter
from streamwatch.edge.web.routes.history import ComparisonHistoryExporter
from streamwatch.edge.web.routes.json_api import JsonExporter
from tests.edge.web.exposition import PUBLISHED_MS, realistic
from tests.edge.web.judged_pairs import judged

SPEC = MonitorsSpec(
    forgetting=(LandmarkSpec(), FadingSpec(0.5)),
    comparisons=(ComparisonSpec("old", ("*",)), ComparisonSpec("a/b", ("c",))),
)


def pair(challenger: str, champion: str, *, right: str) -> Outcome:
    """A label that one of the two, or both, or none, had predicted."""
    answers = {name: "yes" if right in {name, "both"} else "no" for name in (challenger, champion)}
    return Outcome(challenger, "yes", answers[challenger], 5_000, 0, pairs=(_answer(champion, answers),))


def _answer(champion: str, answers: dict[str, str]) -> PairedAnswer:
    return PairedAnswer(champion, answers[champion])


def asked(exporter, families, **query):
    body = exporter.render(Asked(Report(families, PUBLISHED_MS, {}), query))
    return None if body is None else json.loads(body)


def filled(**right: int) -> ComparisonSet:
    """Challengers of `old` by how many of 128 labels they alone get right; of the rest both do."""
    comparisons = ComparisonSet(SPEC)
    for challenger, number in right.items():
        comparisons.fold(
            pair(challenger, "old", right=challenger if at < number else "both") for at in range(128)
        )
    return comparisons


def test_challengers_come_by_lead_and_carry_every_measure() -> None:
    comparisons = filled(few=8, many=64, none=0)
    comparisons.fold([pair("c", "a/b", right="a/b")])
    reported = asked(ComparisonsExporter(), comparisons.families())
    assert [(c["champion"], c["challenger"]) for c in reported["comparisons"]] == [
        ("a/b", "c"),
        ("old", "many"),
        ("old", "few"),
        ("old", "none"),
    ]
    assert reported["forgetting"] == "fading:0.5"
    many = reported["comparisons"][1]
    assert (many["pairs"], many["verdict"], many["last_pair_timestamp_seconds"]) == (128, "open", 5.0)
    assert many["lead"] == 0.5
    landmark = many["measures"]["landmark"]
    assert landmark["mcnemar"] == 64.0
    assert (landmark["champion_right_alone"], landmark["challenger_right_alone"]) == (0, 64)
    assert (landmark["champion_error_ratio"], landmark["challenger_error_ratio"]) == (0.5, 0)
    assert "q" not in landmark  # one of them has not erred yet
    single = reported["comparisons"][0]
    assert single["measures"]["landmark"]["mcnemar"] == -1.0
    assert "lead" not in single


def test_a_verdict_by_cohorts_replaces_the_one_in_the_order_of_labels() -> None:
    (reported,) = asked(ComparisonsExporter(), judged("new", wins=30, losses=10).families())["comparisons"]
    assert (reported["basis"], reported["verdict"], reported["status"]) == ("cohorts", "better", "confirmed")
    assert reported["lead"] == pytest.approx(0.2, abs=0.02)
    assert reported["lead_lower"] < 0.2 < reported["lead_upper"]
    since = reported["verdict_since_timestamp_seconds"]
    assert (
        reported.get("verdict_earliest_timestamp_seconds", 0)
        <= since
        <= reported["verdict_latest_timestamp_seconds"]
    )
    assert "verdict_since_pair" not in reported
    assert reported["age_seconds"] < 60
    assert reported["retracted"] == 0
    assert "provisional" not in reported
    labels = reported["labels"]
    assert (labels["verdict"], labels["verdict_since_pair"] > 0) == ("better", True)
    assert set(labels["evidence"]) == {"better", "worse"}


def test_before_cohorts_are_judged_the_verdict_is_provisional() -> None:
    comparisons = judged("new", wins=40, losses=0, pairs=3_000, late=True)
    (reported,) = asked(ComparisonsExporter(), comparisons.families())["comparisons"]
    assert (reported["basis"], reported["verdict"], reported["provisional"]) == ("labels", "better", True)
    assert "labels" not in reported
    assert "status" not in reported
    (reported,) = asked(ComparisonsExporter(), filled(few=8).families())["comparisons"]
    assert "provisional" not in reported, "without cohorts there is nothing to come"


def test_before_any_pair_there_is_nothing_to_tell() -> None:
    for families in ([], ComparisonSet(SPEC).families()):
        reported = asked(ComparisonsExporter(), families)
        assert (reported["comparisons"], reported["forgetting"]) == ([], None)
    assert json.loads(ComparisonsExporter().render(Asked(None)) or b"")["comparisons"] == []


def test_the_past_of_a_champion_is_kept_for_its_challengers_alone() -> None:
    history, comparisons = ComparisonHistoryExporter(), ComparisonSet(SPEC)
    for second, right in enumerate(("old", "new", "none", "new")):
        comparisons.fold([pair("new", "old", right=right), pair("c", "a/b", right="none")])
        history.observe(Report(comparisons.families(), PUBLISHED_MS + 1_000 * second, {}))
    began = PUBLISHED_MS / 1000
    reported = asked(history, [], champion="old")
    assert reported["timestamps"] == [began, began + 1, began + 2, began + 3]
    assert set(reported["challengers"]) == {"new"}
    expected = [None, math.log(1 / 0.5), math.log(1.5 / 1.25), math.log(1.75 / 0.625)]
    for got, wanted in zip(reported["challengers"]["new"]["q"], expected, strict=True):
        assert got == wanted if wanted is None else abs(got - wanted) < 1e-6
    assert reported["challengers"]["new"]["lead"] == [None] * 4
    later = asked(history, [], champion="a/b", since=f"{began + 1.5}")
    assert later["timestamps"] == [began + 2, began + 3]
    assert later["challengers"]["c"]["q"] == [0, 0]
    assert asked(history, [], champion="new") is None


def test_nothing_is_kept_while_nothing_is_compared() -> None:
    history = ComparisonHistoryExporter()
    history.observe(Report([], PUBLISHED_MS, {}))
    assert history._tiers.kept_values == 0


def test_the_numbers_of_models_and_of_the_stream_are_reported_without_comparisons() -> None:
    reported = asked(JsonExporter(), realistic())
    assert not [name for name in reported["stream"] if name.startswith("comparison_")]
    assert "outcomes_total" in reported["models"]["model-1"]["metrics"]
