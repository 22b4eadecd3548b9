"""Prometheus rules: valid, tested in three cases each, and of metrics that exist."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

import pytest
import yaml

from streamwatch.core.alerting.notification import Severity
from streamwatch.core.metrics.series import exposed
from tests.contracts.families import every_family
from tests.deploy.rules import (
    DEPLOY,
    PROMETHEUS,
    RULE_FILES,
    TEST_FILES,
    alerts,
    open_alarms,
    recorded,
    rules,
    severities,
    unit_tests,
    unknown_names,
)

RUNBOOKS = "https://github.com/streamwatch/streamwatch/blob/main/deploy/runbooks/"
of_each_alert = pytest.mark.parametrize("name", sorted(alerts()))


def run(*command: object) -> str:
    ran = subprocess.run([str(part) for part in command], capture_output=True, timeout=600, check=False)
    shown = (ran.stdout + ran.stderr).decode()
    assert ran.returncode == 0, shown
    return shown


@pytest.mark.real("promtool")
def test_promtool_accepts_the_rules_and_finds_nothing_to_lint(real_component: Callable[[str], str]) -> None:
    shown = run(real_component("promtool"), "check", "rules", "--lint=all", "--lint-fatal", *RULE_FILES)
    assert shown.count("SUCCESS") == len(RULE_FILES) == 2


@pytest.mark.real("promtool")
def test_promtool_accepts_the_configuration_and_the_rules_it_names(
    real_component: Callable[[str], str],
) -> None:
    assert "2 rule files found" in run(
        real_component("promtool"), "check", "config", PROMETHEUS / "prometheus.yml"
    )


@pytest.mark.slow
@pytest.mark.real("promtool")
@pytest.mark.parametrize("file", TEST_FILES, ids=lambda file: file.name)
def test_every_alert_does_what_its_unit_tests_say(file: Path, real_component: Callable[[str], str]) -> None:
    assert "FAILED" not in run(real_component("promtool"), "test", "rules", file)


@pytest.mark.slow
@of_each_alert
def test_an_alert_is_tested_to_fire_to_stay_quiet_and_to_resolve(name: str) -> None:
    cases = defaultdict[str, int](int)
    for test in unit_tests():
        fired: list[bool] = [
            bool(case["exp_alerts"])
            for case in sorted(test["alert_rule_test"], key=lambda case: _minutes(case["eval_time"]))
            if case["alertname"] == name
        ]
        cases["fires"] += any(fired)
        cases["stays quiet"] += bool(fired) and not any(fired)
        cases["resolves"] += any(before and not after for before, after in pairwise(fired))
    assert all(cases[case] for case in ("fires", "stays quiet", "resolves")), dict(cases)


def _minutes(duration: str) -> float:
    units = {"m": 1, "h": 60, "d": 1440}
    return sum(int(n) * units[unit] for n, unit in re.findall(r"(\d+)([mhd])", duration))


@pytest.mark.slow
@of_each_alert
def test_an_alert_says_what_it_means_how_bad_it_is_and_where_to_look(name: str) -> None:
    rule = alerts()[name]
    assert severities(name)[0] in {"critical", "warning", "info"}
    assert rule["labels"]["service"] == "streamwatch"
    assert rule["labels"]["subject"] in {"model", "labels", "predictions", "topic", "daemon"}
    annotations = rule["annotations"]
    assert set(annotations) == {"summary", "description", "runbook_url", "dashboard_url"}
    assert len(annotations["summary"]) < 100
    assert annotations["description"].endswith(".")
    assert annotations["runbook_url"] == f"{RUNBOOKS}{name}.md"
    uid = urlsplit(annotations["dashboard_url"]).path.removeprefix("/d/")
    assert uid in {"streamwatch-models", "streamwatch-model"}


@of_each_alert
def test_an_alert_has_a_runbook(name: str) -> None:
    text = (DEPLOY / "runbooks" / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == ["What it means", "What to check", "What to do", "When it may be wrong"]


def test_a_runbook_belongs_to_an_alert() -> None:
    assert {file.stem for file in (DEPLOY / "runbooks").glob("*.md")} == set(alerts())


def test_each_dashboard_address_stands_in_the_rules_once() -> None:
    text = (PROMETHEUS / "rules" / "streamwatch.alerts.yml").read_text(encoding="utf-8")
    assert text.count("/d/streamwatch-model?") == text.count("/d/streamwatch-models") == 1


def test_a_drift_has_the_severity_that_the_daemon_is_configured_with() -> None:
    labels = {exposed(family.name): family.labels for family in every_family()}
    assert "severity" in labels[open_alarms()]
    assert set(severities("DriftAlarm")) == set(get_args(Severity))


def test_what_is_found_in_a_model_or_topic_is_not_over_while_the_daemon_restarts() -> None:
    """Without series an alert ends at once, and receivers are told that all is well.

    Drifts hold by the rule that records them: the daemon's notifications inhibit them while an alarm is open.
    """
    found = {name for name, alert in alerts().items() if alert["labels"]["subject"] != "daemon"}
    ends = {name for name in found if "keep_firing_for" not in alerts()[name]}
    assert {"ModelWorseThanPersistent", "LabelsStopped", "PredictionTopicSilent"} <= found - ends
    assert ends == {"DriftAlarm"}
    assert ":streamwatch_alarms_open:held" in alerts()["DriftAlarm"]["expr"]


@pytest.mark.slow
def test_every_metric_in_the_rules_exists() -> None:
    unknown = {rule.get("alert") or rule["record"]: unknown_names(rule["expr"]) for rule in rules()}
    assert {name: missing for name, missing in unknown.items() if missing} == {}


def test_a_metric_that_does_not_exist_is_noticed() -> None:
    assert unknown_names('rate(streamwatch_nonsense_total{model="streamwatch_kappa"}[5m])') == {
        "streamwatch_nonsense_total"
    }
    assert unknown_names("model:streamwatch_nonsense:bool == 1") == {"model:streamwatch_nonsense:bool"}
    assert unknown_names("histogram_quantile(0.9, streamwatch_label_delay_seconds)")


def test_recording_rules_are_named_level_metric_operation() -> None:
    assert all(re.fullmatch(r"[a-z_]+:streamwatch_[a-z_]+:[a-z0-9_]+", name) for name in recorded())


def test_every_recording_rule_is_read_by_an_alert_or_another_rule() -> None:
    read = " ".join(rule["expr"] for rule in rules())
    unread = {name for name in recorded() if not re.search(rf"{name}(?![\w:])", read)}
    assert unread <= {"model:streamwatch_outcomes:rate5m"}, unread


def test_the_scrape_has_the_job_that_down_asks_for() -> None:
    config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8"))
    jobs = {job["job_name"]: job["static_configs"][0]["targets"] for job in config["scrape_configs"]}
    assert jobs["streamwatch"] == ["streamwatch:9877"]
    assert set(re.findall(r'job="(\w+)"', alerts()["Down"]["expr"])) == {"streamwatch"}
    assert config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] == ["alertmanager:9093"]
