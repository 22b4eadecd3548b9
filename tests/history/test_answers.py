"""The answer for each model in words, from a document as the API gives it."""

from __future__ import annotations

from typing import Any

import pytest

from streamwatch.history.answers import UNKNOWN, answers, interval_of, moment

RIGHT = {"accuracy_ratio": {"fading:0.999": 0.6, "landmark": 0.704}}
BASELINES = {
    "persistent": {"fading:0.999": 0.8, "landmark": 0.9},
    "majority": {"fading:0.999": 0.65, "landmark": 0.75},
}
NEEDED = "more outcomes are needed for a verdict"
OF_MAJORITY = "(lately 60.0 % right, the majority 65.0 %; overall 70.4 % and 75.0 %)"
KNOWN = "(lately 60.0 % right, no change 80.0 %; overall 70.4 % and 90.0 %)"


def model(judged: float | None = None, since: float | None = None, **headline: Any) -> dict[str, Any]:
    shown = {
        "verdict": {} if judged is None else {"persistent": judged},
        "verdict_since_outcome": {} if since is None else {"persistent": since},
    }
    return {
        "metrics": {**RIGHT, "baseline_accuracy_ratio": BASELINES, **shown},
        "details": {"headline": headline} if headline else {},
    }


LATEST = "2023-11-14 22:14:20 UTC at the latest"


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (model(-1.0, 1234), f"m is worse than no change since outcome 1,234 {KNOWN}"),
        (model(1.0, 40), f"m is better than no change since outcome 40 {KNOWN}"),
        (
            model(0.0),
            f"m is neither better nor worse than no change so far: {NEEDED} {KNOWN}",
        ),
        (
            model(
                1.0,
                40,
                basis="cohorts",
                verdict="worse",
                opponent="majority",
                since_timestamp_seconds=1_700_000_000,
                status="early",
            ),
            f"m is worse than the majority since 2023-11-14 22:13:20 UTC (early) {OF_MAJORITY}",
        ),
        (
            model(
                1.0,
                40,
                basis="cohorts",
                verdict="worse",
                opponent="majority",
                since_timestamp_seconds=1_700_000_000,
                latest_timestamp_seconds=1_700_000_060,
                status="confirmed",
            ),
            f"m is worse than the majority since 2023-11-14 22:13:20 UTC ({LATEST}, confirmed) {OF_MAJORITY}",
        ),
        (
            {"metrics": {"outcomes_total": 3}, "details": {}},
            f"m is neither better nor worse than no change so far: {NEEDED}",
        ),
    ],
)
def test_the_answer_names_the_opponent_the_time_and_both_shares(given: dict[str, Any], answer: str) -> None:
    assert list(answers({"m": given})) == [answer]


def test_no_change_is_the_baseline_that_the_verdict_is_about() -> None:
    """By cohorts, the last label known when the prediction was made; by labels, the previous one."""
    both = {"persistent": {"landmark": 0.9}, "persistent_at_prediction": {"landmark": 0.55}}
    metrics = {"accuracy_ratio": {"landmark": 0.7}, "baseline_accuracy_ratio": both, "verdict": {}}
    judged = {
        "basis": "cohorts",
        "verdict": "better",
        "since_timestamp_seconds": 1_700_000_000,
        "status": "confirmed",
    }
    [cohorts] = answers({"m": {"metrics": metrics, "details": {"headline": judged}}})
    [labels] = answers({"m": {"metrics": metrics, "details": {}}})
    assert "no change 55.0 %" in cohorts
    assert "no change 90.0 %" in labels


def test_a_verdict_names_the_time_since_which_it_holds_where_it_is_known() -> None:
    given = model(-1.0, 1234)
    given["metrics"]["verdict_since_timestamp_seconds"] = {"persistent": 1_700_000_000}
    [shown] = answers({"m": given})
    assert shown.startswith("m is worse than no change since outcome 1,234, 2023-11-14 22:13:20 UTC (lately")


def test_models_that_are_worse_come_first_and_then_those_without_a_verdict() -> None:
    models = {"a": model(1.0, 9), "b": model(0.0), "c": model(-1.0, 9), "d": model()}
    assert [line[0] for line in answers(models)] == ["c", "b", "d", "a"]


@pytest.mark.parametrize(
    ("earliest", "latest", "shown"),
    [
        (1_700_000_000, 1_700_000_060, "between 2023-11-14 22:13:20 UTC and 2023-11-14 22:14:20 UTC"),
        (None, 1_700_000_060, LATEST),
        (None, None, ""),
        (0.5, 1.5, ""),
    ],
)
def test_the_interval_of_since_is_stated_where_there_are_times(
    earliest: float | None, latest: float | None, shown: str
) -> None:
    times = {"earliest_timestamp_seconds": earliest, "latest_timestamp_seconds": latest}
    assert interval_of({name: at for name, at in times.items() if at is not None}) == shown


@pytest.mark.parametrize("seconds", [-1e300, 946_684_799.9, 253_402_300_800.0, 1e300, float("nan")])
def test_a_time_that_no_calendar_has_is_unknown(seconds: float) -> None:
    assert moment(seconds) == UNKNOWN
    assert moment(253_402_300_799.0) == "9999-12-31 23:59:59 UTC"


DISJOINT = {"classes_disjoint": {"predicted_class": ["0", "1"], "true": ["no", "yes"]}}
IN_COMMON = "predicted classes (0, 1) and true classes (no, yes) have nothing in common"


def test_a_model_without_a_verdict_is_answered_with_the_mistake_in_its_records():
    document = model()
    document["metrics"].pop("verdict")
    assert list(answers({"m": {**document, "details": DISJOINT}})) == [
        f"m has no verdict, because {IN_COMMON} {KNOWN}"
    ]
    unmatched = {"metrics": {}, "details": {"nothing_joins": {"predictions": 1_200}}}
    assert list(answers({"m": unmatched})) == [
        "m has no verdict, because no label has matched any of 1,200 predictions"
    ]


def test_a_mistake_beside_a_verdict_is_part_of_the_answer():
    scores = {"scores_as_classes": {"predicted_class": ["0.25"]}}
    [answer] = answers({"m": {**model(-1.0, 40), "details": scores}})
    assert answer.startswith(
        f"m is worse than no change since outcome 40 {KNOWN}; but predicted classes are scores"
    )
