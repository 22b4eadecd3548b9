"""The `models` section: what its rules mean, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamwatch.assembly.alerts import alarms_spec, build_pacing, model_labels
from streamwatch.settings import Settings, SettingsError, load
from tests.edge.receivers.notifications import firing, resolved

MINIMAL = "kafka: {bootstrap_servers: b:9092}\ntopics: {predictions: p, labels: l}\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str) -> Settings:
    Path("streamwatch.yaml").write_text(MINIMAL + text)
    return load(Path("streamwatch.yaml"), environ={})


def test_rules_give_labels_severity_and_runbook_by_pattern() -> None:
    settings = read(
        "models: {rules: [{model: 'fraud-*', labels: {team: payments}, severity: critical, "
        "runbook_url: 'https://wiki.example/fraud'}, {labels: {team: platform, env: prod}}]}"
    )
    labels = model_labels(settings)
    assert labels.of("fraud-v1") == (
        {"env": "prod", "team": "payments"},
        "critical",
        "https://wiki.example/fraud",
    )
    assert labels.names == ("env", "team")
    assert alarms_spec(settings).rule("fraud-v1", "adwin").severity == "critical"
    assert alarms_spec(settings).rule("loan", "adwin").severity == "warning"


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        ("{labels: {model: x}}", "label 'model' is reserved"),
        ("{labels: {topic: x}}", "label 'topic' is reserved"),
        ("{labels: {'a-b': x}}", "expected label names of letters, digits and _"),
        ("{labels: {__name__: x}}", "expected label names of letters, digits and _"),
        ("{labels: {team: ''}}", "expected 1 to 128 bytes of printable text for label 'team'"),
        ("{severity: loud}", "expected one of info, warning, error, critical, got 'loud'"),
        (
            "{runbook_url: wiki}",
            "expected a URL such as https://wiki.example.com/models, got a text (not shown)",
        ),
        ("{match: 'fraud-*'}", "unknown key"),
    ],
)
def test_what_is_wrong_is_stated_with_its_key(rule: str, shown: str) -> None:
    with pytest.raises(SettingsError, match=r"models\.rules") as complained:
        read(f"models: {{rules: [{rule}]}}")
    assert shown in str(complained.value)


def test_receivers_but_alertmanager_are_paced() -> None:
    settings = read(
        "alerts: {group_wait: 5s, max_per_minute: 3, receivers: ["
        "{name: am, type: alertmanager, url: 'http://127.0.0.1:9093'}, "
        "{name: chat, type: slack, url: 'http://127.0.0.1:9/x'}]}"
    )
    assert list(build_pacing(settings, "state-1").receivers) == ["chat"]


def test_only_a_pager_is_sent_each_end_by_itself() -> None:
    settings = read(
        "alerts: {receivers: [{name: pager, type: pagerduty, routing_key: k}, "
        "{name: chat, type: slack, url: 'http://127.0.0.1:9/x'}]}"
    )
    pacing, begun, end = build_pacing(settings, "state-1"), firing(), resolved(firing())
    assert [pacing.paces(name, begun) for name in ("pager", "chat")] == [True, True]
    assert [pacing.paces(name, end) for name in ("pager", "chat")] == [False, True]


@pytest.mark.parametrize(
    ("alerts", "shown"),
    [
        (
            "receivers: [{name: ci, type: slack, url: 'http://127.0.0.1:9/', events: [retraining]}]",
            "receiver 'ci' with events: [retraining] needs retraining_after",
        ),
        (
            "receivers: [{name: a, type: alertmanager, url: 'http://h', events: retraining}]",
            "type alertmanager is sent alarms only",
        ),
        (
            "receivers: [{name: ci, type: slack, url: 'http://127.0.0.1:9/', events: [births]}]",
            "expected one of alarms, retraining, comparisons, digest, got 'births'",
        ),
        (
            "receivers: [{name: a, type: alertmanager, url: 'http://h', events: [alarms, digest]}]",
            "alerts.receivers[0] in streamwatch.yaml: type alertmanager is sent what begins and ends, digest",
        ),
        (
            "receivers: [{name: p, type: pagerduty, routing_key: k, events: digest}]",
            "alerts.receivers[0] in streamwatch.yaml: type pagerduty is sent what begins and ends",
        ),
        (
            "receivers: [{name: s, type: slack, url: 'http://h', events: digest, severities: critical}]",
            "alerts.receivers[0] in streamwatch.yaml: events: [digest] needs the severity info, which",
        ),
        ("digest: {every: 10m}", "alerts.digest.every in streamwatch.yaml: must be 1h to 31d, got 10m"),
        ("digest: {every: 32d}", "alerts.digest.every in streamwatch.yaml: must be 1h to 31d, got 32d"),
    ],
)
def test_events_of_receivers_that_cannot_be_are_refused(alerts: str, shown: str) -> None:
    with pytest.raises(SettingsError) as complained:
        read(f"alerts: {{{alerts}}}")
    assert shown in str(complained.value)
