"""The `alerts` section: what it means, what is wrong with it, and that it keeps its secrets."""

# ruff: noqa: E501  # exact texts are the interface

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamwatch.assembly.alerts import alarms_spec, build_alarm_book, build_deliveries, build_receivers
from streamwatch.core.alerting.notification import SEVERITIES
from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec, FleetDigestSpec
from streamwatch.daemon.deliveries import DeliverySpec
from streamwatch.edge.receivers import KINDS
from streamwatch.edge.receivers.webhook import key_of
from streamwatch.settings import Settings, SettingsError, example, json_schema, load
from streamwatch.telemetry import Telemetry
from tests.edge.receivers.endpoint import endpoint
from tests.edge.receivers.notifications import NOW_MS, alarm, firing, part, updated

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
        build_receivers(read(alerts))
    return str(caught.value)


def test_without_receivers_alarms_live_and_nobody_is_notified() -> None:
    settings = read("{}")
    assert build_receivers(settings) == []
    assert alarms_spec(settings) == AlarmsSpec(), "the defaults of the file are those of the core"
    deliveries = build_deliveries(settings, Telemetry())
    assert deliveries.record(firing()) is None
    assert settings.alerts.give_up_after == DeliverySpec().give_up_after_ms
    assert settings.alerts.max_pending == DeliverySpec().max_pending
    assert build_alarm_book(settings, "state-1").open_incidents() == []


def test_rules_inherit_what_they_do_not_say() -> None:
    spec = alarms_spec(
        read(
            "{severity: info, cooldown: 5m, min_outcomes: 7, rules: ["
            "{model: fraud-*, severity: critical}, {detector: adwin, cooldown: 1h, min_outcomes: 0}]}"
        )
    )
    assert spec.rules == (
        AlarmRule("*", "fraud-*", "critical", 300_000, 7, severity_given=True),
        AlarmRule("adwin", "*", "info", 3_600_000, 0),
    )
    assert spec.otherwise == AlarmRule("*", "*", "info", 300_000, 7)


async def test_each_type_of_receiver_is_notified_in_its_own_words() -> None:
    async with endpoint() as server:
        base = server.url.removesuffix("/hook")
        settings = read(
            f"""
  external_url: https://watch.example.com
  receivers:
    - {{name: hook, type: webhook, url: '{base}/hook', secrets: [{KEY}, {KEY}]}}
    - {{name: am, type: alertmanager, url: '{base}/am/', repeat_interval: 30s, labels: {{team: risk}}}}
    - {{name: am2, type: alertmanager, url: '{base}/api/v2/alerts'}}
    - {{name: chat, type: slack, url: '{base}/services/T0', severities: 'critical, error'}}
    - {{name: pager, type: pagerduty, url: '{base}/enqueue', routing_key: R0UTING}}
"""
        )
        receivers = build_receivers(settings)
        for receiver in receivers:
            await receiver.open()
            await receiver.deliver(firing(), NOW_MS)
            await receiver.close()
        posts = {post.path: post for post in server.posts}
    assert list(posts) == ["/hook", "/am/api/v2/alerts", "/api/v2/alerts", "/services/T0", "/enqueue"]
    assert posts["/hook"].headers["webhook-signature"].count("v1,") == 2
    assert posts["/am/api/v2/alerts"].json[0]["labels"]["team"] == "risk"
    assert posts["/am/api/v2/alerts"].json[0]["generatorURL"] == "https://watch.example.com/#/model/fraud-v3"
    assert posts["/enqueue"].json["routing_key"] == "R0UTING"
    assert [receiver.repeat_interval_seconds for receiver in receivers] == [None, 30.0, 60.0, None, None]
    assert [o.name for o in receivers if not o.wants(firing())] == ["chat"]
    critical = updated(firing(), part(alarm(detector="adwin"), severity="critical"))
    assert [o.name for o in receivers if o.wants(critical)] == [o.name for o in receivers]


def test_pagerduty_is_where_it_always_is() -> None:
    (receiver,) = build_receivers(read("{receivers: [{name: p, type: pagerduty, routing_key: R0UTING}]}"))
    assert receiver.host == "events.pagerduty.com"


def test_secrets_come_from_files_without_the_newline(folder: Path) -> None:
    (folder / "url").write_text("https://hooks.example.com/SECRET\n")
    (folder / "key").write_text(KEY + "\n")
    settings = read("{receivers: [{name: h, type: webhook, url_file: url, secrets_files: [key]}]}")
    (key,) = KINDS["webhook"].keys
    assert settings.alerts.receivers[0].read_own(key) == [key_of(KEY)]
    assert build_receivers(settings)[0].host == "hooks.example.com"


def test_secrets_are_not_part_of_what_is_printed_of_the_settings() -> None:
    settings = read(f"{{receivers: [{{{HOOK}}}, {{name: p, type: pagerduty, routing_key: SECRET}}]}}")
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
            "STREAMWATCH__ALERTS__RECEIVERS": f"[{{{HOOK}}}]",
            "STREAMWATCH__ALERTS__COOLDOWN": "1h",
        },
    )
    assert settings.alerts.cooldown == 3_600_000
    assert build_receivers(settings)[0].name == "hook"


@pytest.mark.parametrize(
    ("alerts", "line"),
    [
        (
            "{receivers: [{name: a, type: webhook, secrets: [x]}]}",
            "alerts.receivers[0] in streamwatch.yaml: type webhook needs url or url_file",
        ),
        (
            "{receivers: [{name: a, type: webhook, url: 'http://SECRET'}]}",
            "alerts.receivers[0] in streamwatch.yaml: type webhook needs secrets or secrets_files; `openssl rand -base64 32` makes one",
        ),
        (
            "{receivers: [{name: a, type: webhook, url: 'http://SECRET', secrets: [SECRET!]}]}",
            "alerts.receivers[0].secrets[0]: expected whsec_ and base64 (not shown)",
        ),
        (
            "{receivers: [{name: a, type: webhook, url: 'http://SECRET', secrets: [AAAA]}]}",
            "alerts.receivers[0].secrets[0]: expected at least 16 bytes in base64, got 3 (not shown)",
        ),
        (
            "{receivers: [{name: a, type: slack, url: 'hooks.example.com/SECRET'}]}",
            "alerts.receivers[0].url: expected http://… or https://… with a host (not shown)",
        ),
        (
            "{receivers: [{name: a, type: slack, url: 12345}]}",
            "alerts.receivers[0].url in streamwatch.yaml: expected a text (not shown)",
        ),
        (
            "{receivers: [{name: a, type: alertmanager, url: 'http://169.254.169.254/SECRET'}]}",
            "alerts.receivers[0].url: 169.254.169.254 is a link-local address, which is never spoken to",
        ),
        (
            "{receivers: [{name: a, type: pagerduty}]}",
            "alerts.receivers[0] in streamwatch.yaml: type pagerduty needs routing_key or routing_key_file",
        ),
        (
            "{receivers: [{name: a, type: slack, url: 'http://SECRET', repeat_interval: 5s}]}",
            "alerts.receivers[0] in streamwatch.yaml: repeat_interval is for receivers of type alertmanager, this one is slack",
        ),
        (
            "{receivers: [{name: a, type: email}]}",
            f"alerts.receivers[0].type in streamwatch.yaml: expected one of {', '.join(KINDS)}, got 'email'",
        ),
        (
            f"{{receivers: [{{{HOOK}}}, {{{HOOK}}}]}}",
            "alerts in streamwatch.yaml: two receivers are named 'hook'",
        ),
        (
            "{receivers: [{name: a, type: slack, url: 'http://SECRET', severities: [loud]}]}",
            "alerts.receivers[0].severities[0] in streamwatch.yaml: expected one of info, warning, error, critical, got 'loud'",
        ),
        (
            "{receivers: [{name: a, type: slack, url: 'http://SECRET', severities: []}]}",
            "alerts.receivers[0].severities in streamwatch.yaml: must not be empty",
        ),
        (
            "{receivers: [{name: a, type: alertmanager, url: 'http://SECRET', labels: {severity: x}}]}",
            "alerts.receivers[0].labels in streamwatch.yaml: label 'severity' is reserved: alerts set it themselves",
        ),
        (
            "{receivers: [{name: a, type: slack, uri: 'http://SECRET'}]}",
            "alerts.receivers[0].uri in streamwatch.yaml: unknown key; did you mean 'url'?",
        ),
        (
            "{receivers: [{name: a, type: slack, url_file: nowhere}]}",
            "alerts.receivers[0].url_file in streamwatch.yaml: cannot read what is named there (not shown): No such file or directory",
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
def test_a_fault_is_named_with_its_path_and_what_was_expected(alerts: str, line: str) -> None:
    assert line in complaint(alerts).splitlines()
    assert "SECRET" not in complaint(alerts)


def test_a_rule_about_no_configured_detector_is_a_fault() -> None:
    with pytest.raises(SettingsError) as caught:
        alarms_spec(read("{rules: [{detector: '*'}, {detector: page_hinkly}]}"))
    assert str(caught.value) == (
        "alerts.rules[1].detector: expected a pattern of page_hinkley, adwin, verdict, got 'page_hinkly'"
    )


def test_a_rule_can_be_about_the_verdict() -> None:
    spec = alarms_spec(read("{rules: [{detector: verdict, severity: critical}], incident_outcomes: 500}"))
    assert [spec.rule("m", name).severity for name in ("verdict", "adwin")] == ["critical", "warning"]
    assert spec.incident_outcomes == 500


COMPARED = (
    f"{{receivers: [{{{HOOK}, events: [comparisons]}}], rules: [{{detector: comparison, severity: info}}]}}"
)


def test_a_receiver_of_comparisons_needs_some_and_rules_may_then_be_about_them() -> None:
    with pytest.raises(
        SettingsError, match=r"alerts\.receivers\[0\]\.events: comparisons needs monitors\.compari"
    ):
        alarms_spec(read(COMPARED))
    compared = read(f"{COMPARED}\nmonitors: {{comparisons: [{{champion: a, challengers: [b]}}]}}")
    assert alarms_spec(compared).rule("b", "comparison").severity == "info"
    assert [receiver.wants(firing()) for receiver in build_receivers(compared)] == [False]


def test_digests_are_made_where_a_receiver_wants_them() -> None:
    wanted = alarms_spec(
        read(
            f"{{receivers: [{{{HOOK}, events: [alarms, digest]}}], digest_size: 7, "
            "digest: {every: 12h, send_empty: true}}"
        )
    )
    assert wanted.fleet_digest == FleetDigestSpec(43_200_000, 7, send_empty=True)
    daily = read(f"{{receivers: [{{{HOOK}, events: digest}}]}}")
    assert alarms_spec(daily).fleet_digest == FleetDigestSpec()
    assert [receiver.wants(firing()) for receiver in build_receivers(daily)] == [False]
    assert alarms_spec(read("{digest: {every: 12h}}")).fleet_digest is None


@pytest.mark.parametrize(
    ("others", "stated"),
    [
        ("monitors: {cohort_verdicts: false}", r"digest needs monitors\.cohort_verdicts"),
        ("join: {order: prediction_time}", r"digest needs join\.order: resolution"),
    ],
)
def test_digests_need_verdicts_by_cohorts(others: str, stated: str) -> None:
    with pytest.raises(SettingsError, match=rf"alerts\.receivers\[0\]\.events: {stated}"):
        alarms_spec(read(f"{{receivers: [{{{HOOK}, events: digest}}]}}\n{others}"))


def test_a_file_of_authorities_that_holds_none_is_a_fault(folder: Path) -> None:
    (folder / "ca.pem").write_text("not PEM")
    stated = complaint("{receivers: [{name: a, type: slack, url: 'https://a', ca_file: ca.pem}]}")
    assert stated == "alerts.receivers[0].ca_file: expected PEM certificates in ca.pem"


def test_the_example_explains_and_the_schema_describes_every_key() -> None:
    text = example()
    for key in (
        "receivers",
        "rules",
        "cooldown",
        "resolve_timeout",
        "stale_after",
        "give_up_after",
        "external_url",
    ):
        assert f"{key}:" in text
    definitions = json_schema()["$defs"]
    assert definitions["ReceiverSection"]["properties"]["type"]["enum"][0] == "webhook"
    for section in ("ReceiverSection", "RuleSection", "AlertsSection"):
        assert all("description" in key for key in definitions[section]["properties"].values()), section
    assert SEVERITIES == ("info", "warning", "error", "critical")
