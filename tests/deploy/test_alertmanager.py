"""The example configuration of Alertmanager: valid, and alerts go where it says."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from inspect import getsource
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from streamwatch.core.alerting.notification import Severity
from streamwatch.core.metrics.series import exposed
from streamwatch.edge.receivers import alertmanager
from streamwatch.edge.receivers.alertmanager import Alertmanager
from tests.contracts.families import every_family
from tests.deploy.rules import DEPLOY, alerts, held_drifts, open_alarms, severities
from tests.edge.receivers.notifications import firing

pytestmark = pytest.mark.slow

CONFIG = DEPLOY / "alertmanager" / "alertmanager.yml"
RECEIVERS = {"error": "critical"}
"""Of severities that have none of their own."""


def amtool(program: str, *arguments: str) -> str:
    ran = subprocess.run([program, *arguments], capture_output=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.decode().strip()


def inhibit_rules() -> list[dict[str, Any]]:
    return yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["inhibit_rules"]


def inhibited_by(alert: str) -> set[str]:
    """Alerts that a firing one silences, with the labels that the rules give them."""
    silenced = set[str]()
    for rule in inhibit_rules():
        if _matches(rule["source_matchers"], alert):
            silenced |= {name for name in alerts() if _matches(rule["target_matchers"], name)}
    return silenced - {alert}


def _matches(matchers: list[str], alert: str) -> bool:
    labels = {"alertname": alert, **alerts().get(alert, {"labels": {}})["labels"]}
    for matcher in matchers:
        name, sign, value = re.fullmatch(r'(\w+)(=~|=)"(.*)"', matcher).groups()
        if not re.fullmatch(value if sign == "=~" else re.escape(value), labels.get(name, "")):
            return False
    return True


@pytest.mark.real("amtool")
def test_amtool_accepts_the_configuration(real_component: Callable[[str], str]) -> None:
    assert "SUCCESS" in amtool(real_component("amtool"), "check-config", str(CONFIG))


@pytest.mark.real("amtool")
@pytest.mark.parametrize(
    ("name", "severity"), [(name, severity) for name in sorted(alerts()) for severity in severities(name)]
)
def test_an_alert_goes_to_the_receiver_of_its_severity(
    real_component: Callable[[str], str], name: str, severity: str
) -> None:
    labels = {"alertname": name, "model": "m", **alerts()[name]["labels"], "severity": severity}
    pairs = [f"{label}={value}" for label, value in labels.items()]
    routed = amtool(real_component("amtool"), "config", "routes", "test", f"--config.file={CONFIG}", *pairs)
    assert routed == RECEIVERS.get(severity, severity)


@pytest.mark.real("amtool")
@pytest.mark.parametrize("severity", get_args(Severity))
@pytest.mark.parametrize("name", sorted(set(re.findall('"(Streamwatch[A-Za-z]+)"', getsource(alertmanager)))))
def test_what_the_daemon_sends_by_itself_goes_to_the_receiver_of_its_severity(
    real_component: Callable[[str], str], name: str, severity: str
) -> None:
    labels = (f"alertname={name}", f"severity={severity}", "model=m", "detector=adwin")
    routed = amtool(real_component("amtool"), "config", "routes", "test", f"--config.file={CONFIG}", *labels)
    assert routed == RECEIVERS.get(severity, severity)


@pytest.mark.real("amtool")
def test_a_name_is_a_line_whatever_is_in_it(real_component: Callable[[str], str], tmp_path: Path) -> None:
    models = [r"a\Eb(", "x|good", "good", "good", r"\Q", "<!channel>"]
    document = {
        "alerts": [
            {
                "status": "firing",
                "labels": {"alertname": "DriftAlarm", "model": model},
                "annotations": {"summary": f"{model} errs", "runbook_url": "http://runbook"},
            }
            for model in models
        ]
    }
    (tmp_path / "data.json").write_text(json.dumps(document), encoding="utf-8")
    rendered = amtool(
        real_component("amtool"),
        *("template", "render", f"--template.glob={CONFIG.parent / 'templates' / '*.tmpl'}"),
        '--template.text={{ template "streamwatch.lines" . }}',
        f"--template.data={tmp_path / 'data.json'}",
    )
    assert rendered.splitlines() == [
        r"a\Eb( errs (http://runbook)",
        "x|good errs",
        "good errs",
        r"\Q errs",
        "‹!channel› errs",
    ]


@pytest.mark.real("amtool")
def test_alerts_of_others_go_elsewhere(real_component: Callable[[str], str]) -> None:
    others = ("config", "routes", "test", f"--config.file={CONFIG}", "severity=critical", "service=other")
    assert amtool(real_component("amtool"), *others) == "unrouted"


def test_alerts_of_many_models_are_grouped_by_team_and_topic() -> None:
    route = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["route"]
    assert set(route["group_by"]) == {"service", "instance", "topic", "team"}
    assert not any("group_by" in child for child in route["routes"])


def test_alerts_on_models_stay_in_their_group_when_another_replica_is_the_holder() -> None:
    route = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["route"]
    own = [child for child in route["routes"] if 'service="streamwatch"' in child["matchers"]]
    assert len(own) == 3
    for child in own:
        (of_holder,) = child["routes"]
        assert of_holder["matchers"] == ['service="streamwatch"', 'subject!="daemon"']
        assert set(of_holder["group_by"]) == {"service", "job", "namespace", "topic", "team"}
        assert "receiver" not in of_holder
    of_holders = {name for name, rule in alerts().items() if rule["expr"].endswith('{role="holder"} == 0')}
    assert of_holders == {name for name, rule in alerts().items() if rule["labels"]["subject"] != "daemon"}


@pytest.mark.parametrize(
    ("topic", "label", "of_models"),
    [
        ("PredictionTopicSilent", "topic", {"PredictionsStopped"}),
        ("LabelTopicSilent", "label_topic", {"LabelsStopped", "NothingJoins", "AccuracyDropped"}),
    ],
)
def test_a_silent_topic_inhibits_the_alerts_of_its_own_models(
    topic: str, label: str, of_models: set[str]
) -> None:
    assert of_models <= inhibited_by(topic)
    assert "Down" not in inhibited_by(topic)
    rules = [rule for rule in inhibit_rules() if f'alertname="{topic}"' in " ".join(rule["source_matchers"])]
    assert rules
    assert all(set(rule["equal"]) == {"job", "instance", label} for rule in rules)
    for name in of_models:
        assert re.search(rf"group_left \([^)]*\b{label}\b", alerts()[name]["expr"]), name


@pytest.mark.parametrize("name", sorted(alerts()))
def test_an_alert_on_a_model_carries_its_topics_and_its_team(name: str) -> None:
    rule = alerts()[name]
    if "$labels.model }}" not in rule["annotations"]["summary"]:
        pytest.skip("it is not about a model")
    joined = "* on (job, instance, model) group_left (team, topic, label_topic"
    of_model, of_replica = rule["expr"].rsplit(" unless ", 1)
    if name == "DriftAlarm":
        of_model = held_drifts()
    else:
        assert re.search(r"streamwatch_model_info\s*\)$", of_model)
    assert joined in of_model
    assert of_replica.strip() == 'on (job, instance) streamwatch_standby_role{role="holder"} == 0'


def test_stopped_labels_inhibit_the_quality_alerts_of_their_model() -> None:
    quality = {name for name, rule in alerts().items() if rule["labels"]["subject"] == "model"}
    assert {
        "ModelWorseThanPersistent",
        "ModelWorseThanMajority",
        "KappaPlusZero",
        "AccuracyDropped",
    } <= quality
    assert inhibited_by("LabelsStopped") == quality | {"ModelJoinRateLow"}  # it follows from it
    following = [
        rule for rule in inhibit_rules() if any("LabelsStopped" in m for m in rule["source_matchers"])
    ]
    assert following
    assert all(set(rule["equal"]) == {"job", "instance", "model"} for rule in following)


def test_what_the_daemon_reports_itself_inhibits_the_drifts_of_that_model_and_severity_only() -> None:
    assert inhibited_by("StreamwatchDrift") == {"DriftAlarm"}
    (rule,) = (
        rule for rule in inhibit_rules() if any("StreamwatchDrift" in m for m in rule["source_matchers"])
    )
    assert set(rule["equal"]) == {"model", "severity"}
    (sent,) = json.loads(Alertmanager().request_body(firing(), 0).body)
    assert {"alertname", *rule["equal"]} <= set(sent["labels"])
    labels = {exposed(family.name): family.labels for family in every_family()}
    assert set(rule["equal"]) <= set(labels[open_alarms()])


def test_nothing_inhibits_that_the_daemon_is_down() -> None:
    assert all("Down" not in inhibited_by(name) for name in alerts())
