"""The `alerts` section: what it means, what is wrong with it, and that it keeps its secrets."""

# ruff: noqa: E501  # exact texts are the interface

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamwatch.assembly.alerts import (
    alarms_spec,
    build_alarm_book,
    build_deliveries,
    build_outlets,
)
from streamwatch.core.alarm_rules import AlarmRule, AlarmsSpec
from streamwatch.core.notices import SEVERITIES
from streamwatch.daemon.lane import DeliverySpec
from streamwatch.settings import Settings, SettingsError, example, json_schema, load
from streamwatch.telemetry import Telemetry
from tests.edge.notifiers.endpoint import endpoint
from tests.edge.notifiers.notices import NOW_MS, firing

MINIMAL = "kafka: {bootstrap_servers: 'localhost:9092'}\ntopics: {predictions: predictions, labels: labels}\n"
KEY = "whsec_c2l4dGVlbiBieXRlcyBvciBtb3Jl"
HOOK = f"name: hook, type: webhook, url: 'https://hooks.example.com/SECRET', secrets: [{KEY}]"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(alerts: str, **environ: str) -> Settings:
    Path("streamwatch.yaml").write_text(f"{MINIMAL}alerts: {alerts}\n")
    return load(Path("streamwatch.yaml"), environ=environ)


def complaint(alerts: str) -> str:
    with pytest.raises(SettingsError) as caught:
        build_outlets(read(alerts))
    return str(caught.value)


def test_without_outlets_alarms_live_and_nobody_is_told() -> None:
    settings = read("{}")
    assert build_outlets(settings) == []
    assert alarms_spec(settings) == AlarmsSpec(), "the defaults of the file are those of the core"
    deliveries = build_deliveries(settings, Telemetry())
    assert deliveries.record(firing()) is None
    assert settings.alerts.give_up_after == DeliverySpec().give_up_after_ms
    assert settings.alerts.max_pending == DeliverySpec().max_pending
    assert build_alarm_book(settings, "state-1").standing() == []


def test_rules_inherit_what_they_do_not_say() -> None:
    spec = alarms_spec(
        read(
            "{severity: info, cooldown: 5m, min_outcomes: 7, rules: ["
            "{model: fraud-*, severity: critical}, {detector: adwin, cooldown: 1h, min_outcomes: 0}]}"
        )
    )
    assert spec.rules == (
        AlarmRule("*", "fraud-*", "critical", 300_000, 7),
        AlarmRule("adwin", "*", "info", 3_600_000, 0),
    )
    assert spec.otherwise == AlarmRule("*", "*", "info", 300_000, 7)


async def test_each_type_of_outlet_is_told_in_its_own_words() -> None:
    async with endpoint() as receiver:
        base = receiver.url.removesuffix("/hook")
        settings = read(
            f"""
  external_url: https://watch.example.com
  outlets:
    - {{name: hook, type: webhook, url: '{base}/hook', secrets: [{KEY}, {KEY}]}}
    - {{name: am, type: alertmanager, url: '{base}/am/', repeat: 30s, labels: {{team: risk}}}}
    - {{name: am2, type: alertmanager, url: '{base}/api/v2/alerts'}}
    - {{name: chat, type: slack, url: '{base}/services/T0', severities: 'critical, error'}}
    - {{name: pager, type: pagerduty, url: '{base}/enqueue', routing_key: R0UTING}}
"""
        )
        outlets = build_outlets(settings)
        for outlet in outlets:
            await outlet.open()
            await outlet.deliver(firing(), NOW_MS)
            await outlet.close()
        posts = {post.path: post for post in receiver.posts}
    assert list(posts) == ["/hook", "/am/api/v2/alerts", "/api/v2/alerts", "/services/T0", "/enqueue"]
    assert posts["/hook"].headers["webhook-signature"].count("v1,") == 2
    assert posts["/am/api/v2/alerts"].json[0]["labels"]["team"] == "risk"
    assert posts["/am/api/v2/alerts"].json[0]["generatorURL"] == "https://watch.example.com"
    assert posts["/enqueue"].json["routing_key"] == "R0UTING"
    assert [outlet.repeat_seconds for outlet in outlets] == [None, 30.0, 60.0, None, None]
    assert [o.name for o in outlets if not o.wants(firing())] == ["chat"]
    assert [o.name for o in outlets if o.wants(firing(severity="critical"))] == [o.name for o in outlets]


def test_pagerduty_is_where_it_always_is() -> None:
    (outlet,) = build_outlets(read("{outlets: [{name: p, type: pagerduty, routing_key: R0UTING}]}"))
    assert outlet.host == "events.pagerduty.com"


def test_secrets_come_from_files_without_the_newline(folder: Path) -> None:
    (folder / "url").write_text("https://hooks.example.com/SECRET\n")
    (folder / "key").write_text(KEY + "\n")
    settings = read("{outlets: [{name: h, type: webhook, url_file: url, secrets_files: [key]}]}")
    assert settings.alerts.outlets[0].read_secrets() == [KEY]
    assert build_outlets(settings)[0].host == "hooks.example.com"


def test_secrets_are_not_part_of_what_is_printed_of_the_settings() -> None:
    settings = read(f"{{outlets: [{{{HOOK}}}, {{name: p, type: pagerduty, routing_key: SECRET}}]}}")
    shown = repr(settings) + str(settings) + json.dumps(settings.model_dump(mode="json"))
    assert "SECRET" not in shown
    assert KEY not in shown


def test_everything_can_come_from_the_environment() -> None:
    settings = load(
        None,
        environ={
            "STREAMWATCH__KAFKA__BOOTSTRAP_SERVERS": "a:1",
            "STREAMWATCH__TOPICS__PREDICTIONS": "p",
            "STREAMWATCH__TOPICS__LABELS": "l",
            "STREAMWATCH__ALERTS__OUTLETS": f"[{{{HOOK}}}]",
            "STREAMWATCH__ALERTS__COOLDOWN": "1h",
        },
    )
    assert settings.alerts.cooldown == 3_600_000
    assert build_outlets(settings)[0].name == "hook"


@pytest.mark.parametrize(
    ("alerts", "line"),
    [
        (
            "{outlets: [{name: a, type: webhook, secrets: [x]}]}",
            "alerts.outlets[0] in streamwatch.yaml: type webhook needs url or url_file",
        ),
        (
            "{outlets: [{name: a, type: webhook, url: 'http://SECRET'}]}",
            "alerts.outlets[0] in streamwatch.yaml: type webhook needs secrets or secrets_files; `openssl rand -base64 32` makes one",
        ),
        (
            "{outlets: [{name: a, type: webhook, url: 'http://SECRET', secrets: [SECRET!]}]}",
            "alerts.outlets[0].secrets[0]: expected whsec_ and base64 (not shown)",
        ),
        (
            "{outlets: [{name: a, type: webhook, url: 'http://SECRET', secrets: [AAAA]}]}",
            "alerts.outlets[0].secrets[0]: expected at least 16 bytes in base64, got 3 (not shown)",
        ),
        (
            "{outlets: [{name: a, type: slack, url: 'hooks.example.com/SECRET'}]}",
            "alerts.outlets[0].url: expected http://… or https://… with a host (not shown)",
        ),
        (
            "{outlets: [{name: a, type: slack, url: 12345}]}",
            "alerts.outlets[0].url in streamwatch.yaml: expected a text (not shown)",
        ),
        (
            "{outlets: [{name: a, type: alertmanager, url: 'http://169.254.169.254/SECRET'}]}",
            "alerts.outlets[0].url: 169.254.169.254 is a link-local address, which is never spoken to",
        ),
        (
            "{outlets: [{name: a, type: pagerduty}]}",
            "alerts.outlets[0] in streamwatch.yaml: type pagerduty needs routing_key or routing_key_file",
        ),
        (
            "{outlets: [{name: a, type: slack, url: 'http://SECRET', repeat: 5s}]}",
            "alerts.outlets[0] in streamwatch.yaml: repeat is for outlets of type alertmanager, this one is slack",
        ),
        (
            "{outlets: [{name: a, type: email}]}",
            "alerts.outlets[0].type in streamwatch.yaml: expected one of webhook, alertmanager, slack, pagerduty, got 'email'",
        ),
        (
            f"{{outlets: [{{{HOOK}}}, {{{HOOK}}}]}}",
            "alerts in streamwatch.yaml: two outlets are named 'hook'",
        ),
        (
            "{outlets: [{name: a, type: slack, url: 'http://SECRET', severities: [loud]}]}",
            "alerts.outlets[0].severities[0] in streamwatch.yaml: expected one of info, warning, error, critical, got 'loud'",
        ),
        (
            "{outlets: [{name: a, type: alertmanager, url: 'http://SECRET', labels: {severity: x}}]}",
            "alerts.outlets[0].labels in streamwatch.yaml: label 'severity' is set by the alarm itself",
        ),
        (
            "{outlets: [{name: a, type: slack, uri: 'http://SECRET'}]}",
            "alerts.outlets[0].uri in streamwatch.yaml: unknown key; did you mean 'url'?",
        ),
        (
            "{outlets: [{name: a, type: slack, url_file: nowhere}]}",
            "alerts.outlets[0].url_file in streamwatch.yaml: cannot read nowhere: No such file or directory",
        ),
        (
            "{rules: [{severty: critical}]}",
            "alerts.rules[0].severty in streamwatch.yaml: unknown key; did you mean 'severity'?",
        ),
        (
            "{cooldown: 10}",
            "alerts.cooldown in streamwatch.yaml: expected a duration such as 30s, 14d or 1h30m, got 10",
        ),
        (
            "{external_url: watch.example.com}",
            "alerts.external_url in streamwatch.yaml: expected a URL such as https://streamwatch.example.com, got 'watch.example.com'",
        ),
    ],
)
def test_a_fault_is_named_with_its_place_and_what_was_expected(alerts: str, line: str) -> None:
    assert line in complaint(alerts).splitlines()
    assert "SECRET" not in complaint(alerts)


def test_a_rule_about_no_configured_detector_is_a_fault() -> None:
    with pytest.raises(SettingsError) as caught:
        alarms_spec(read("{rules: [{detector: '*'}, {detector: page_hinkly}]}"))
    assert str(caught.value) == (
        "alerts.rules[1].detector: expected a pattern of page_hinkley, adwin, got 'page_hinkly'"
    )


def test_a_file_of_authorities_that_holds_none_is_a_fault(folder: Path) -> None:
    (folder / "ca.pem").write_text("not PEM")
    said = complaint("{outlets: [{name: a, type: slack, url: 'https://a', ca_file: ca.pem}]}")
    assert said == "alerts.outlets[0].ca_file: expected PEM certificates in ca.pem"


def test_the_example_explains_and_the_schema_describes_every_key() -> None:
    text = example()
    for key in (
        "outlets",
        "rules",
        "cooldown",
        "alarm_ttl",
        "max_alarm_age",
        "give_up_after",
        "external_url",
    ):
        assert f"{key}:" in text
    definitions = json_schema()["$defs"]
    assert definitions["OutletSection"]["properties"]["type"]["enum"][0] == "webhook"
    for section in ("OutletSection", "RuleSection", "AlertsSection"):
        assert all("description" in key for key in definitions[section]["properties"].values()), section
    assert SEVERITIES == ("info", "warning", "error", "critical")
