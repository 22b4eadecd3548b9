"""Digests of many models, labels of models and retraining, in the words of each kind of receiver."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from streamwatch.core.alerting.notification import Gathered, Notification
from streamwatch.core.alerting.pacing import Pacing, PacingSpec
from streamwatch.edge.receivers import EndpointSpec
from streamwatch.edge.receivers.alertmanager import Alertmanager
from streamwatch.edge.receivers.http import HttpReceiver
from streamwatch.edge.receivers.pagerduty import PagerDuty
from streamwatch.edge.receivers.slack import Slack
from streamwatch.edge.receivers.texts import description, gathered_title, title
from streamwatch.edge.receivers.webhook import MAX_BYTES, Webhook
from tests.edge.receivers.notifications import NOW_MS, firing, judged, part

KEY = b"thirty-two bytes nobody may read"
LABELS = {"team": "payments", "tier": "gold"}
RUNBOOK = "https://wiki.example/fraud"


def labelled(**changes: object) -> Notification:
    return firing(labels=LABELS, runbook_url=RUNBOOK, **changes)


def digest(models: int, listed: int = 20) -> Notification:
    paced = Pacing(PacingSpec(0, 1, listed), ["r"], "state-1")
    for n in range(models):
        paced.take("r", labelled(name=f"f{n}", model=f"fraud-{n:03d}"), NOW_MS)
    (made,) = paced.release("r", NOW_MS, ())
    return made


def retraining() -> Notification:
    verdict = part(judged(), started_at_ms=NOW_MS - 86_400_000)
    return labelled(id="retraining_1", kind="retraining", parts=(verdict,), news=("verdict",))


def body(form: Any, notification: Notification) -> Any:
    return json.loads(form.request_body(notification, NOW_MS).body)


def test_ten_drifts_at_once_are_at_most_ten_lines_of_one_message() -> None:
    reported = digest(10)
    assert title(reported) == "10 models: 10 notifications at once (10 began)"
    lines = [line for line in description(reported).splitlines() if line.startswith("• ")]
    assert len(lines) == 10
    assert lines[3].startswith("• fraud-003 errs more: 10.0 % → 31.2 %")
    assert lines[3].endswith("(team=payments, tier=gold)")


def test_of_500_models_the_first_are_listed_and_all_are_counted() -> None:
    text = description(digest(500))
    assert text.count("• ") == 20
    assert "and 480 more; the page and the API have all." in text


def test_a_webhook_gets_ids_and_incidents_of_what_a_digest_lists() -> None:
    sent = body(Webhook([KEY]), digest(500))
    assert sent["type"] == "notifications.digest"
    reported = sent["data"]["digest"]
    assert (reported["notifications"], reported["models"], reported["firing"], reported["resolved"]) == (
        500,
        500,
        500,
        0,
    )
    first = reported["listed"][0]
    assert first["type"] == "drift.firing"
    assert (first["id"], first["incident"], first["model"]) == ("f0", "incident_of_fraud-000", "fraud-000")
    assert first["labels"] == LABELS
    assert "model" not in sent["data"]


def test_a_digest_for_a_webhook_is_halved_until_it_fits() -> None:
    form = Webhook([KEY])
    many = digest(500, listed=400)
    sent = form.request_body(many, NOW_MS).body
    assert len(sent) < MAX_BYTES
    assert json.loads(sent)["data"]["digest"]["notifications"] == 500


@pytest.mark.parametrize("form", [Slack(), PagerDuty("key"), Alertmanager(), Webhook([KEY])])
def test_every_kind_of_receiver_can_say_a_digest_and_retraining(form: Any) -> None:
    assert body(form, retraining())
    if not isinstance(form, Alertmanager):  # which is not paced
        assert "10 models" in json.dumps(body(form, digest(10)), ensure_ascii=False)


def test_labels_and_runbook_of_the_model_are_in_every_kind_of_message() -> None:
    data = body(Webhook([KEY]), labelled())["data"]
    assert (data["labels"], data["runbook_url"]) == (LABELS, RUNBOOK)
    details = body(PagerDuty("key"), labelled())["payload"]["custom_details"]
    assert (details["labels"], details["runbook_url"]) == (LABELS, RUNBOOK)
    (alert,) = body(Alertmanager(labels={"tier": "silver"}), labelled())
    assert alert["labels"]["team"] == "payments"
    assert alert["labels"]["tier"] == "silver", "what the receiver sets holds"
    assert alert["annotations"]["runbook_url"] == RUNBOOK
    assert f"team=payments, tier=gold · {RUNBOOK}" in json.dumps(
        body(Slack(), labelled()), ensure_ascii=False
    )


def test_a_message_without_labels_says_none() -> None:
    data = body(Webhook([KEY]), firing())["data"]
    assert (data["labels"], data["runbook_url"]) == ({}, None)
    assert "labels" not in body(PagerDuty("key"), firing())["payload"]["custom_details"]


def test_retraining_says_which_model_and_since_when() -> None:
    sent = body(Webhook([KEY]), retraining())
    assert sent["type"] == "model.retraining_due"
    assert (sent["data"]["model"], sent["data"]["labels"]) == ("fraud-v3", LABELS)
    assert sent["data"]["started_at"] == "2023-11-13T22:13:20.000Z"
    assert title(retraining()).startswith("Retraining of fraud-v3 is due: fraud-v3 ")
    assert title(retraining()).count("since") == 1
    event = body(PagerDuty("key"), retraining())
    assert event["dedup_key"] == "retraining_1", "it is no news of the incident, which has its own end"


def receiver(**changes: Any) -> HttpReceiver:
    return HttpReceiver(EndpointSpec("r", "http://127.0.0.1:9/", **changes), Webhook([KEY]))


def test_a_receiver_is_sent_what_it_is_for() -> None:
    assert receiver().wants(firing())
    assert not receiver().wants(retraining())
    pipeline = receiver(alarms=False, retraining=True)
    assert pipeline.wants(retraining())
    assert not pipeline.wants(firing())
    payments = receiver(matchers={"team": "payments"})
    assert payments.wants(labelled())
    assert not payments.wants(firing())
    assert not receiver(matchers={"team": "fraud"}).wants(labelled())
    assert payments.wants(digest(10)), "what is gathered of it was for it"
    critical = receiver(severities=frozenset({"critical"}))
    assert not critical.wants(digest(10))
    bad = msgspec.structs.replace(
        labelled(), parts=(part(judged(), severity="critical"),), severity="critical"
    )
    assert critical.wants(bad)


@pytest.mark.parametrize(
    ("firing", "resolved", "words"),
    [(2, 0, "2 began, 1 has news"), (1, 0, "1 began, 2 have news"), (0, 2, "1 has news, 2 are over")],
)
def test_a_digest_counts_in_the_singular_too(firing: int, resolved: int, words: str) -> None:
    gathered = Gathered(3, 1, firing, resolved, ())
    assert gathered_title(gathered) == f"1 model: 3 notifications at once ({words})"


def test_a_digest_of_digests_of_a_backlog_names_no_number_of_models() -> None:
    assert gathered_title(Gathered(2, 0, 0, 0, ())) == "2 notifications at once (2 have news)"
