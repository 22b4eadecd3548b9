"""`join.conflicts` in the settings: what it is unless given, and what does not go with it."""

from __future__ import annotations

import pytest

from streamwatch.assembly import specs
from streamwatch.assembly.job_settings import buckets_spec
from streamwatch.core.estimators.registers.revisions import RevisionsSpec
from streamwatch.core.predictions.sampled_labels import SampledLabelsSpec
from streamwatch.settings import Settings, SettingsError, load

MINIMAL = (
    "kafka.bootstrap_servers=127.0.0.1:1",
    "topics.predictions=predictions",
    "topics.labels=labels",
)


def read(*given: str) -> Settings:
    return load(None, [*MINIMAL, *given], environ={})


def test_the_first_prediction_counts_unless_another_is_asked_for() -> None:
    assert specs.join_spec(read()).conflicts == "first"
    assert specs.join_spec(read("join.conflicts=last")).conflicts == "last"


def test_both_are_compared_over_the_horizon_with_a_fading_factor_of_their_own() -> None:
    assert not any(isinstance(each, RevisionsSpec) for each in specs.monitors_spec(read()).registers)
    given = read("join.conflicts=both", "join.horizon=64s", "monitors.revisions.alpha=1")
    assert specs.join_spec(given).conflicts == "both"
    assert RevisionsSpec(64_000, 1.0) in specs.monitors_spec(given).registers


def test_predictions_are_looked_at_as_they_arrive_where_the_first_counts() -> None:
    given = read("join.conflicts=both", "monitors.early_hints={}", "monitors.label_delays=true")
    assert len(specs.join_spec(given).prediction_registers) == 2


@pytest.mark.parametrize("alpha", ["0", "1.5", "-1"])
def test_a_fading_factor_out_of_range_is_refused_by_its_key(alpha: str) -> None:
    with pytest.raises(SettingsError, match=r"monitors\.revisions\.alpha"):
        read(f"monitors.revisions.alpha={alpha}")


def test_anything_else_is_refused_by_its_key() -> None:
    with pytest.raises(SettingsError, match=r"join\.conflicts"):
        read("join.conflicts=newest")


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ("monitors.early_hints={}", r"^monitors\.early_hints: expected null with join\.conflicts: last"),
        ("monitors.label_delays=true", r"^monitors\.label_delays: expected false with join\.conflicts: last"),
    ],
)
def test_what_looks_at_predictions_as_they_arrive_does_not_go_with_the_last_of_them(
    given: str, reported: str
) -> None:
    assert specs.join_spec(read(given)).prediction_registers
    with pytest.raises(SettingsError, match=reported):
        specs.join_spec(read(given, "join.conflicts=last"))


SAMPLED = (
    "topics.predictions=[{name: p, mapping: {label_probability: value.pi, min_label_probability: 0.01}}]",
)


def test_sampled_labels_are_estimated_where_mapped_and_not_of_the_last_prediction() -> None:
    assert specs.join_spec(read()).prediction_registers == ()
    for conflicts in ("first", "both"):
        given = read(*SAMPLED, f"join.conflicts={conflicts}", "join.horizon=64s", "monitors.max_models=7")
        assert specs.join_spec(given).prediction_registers == (SampledLabelsSpec(64_000, 0.05, 7),)
    reported = r"^topics\.predictions\.mapping\.label_probability: expected none with join\.conflicts: last"
    with pytest.raises(SettingsError, match=reported):
        specs.join_spec(read(*SAMPLED, "join.conflicts=last"))


def test_a_daemon_that_serves_the_results_of_spark_refuses_the_last_one_too() -> None:
    for conflicts in ("first", "both"):
        assert buckets_spec(read(f"join.conflicts={conflicts}")).join.conflicts == conflicts
    with pytest.raises(
        SettingsError, match=r"^join\.conflicts: expected first or both where Spark evaluates"
    ):
        buckets_spec(read("join.conflicts=last"))
