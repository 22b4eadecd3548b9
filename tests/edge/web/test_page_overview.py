"""The rows of the status page: the API's own numbers, the verdict on no change among them."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.metrics import LABEL_DELAY_BOUNDS
from streamwatch.core.metrics.series import Family, Histogram, Report
from streamwatch.core.records.events import Judgement
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.json_api import AlarmsExporter, JsonExporter
from streamwatch.edge.web.routes.overview import ALARMS_SHOWN, OverviewExporter, quantile, within
from tests.edge.web.exposition import realistic, report
from tests.edge.web.http_faces import BEGAN_MS, FADING, Model, alarm, report_of

JSON = "application/json; charset=utf-8"


def overview(made: Report | None) -> Any:
    return json.loads(OverviewExporter().render(Asked(made)))


def alarms(made: Report, **asked: str) -> list[dict[str, Any]]:
    return json.loads(AlarmsExporter().render(Asked(made, asked)))["alarms"]


def test_a_row_has_the_numbers_of_the_models_document() -> None:
    made = report(realistic(models=5))
    body = JsonExporter().render(Asked(made))
    assert body is not None
    models = json.loads(body)["models"]
    rows = overview(made)["models"]
    assert rows.keys() == models.keys()
    for name, row in rows.items():
        metrics = models[name]["metrics"]
        bounds, baselines = metrics["accuracy_bound_ratio"], metrics["baseline_accuracy_ratio"]
        assert {key: value for key, value in row.items() if not key.startswith(("delay", "last_label"))} == {
            "outcomes": metrics["outcomes_total"],
            "accuracy": metrics["accuracy_ratio"][FADING],
            "lower": bounds["hoeffding"][FADING],
            "upper": bounds["hoeffding_upper"][FADING],
            "effective_sample_size": metrics["effective_sample_size"][FADING],
            "no_change": baselines["persistent"][FADING],
            "majority": baselines["majority"][FADING],
            "kappa_plus": metrics["kappa_plus"][FADING],
            "alarms": sum(metrics["alarms_total"].values()),
            "last_alarm_timestamp_seconds": max(metrics["last_alarm_timestamp_seconds"].values()),
            "trouble": judged(metrics)["verdict"],
            **judged(metrics),
        }


JUDGED = ("verdict_since_timestamp_seconds", "verdict_since_outcome", "lead", "lead_lower", "lead_upper")


def judged(metrics: dict[str, Any]) -> dict[str, object]:
    """What a row says of no change, from the series."""
    words = {1: "better", -1: "worse", 0: "open"}
    verdict = words[metrics.get("verdict", {}).get("persistent", 0)]
    shown = {name: metrics[name]["persistent"] for name in JUDGED if "persistent" in metrics.get(name, {})}
    return {"verdict": verdict, **shown}


def test_without_a_fading_forgetting_the_first_one_is_shown() -> None:
    samples = [(("sliding:9", "m"), 0.5), (("landmark", "m"), 0.6)]
    made = report([Family("accuracy_ratio", "gauge", "h", ("forgetting", "model"), samples)])
    seen = overview(made)
    assert (seen["forgetting"], seen["models"]["m"]["accuracy"]) == ("sliding:9", 0.5)
    assert seen["models"]["m"]["verdict"] == "open"


@pytest.mark.parametrize(
    ("accuracy", "shown"), [(0.9, "better"), (0.82, "open"), (0.8, "open"), (0.7, "worse")]
)
def test_the_verdict_is_the_one_on_no_change_with_since_and_lead(accuracy: float, shown: str) -> None:
    made = report_of({"m": Model(accuracy=accuracy)})
    row = overview(made)["models"]["m"]
    assert row["verdict"] == shown
    assert row["lead"] == pytest.approx(accuracy - 0.8)
    assert (row["lead_lower"], row["lead_upper"]) == pytest.approx((accuracy - 0.83, accuracy - 0.77))
    since = (row.get("verdict_since_timestamp_seconds"), row.get("verdict_since_outcome"))
    assert since == ((None, None) if shown == "open" else (BEGAN_MS / 1000, 17))


def test_an_alarm_of_a_verdict_says_since_when_and_no_errors() -> None:
    judgement = Judgement("persistent", -1, 2_301, BEGAN_MS - 5_000)
    (reported,) = alarms(report_of({}, 0, [alarm("m", detector="verdict", judgement=judgement)]))
    assert reported["judgement"] == {
        "opponent": "persistent",
        "verdict": "worse",
        "since_outcome": 2_301,
        "since_timestamp_seconds": BEGAN_MS / 1000 - 5,
        "quick_labels_only": False,
        "basis": "labels",
        "status": "",
        "utility": "accuracy",
    }
    assert not {"before", "after"} & reported.keys()


def test_what_is_silently_wrong_is_a_warning_of_the_model_in_words() -> None:
    joined = Family("model_predictions_joined_total", "counter", "h", ("model",), [(("m",), 30.0)])
    accepted = Family("model_predictions_total", "counter", "h", ("model",), [(("m",), 120.0), (("n",), 7.0)])
    disjoint = {"predicted_class": ["1", "0"], "true": ["fraud", "legit"]}
    invalid = Family("model_records_invalid_total", "counter", "h", ("model",), [(("m",), 5.0)])
    made = replace(
        report([joined, accepted, invalid]),
        details={
            "m": {"classes": ["1"], "classes_disjoint": disjoint},
            "n": {"nothing_joins": {"predictions": 1234}},
            "o": {"classes": ["a"]},
        },
    )
    seen = overview(made)["models"]
    assert seen["m"]["warning"] == (
        "predicted classes (1, 0) and true classes (fraud, legit) have nothing in common"
    )
    assert seen["m"]["warning_page"] == "deploy/runbooks/ClassesDisjoint.md"
    assert seen["n"]["warning_page"] == "deploy/runbooks/NothingJoins.md"
    assert seen["m"]["joined"] == 0.25
    assert seen["m"]["invalid"] == 5
    assert "invalid" not in seen["n"]
    assert seen["n"]["warning"] == "no label has matched any of 1,234 predictions"
    assert "warning" not in seen.get("o", {})


def test_a_row_says_until_when_only_quick_labels_are_in_and_which_label_is_assumed() -> None:
    made = report_of({"m": Model(), "n": Model()})
    caveats = {"first_horizon_ends_timestamp_seconds": 1_761_200_000.0, "labels_assumed_as": "legit"}
    seen = overview(replace(made, details={"m": caveats, "unseen": caveats}))["models"]
    assert caveats.items() <= seen["m"].items()
    assert not caveats.keys() & seen["n"].keys()
    assert "unseen" not in seen
    body = JsonExporter().render(Asked(replace(made, details={"m": caveats}), {"model": "m"}))
    assert body is not None
    assert json.loads(body)["details"] == caveats


def test_before_the_first_report_there_is_nothing_to_see() -> None:
    seen = overview(None)
    assert (seen["models"], seen["alarms"], seen["published_timestamp_seconds"]) == ({}, [], None)


def test_alarms_come_newest_first_as_many_as_asked_for_and_of_one_model() -> None:
    raised = [alarm("ab"[n % 2], n) for n in range(1, 200)]
    made = report_of({"a": Model(), "b": Model()}, 0, raised)
    assert [a["ordinal"] for a in alarms(made, limit="3")] == [199, 198, 197]
    assert [a["ordinal"] for a in alarms(made, limit="2", model="a")] == [198, 196]
    assert len(alarms(made)) == 100
    assert len(overview(made)["alarms"]) == ALARMS_SHOWN
    assert overview(made)["alarms"] == alarms(made, limit=str(ALARMS_SHOWN))


def test_an_infinite_statistic_is_left_out_of_an_alarm() -> None:
    (reported,) = alarms(report_of({}, 0, [alarm("m", statistic=float("inf"), before=float("nan"))]))
    assert "statistic" not in reported
    assert "before" not in reported
    assert reported["after"] == 0.31


@given(
    counts=st.lists(st.integers(0, 50), min_size=4, max_size=4),
    shares=st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6),
)
def test_quantiles_lie_in_their_bucket_and_in_order(counts: list[int], shares: list[float]) -> None:
    bounds = (1.0, 5.0, 15.0)
    cumulative = tuple(sum(counts[: n + 1]) for n in range(4))
    found = [quantile(share, Histogram(cumulative, 0.0), bounds) for share in sorted(shares)]
    if cumulative[-1] == 0:
        assert set(found) == {None}
        return
    for share, value in zip(sorted(shares), found, strict=True):
        assert value is not None
        bucket = next(n for n, count in enumerate(cumulative) if count >= share * cumulative[-1])
        low, high = (0.0, *bounds)[min(bucket, 3)], bounds[min(bucket, 2)]
        assert min(low, high) <= value <= high
    assert all(a <= b for a, b in pairwise(value for value in found if value is not None))


def test_delays_are_stated_with_a_bound_that_they_do_not_exceed() -> None:
    """Every label 1.5 s after its prediction: the median lies somewhere in a bucket of 1 to 5 s."""
    late = Histogram(tuple(40 * (bound > 1.5) for bound in (*LABEL_DELAY_BOUNDS, 1e9)), 60.0)
    delays = Family("label_delay_seconds", "histogram", "h", ("model",), [(("m",), late)], LABEL_DELAY_BOUNDS)
    row = overview(report([delays]))["models"]["m"]
    assert row["delay_median_seconds"] == 3.0
    assert row["delay_median_within_seconds"] == row["delay_p90_within_seconds"] == 5.0
    assert within(0.9, Histogram((0, 4, 5), 1e9), (1.0, 2.0)) is None, "beyond the last bound"
    assert within(0.5, Histogram((0, 0, 0), 0.0), (1.0, 2.0)) is None


def test_a_quantile_is_what_prometheus_documents() -> None:
    """Ten observations up to 1, ten more up to 2: the median is 1, and 15 of 20 lie below 1.5."""
    histogram = Histogram((10, 20, 20), 0.0)
    assert quantile(0.5, histogram, (1.0, 2.0)) == 1.0
    assert quantile(0.75, histogram, (1.0, 2.0)) == 1.5
    assert quantile(0.9, Histogram((0, 0, 4), 0.0), (1.0, 2.0)) == 2.0
