"""What receivers are sent about a challenger: which model is better, since when, how sure it is, its end."""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec
import pytest

from streamwatch.core.alerting.notification import Notification, NotifiedComparison
from streamwatch.edge.receivers import EndpointSpec, HttpRequestBody
from streamwatch.edge.receivers.alertmanager import Alertmanager
from streamwatch.edge.receivers.http import HttpReceiver
from streamwatch.edge.receivers.pagerduty import PagerDuty
from streamwatch.edge.receivers.slack import Slack
from streamwatch.edge.receivers.texts import description, iso, link, title
from streamwatch.edge.receivers.webhook import Webhook
from tests.edge.receivers.notifications import NOW_MS, firing


def read(request: HttpRequestBody) -> Any:
    return json.loads(request.body)


def reported(
    kind: Literal["firing", "updated", "resolved"] = "firing", verdict: int = 1, **changes: Any
) -> Notification:
    made = NotifiedComparison("old", "new<1>", verdict, NOW_MS - 3_600_000, NOW_MS, "cohorts", "early")
    if kind == "resolved":
        changes = {"ended_at_ms": NOW_MS + 60_000, "reason": "retracted", **changes}
    return Notification(
        f"{kind}_1", kind, "info", NOW_MS, "incident_1", comparison=msgspec.structs.replace(made, **changes)
    )


SINCE = "2023-11-14T21:13Z"


@pytest.mark.parametrize(
    ("notification", "shown"),
    [
        (reported(), f"Challenger new<1> is better than champion old since {SINCE} (early)"),
        (reported(verdict=-1), f"Challenger new<1> is worse than champion old since {SINCE} (early)"),
        (
            reported("updated", status="confirmed"),
            f"Update: Challenger new<1> is better than champion old since {SINCE} (confirmed)",
        ),
        (reported(basis="labels", status=""), f"Challenger new<1> is better than champion old since {SINCE}"),
        (reported("resolved"), "No longer shown that new<1> is better than old"),
        (
            reported(utility="costs"),
            f"Challenger new<1> is better than champion old by costs since {SINCE} (early)",
        ),
        (reported("resolved", utility="costs"), "No longer shown that new<1> is better than old by costs"),
    ],
)
def test_a_title_says_which_model_is_better_and_since_when(notification: Notification, shown: str) -> None:
    assert title(notification) == shown


@pytest.mark.parametrize(
    ("notification", "part"),
    [
        (reported(), "by cohorts of prediction time, and early"),
        (reported(status="confirmed"), "and confirmed: all labels"),
        (reported(basis="labels", status=""), "by the order of labels"),
        (reported("resolved"), "it was early, and was not confirmed"),
        (reported("resolved", reason="no_longer_compared"), "no longer compared"),
    ],
)
def test_sentences_say_what_it_rests_on(notification: Notification, part: str) -> None:
    shown = description(notification, "https://w.example")
    assert part in shown
    assert shown.endswith("https://w.example/#/comparisons") == (notification.kind != "resolved")


def test_its_link_is_the_page_of_comparisons() -> None:
    assert link("https://w.example/x", reported()) == "https://w.example/x#/comparisons"


def test_a_webhook_has_a_type_of_its_own_and_who_is_better() -> None:
    form = Webhook([b"k" * 16])
    begun = read(form.request_body(reported(), NOW_MS))
    assert begun["type"] == "comparison.firing"
    assert begun["data"]["comparison"] == {
        "champion": "old",
        "challenger": "new<1>",
        "verdict": "better",
        "since": iso(NOW_MS - 3_600_000),
        "basis": "cohorts",
        "utility": "accuracy",
        "status": "early",
        "reason": None,
    }
    assert begun["data"]["model"] == "new<1>"
    over = read(form.request_body(reported("resolved"), NOW_MS))
    assert (over["type"], over["data"]["comparison"]["reason"]) == ("comparison.resolved", "retracted")


def test_an_alert_is_of_a_pair_and_is_repeated_while_the_verdict_holds() -> None:
    form = Alertmanager(60_000, {"team": "risk"})
    (alert,) = read(form.request_body(reported(), NOW_MS))
    assert alert["labels"] == {
        "alertname": "StreamwatchComparison",
        "severity": "info",
        "model": "new<1>",
        "champion": "old",
        "detector": "comparison",
        "team": "risk",
    }
    assert alert["annotations"]["verdict"] == "better"
    reminded = read(form.reminder([reported(), firing()], NOW_MS))
    assert {each["labels"]["alertname"] for each in reminded} == {"StreamwatchComparison", "StreamwatchDrift"}
    (over,) = read(form.request_body(reported("resolved"), NOW_MS + 60_000))
    assert over["labels"] == alert["labels"]
    assert over["endsAt"] == iso(NOW_MS + 60_000)


def test_slack_and_pagerduty_name_both_models() -> None:
    blocks = read(Slack().request_body(reported(), NOW_MS))["blocks"]
    assert blocks[0]["text"]["text"].startswith("🏆 Challenger new&lt;1&gt;")
    fields = [field["text"] for block in blocks for field in block.get("fields", ())]
    assert fields == ["Challenger: new&lt;1&gt;", "Champion: old", "Verdict: by cohorts, early"]
    event = read(PagerDuty("k").request_body(reported(), NOW_MS))
    assert event["payload"]["class"] == "comparison"
    assert event["payload"]["custom_details"]["comparison"]["champion"] == "old"
    assert read(PagerDuty("k").request_body(reported("resolved"), NOW_MS))["dedup_key"] == event["dedup_key"]


@pytest.mark.parametrize(("comparisons", "alarms"), [(True, False), (False, True), (True, True)])
def test_it_goes_to_those_who_wait_for_comparisons(comparisons: bool, alarms: bool) -> None:  # noqa: FBT001
    spec = EndpointSpec("r", "http://127.0.0.1:9", alarms=alarms, comparisons=comparisons)
    receiver = HttpReceiver(spec, Webhook([b"k" * 16]))
    assert receiver.wants(reported()) == comparisons
    assert receiver.wants(firing()) == alarms
