"""Verdicts by cohorts in the settings."""

from __future__ import annotations

from pathlib import Path

import yaml

from streamwatch.assembly import specs
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.specs import UtilitySpec
from streamwatch.settings import load

HEAD = {
    "kafka": {"bootstrap_servers": "a:1"},
    "topics": {"predictions": "p", "labels": "l"},
}


def cohorts_under(file: Path, join: dict[str, object], monitors: dict[str, object]) -> list[CohortsSpec]:
    file.write_text(yaml.safe_dump(HEAD | {"join": join, "monitors": monitors}))
    registers = specs.monitors_spec(load(file, environ={})).registers
    return [each for each in registers if isinstance(each, CohortsSpec)]


def test_verdicts_by_cohorts_are_on_unless_switched_off(tmp_path: Path) -> None:
    file = tmp_path / "streamwatch.yaml"
    assert cohorts_under(file, {}, {}) == [CohortsSpec()]
    assert cohorts_under(file, {}, {"cohort_verdicts": False}) == []


def test_they_take_the_horizon_the_order_and_what_verdicts_promise(tmp_path: Path) -> None:
    chosen: dict[str, object] = {
        "cohort_verdicts": True,
        "confidence_delta": 0.1,
        "verdict_outcomes": 5_000,
        "max_classes": 70,
    }
    join: dict[str, object] = {"horizon": "64s", "order": "prediction_time"}
    (found,) = cohorts_under(tmp_path / "streamwatch.yaml", join, chosen)
    assert found == CohortsSpec(
        64_000, 0.1, 5_000, by_prediction=True, max_classes=70, utilities=(UtilitySpec(),)
    )


def test_they_know_which_models_are_judged_otherwise(tmp_path: Path) -> None:
    chosen: dict[str, object] = {"cohort_verdicts": True, "utility_by_model": {"fraud-*": "balanced"}}
    (found,) = cohorts_under(tmp_path / "streamwatch.yaml", {}, chosen)
    assert found.utilities == (UtilitySpec("fraud-*", "balanced"), UtilitySpec())
    assert [found.gives_headline(model) for model in ("fraud-v3", "churn")] == [False, True]
    join: dict[str, object] = {"order": "prediction_time"}
    (found,) = cohorts_under(tmp_path / "streamwatch.yaml", join, chosen)
    assert not found.gives_headline("churn")
