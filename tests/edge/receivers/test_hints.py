"""What receivers are sent about an early hint: that it is no verdict, what changed, and its end."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from streamwatch.core.alerting.notification import Notification
from streamwatch.edge.receivers import EndpointSpec, HttpRequestBody
from streamwatch.edge.receivers.alertmanager import Alertmanager
from streamwatch.edge.receivers.http import HttpReceiver
from streamwatch.edge.receivers.pagerduty import PagerDuty
from streamwatch.edge.receivers.slack import Slack
from streamwatch.edge.receivers.texts import description, iso, look_first, title
from streamwatch.edge.receivers.webhook import Webhook
from tests.edge.receivers.notifications import NOW_MS, digest, firing, hint_over, hinted


def read(request: HttpRequestBody) -> Any:
    return json.loads(request.body)


HEAD = "Early hint, labels not yet in: fraud-v3"
MORE = f"{HEAD} predicts fraud more often, 10.0 % → 31.2 % of predictions"


@pytest.mark.parametrize(
    ("notification", "stated"),
    [
        (hinted(), MORE),
        (
            hinted(predicted_class=None),
            f"{HEAD} has lower scores of the class it predicts, 0.910 → 0.620",
        ),
        (hint_over(hinted()), "Early hint on fraud-v3 is over"),
        (msgspec.structs.replace(hinted(), test=True), f"Test: {MORE}"),
    ],
)
def test_a_title_says_that_it_is_a_hint_and_what_changed(notification: Notification, stated: str) -> None:
    assert title(notification) == stated


def test_sentences_say_since_when_that_it_is_no_verdict_and_what_to_look_at() -> None:
    stated = description(hinted(), "https://w.example")
    assert "This is an early hint, not a verdict" in stated
    assert "10.0 % → 31.2 % of predictions (given at 2023-11-14T22:13:15.000Z)" in stated
    assert "labels are not in yet" in stated
    assert stated.endswith("https://w.example/#/model/fraud-v3")
    assert look_first(hint_over(hinted()), "https://w.example") == ""
    assert "idle for a long time" in description(hint_over(hinted(), "model_retired"))


def test_a_webhook_has_a_type_of_its_own_and_the_figures() -> None:
    form = Webhook([b"k" * 16])
    begun = read(form.request_body(hinted(), NOW_MS))
    assert begun["type"] == "hint.firing"
    assert begun["data"]["hint"] == {
        "predicted_class": "fraud",
        "more": True,
        "before": 0.1,
        "now": 0.3125,
        "ordinal": 3,
        "reason": None,
    }
    assert (begun["data"]["model"], begun["data"]["started_at"], begun["data"]["ended_at"]) == (
        "fraud-v3",
        iso(NOW_MS - 5_000),
        None,
    )
    assert not {"alarms", "news", "class_shift", "segment", "digest"} & set(begun["data"])
    over = read(form.request_body(hint_over(hinted()), NOW_MS))
    assert (over["type"], over["data"]["incident"]) == ("hint.resolved", begun["data"]["incident"])
    assert (over["data"]["hint"]["reason"], over["data"]["ended_at"]) == (
        "no_longer_active",
        iso(NOW_MS + 60_000),
    )


def test_an_alert_has_a_name_of_its_own_and_ends_with_the_hint_or_unless_it_is_repeated() -> None:
    form = Alertmanager(60_000, {"team": "risk"})
    (begun,) = read(form.request_body(hinted(), NOW_MS))
    assert begun["labels"] == {
        "alertname": "StreamwatchEarlyHint",
        "model": "fraud-v3",
        "detector": "early_hint",
        "severity": "info",
        "team": "risk",
    }
    assert (begun["startsAt"], begun["endsAt"]) == (iso(NOW_MS - 5_000), iso(NOW_MS + 240_000))
    repeated = read(form.reminder([firing(), hinted()], NOW_MS + 60_000))
    assert [alert["labels"]["alertname"] for alert in repeated] == [
        "StreamwatchDrift",
        "StreamwatchEarlyHint",
    ]
    assert repeated[1]["endsAt"] == iso(NOW_MS + 300_000)
    (over,) = read(form.request_body(hint_over(hinted()), NOW_MS + 3_600_000))
    assert (over["labels"], over["endsAt"]) == (begun["labels"], iso(NOW_MS + 60_000))


def test_a_pager_is_triggered_and_resolved_under_one_key() -> None:
    form = PagerDuty("key")
    begun, over = (read(form.request_body(n, NOW_MS)) for n in (hinted(), hint_over(hinted())))
    assert (begun["event_action"], over["event_action"]) == ("trigger", "resolve")
    assert begun["dedup_key"] == over["dedup_key"]
    assert (begun["payload"]["class"], begun["payload"]["severity"]) == ("early hint", "info")
    assert begun["payload"]["custom_details"]["hint"]["now"] == 0.3125


@pytest.mark.parametrize(
    ("predicted_class", "shown"),
    [
        ("<fraud>", "Share of &lt;fraud&gt;: 10.0 % → 31.2 % of predictions"),
        (None, "Mean score: 0.910 → 0.620"),
    ],
)
def test_a_chat_has_the_figures_and_another_sign_than_an_alarm(
    predicted_class: str | None, shown: str
) -> None:
    begun = read(Slack().request_body(hinted(predicted_class=predicted_class), NOW_MS))
    assert begun["text"].startswith("🟡 Early hint")
    assert shown in [field["text"] for block in begun["blocks"] for field in block.get("fields", ())]
    assert read(Slack().request_body(hint_over(hinted()), NOW_MS))["text"].startswith("🟢 ")


def test_receivers_of_other_severities_are_not_notified() -> None:
    def wants(severity: str, notification: Notification) -> bool:
        spec = EndpointSpec("r", "https://r.example", severities=frozenset({severity}))  # type: ignore[arg-type]
        return HttpReceiver(spec, Slack()).wants(notification)

    assert wants("info", hinted())
    assert not wants("warning", hinted())
    assert wants("error", digest())
