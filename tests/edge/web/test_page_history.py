"""The past in memory: what was reported, thinned out with age, and bounded whatever comes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from streamwatch.core.metrics import family
from streamwatch.core.metrics.series import Family, Report
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.history import MAX_CLASSES, TIER_POINTS, TIER_SECONDS, HistoryExporter
from tests.edge.web.http_faces import BEGAN_MS, FADING, Model, report_of
from tests.tiers import few

JSON = "application/json; charset=utf-8"
BEGAN = BEGAN_MS / 1000


def past(history: HistoryExporter, model: str = "m", **asked: str) -> Any:
    body = history.render(Asked(None, {"model": model, **asked}))
    return None if body is None else json.loads(body)


def observed(history: HistoryExporter, seconds: list[float], **models: Model) -> None:
    for second in seconds:
        history.observe(report_of(models or {"m": Model(outcomes=int(second))}, second))


def test_what_was_reported_is_listed_in_order_of_time() -> None:
    history = HistoryExporter()
    for second, accuracy in enumerate((0.9, 0.8, 0.7)):
        history.observe(report_of({"m": Model(accuracy=accuracy, alarms=second)}, second))
    reported = past(history)
    assert reported["timestamps"] == [BEGAN, BEGAN + 1, BEGAN + 2]
    assert reported["forgetting"] == FADING
    series = reported["series"]
    assert series["accuracy_ratio"] == {"landmark": [0.45, 0.4, 0.35], FADING: [0.9, 0.8, 0.7]}
    assert series["accuracy_bound_ratio"]["hoeffding"] == [0.87, 0.77, 0.67]
    assert series["baseline_accuracy_ratio"] == {
        "persistent": [0.8] * 3,
        "persistent_at_prediction": [0.675] * 3,
        "majority": [0.6] * 3,
    }
    assert series["alarms_total"] == {"adwin": [0, 1, 2]}
    assert series["kappa_plus"] == [0.5] * 3


def test_only_what_is_new_can_be_asked_for() -> None:
    history = HistoryExporter()
    observed(history, [0, 1, 2, 3])
    assert past(history, since=f"{BEGAN + 1:.3f}")["timestamps"] == [BEGAN + 2, BEGAN + 3]
    assert past(history, since=f"{BEGAN + 9}")["timestamps"] == []


def test_a_model_nobody_has_seen_has_no_past() -> None:
    history = HistoryExporter()
    assert past(history) is None
    observed(history, [0], a=Model())
    assert past(history, "b") is None


def test_a_model_that_is_known_and_has_no_outcome_has_a_past_without_numbers_and_is_no_unknown_one() -> None:
    history = HistoryExporter()
    hint = family("early_hint", [(("m",), 1.0)])
    for second in (0, 1):
        history.observe(Report([hint], BEGAN_MS + 1_000 * second, {}))
    assert past(history)["timestamps"] == [BEGAN, BEGAN + 1]
    assert past(history)["series"] == {}
    observed(history, [2], m=Model(outcomes=7))
    assert past(history)["series"]["outcomes_total"] == [None, None, 7]


def test_who_came_later_has_no_points_of_before_and_who_is_gone_keeps_them() -> None:
    history = HistoryExporter()
    observed(history, [0, 1], old=Model())
    observed(history, [2, 3], new=Model())
    assert past(history, "old")["timestamps"] == [BEGAN, BEGAN + 1]
    assert past(history, "new")["timestamps"] == [BEGAN + 2, BEGAN + 3]


def test_undefined_and_not_yet_known_values_are_null() -> None:
    history = HistoryExporter()

    def kappa(second: int, *samples: tuple[tuple[str, ...], float]) -> Report:
        families = [
            Family("outcomes_total", "counter", "h", ("model",), [(("m",), 1)]),
            Family("kappa", "gauge", "h", ("forgetting", "model"), samples),
            Family("accuracy_ratio", "gauge", "h", ("forgetting", "model"), [((FADING, "m"), 0.5)]),
        ]
        return Report(families, BEGAN_MS + 1000 * second, {})

    history.observe(kappa(0))
    history.observe(kappa(1, ((FADING, "m"), 0.25)))
    history.observe(kappa(2, ((FADING, "m"), math.nan)))
    assert past(history)["series"]["kappa"] == [None, 0.25, None]


@pytest.mark.slow
def test_a_day_is_kept_finely_near_and_coarsely_far() -> None:
    history = HistoryExporter()
    observed(history, [float(second) for second in range(20_000)])
    times = past(history)["timestamps"]
    assert times == sorted(set(times))
    assert len(times) <= TIER_POINTS * len(TIER_SECONDS)
    age = 19_999 - (times[0] - BEGAN)
    assert age > 0.9 * 20_000  # ten hours fit
    assert [t - BEGAN for t in times[-TIER_POINTS:]] == list(range(20_000 - TIER_POINTS, 20_000))


def test_reports_in_quick_succession_are_one_point() -> None:
    history = HistoryExporter()
    observed(history, [n / 10 for n in range(50)])
    assert len(past(history)["timestamps"]) == 6


def test_a_clock_set_back_does_not_stop_the_history() -> None:
    history = HistoryExporter()
    observed(history, [1_000, 10, 11, 12])
    assert len(past(history)["timestamps"]) == 4


@pytest.mark.parametrize("models", few([1, 50, 400], 2))
def test_memory_is_bounded_however_many_models_there_are(models: int) -> None:
    history = HistoryExporter(max_values=60_000, tier_points=50)
    many = {f"m{n}": Model() for n in range(models)}
    for minute in range(60):
        history.observe(report_of(many, 60 * minute))
    # A tier never gives up its only frame; these are far smaller than a tier's share.
    assert history._tiers.kept_values <= 60_000
    assert past(history, "m0")["timestamps"][-1] == BEGAN + 60 * 59


def test_a_number_can_be_read_back_to_seven_digits() -> None:
    history = HistoryExporter()
    history.observe(report_of({"m": Model(accuracy=1 / 3)}))
    assert past(history)["series"]["accuracy_ratio"][FADING] == [0.3333333]


def shares(classes: dict[str, dict[str, float]], second: float) -> Report:
    """A report with the share of each class of each model."""
    made = report_of({model: Model() for model in classes}, second)
    families = [family for family in made.families if family.name != "class_truth_ratio"]
    samples = [((name, FADING, model), value) for model, of in classes.items() for name, value in of.items()]
    labels = ("class", "forgetting", "model")
    return replace(made, families=[*families, Family("class_truth_ratio", "gauge", "h", labels, samples)])


def test_shares_of_the_classes_are_kept_over_time() -> None:
    history = HistoryExporter()
    for second, share in enumerate((0.1, 0.25, 0.4)):
        history.observe(shares({"m": {"c1": share, "c0": 1 - share}}, second))
    series = past(history)["series"]
    assert series["class_truth_ratio"] == {"c1": [0.1, 0.25, 0.4], "c0": [0.9, 0.75, 0.6]}
    assert series["recall_ratio"] == {"fraud": [0.9] * 3, "legit": [0.9] * 3}


def test_of_ever_new_classes_only_the_first_are_kept() -> None:
    history = HistoryExporter()
    for second in range(30):
        history.observe(shares({"m": {f"c{second}": 1.0}, "n": {"c0": 1.0}}, second))
    kept = past(history)["series"]
    assert len({*kept["class_truth_ratio"], *kept["recall_ratio"]}) == MAX_CLASSES
    assert past(history, "n")["series"]["class_truth_ratio"]["c0"] == [1.0] * 30
