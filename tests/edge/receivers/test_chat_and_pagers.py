"""Requests to Alertmanager, Slack and PagerDuty."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from streamwatch.core.alerting.notification import Gathered, Notification
from streamwatch.core.estimators.notifying.class_shift import ClassShift, Moved
from streamwatch.core.estimators.registers.segments import SegmentChange
from streamwatch.edge.receivers import HttpRequestBody, slack
from streamwatch.edge.receivers.alertmanager import Alertmanager
from streamwatch.edge.receivers.pagerduty import PagerDuty
from streamwatch.edge.receivers.slack import Slack
from streamwatch.edge.receivers.texts import description, iso, link, title
from streamwatch.edge.receivers.webhook import Webhook
from tests.edge.receivers.notifications import NOW_MS, alarm, digest, firing, judged, part, resolved, updated


def read(request: HttpRequestBody) -> Any:
    return json.loads(request.body)


def test_an_alert_is_distinguished_by_labels_that_stay_the_same_for_every_alarm_of_a_detector() -> None:
    form = Alertmanager(labels={"team": "risk"})
    first = read(form.request_body(firing(), NOW_MS))
    later = firing(parts=(part(alarm(ordinal=9, event_ms=NOW_MS, outcome=99_999)),))
    (second,) = read(form.request_body(later, NOW_MS))
    assert [a["labels"] for a in first] == [
        {
            "alertname": "StreamwatchDrift",
            "model": "fraud-v3",
            "detector": "page_hinkley",
            "severity": "warning",
            "team": "risk",
        }
    ]
    assert second["labels"] == first[0]["labels"]
    assert first[0]["annotations"] | second["annotations"] != first[0]["annotations"]
    assert first[0]["annotations"]["ordinal"] == "2"
    assert first[0]["annotations"]["event_time"] == "2023-11-14T22:13:15.000Z"
    assert all(isinstance(text, str) for text in first[0]["annotations"].values())


def test_an_open_alert_ends_by_itself_unless_it_is_repeated() -> None:
    form = Alertmanager(repeat_interval_ms=60_000)
    (alert,) = read(form.request_body(firing(), NOW_MS))
    assert (alert["startsAt"], alert["endsAt"]) == ("2023-11-14T22:13:15.000Z", iso(NOW_MS + 240_000))
    repeated = read(form.reminder([firing(), firing("firing_2", "clicks")], NOW_MS + 60_000))
    assert [a["labels"]["model"] for a in repeated] == ["fraud-v3", "clicks"]
    assert {a["endsAt"] for a in repeated} == {iso(NOW_MS + 300_000)}
    assert repeated[0]["startsAt"] == alert["startsAt"]


def test_an_alert_ends_when_its_alarm_did() -> None:
    (alert,) = read(Alertmanager().request_body(resolved(firing()), NOW_MS + 3_600_000))
    assert alert["endsAt"] == iso(NOW_MS + 60_000)
    assert alert["annotations"]["reason"] == "back_to_level"


@pytest.mark.parametrize("over", [False, True])
def test_an_alarm_from_the_future_never_ends_before_it_starts(*, over: bool) -> None:
    ahead = firing(parts=(part(alarm(), started_at_ms=NOW_MS + 9_000_000),))
    notification = resolved(ahead, ended_at_ms=NOW_MS + 9_000_000) if over else ahead
    (alert,) = read(Alertmanager().request_body(notification, NOW_MS))
    assert alert["startsAt"] == iso(NOW_MS)
    assert alert["endsAt"] >= alert["startsAt"]


def test_a_digest_is_an_alert_without_a_model() -> None:
    (alert,) = read(Alertmanager(external_url="https://watch.example.com").request_body(digest(), NOW_MS))
    assert alert["labels"] == {"alertname": "StreamwatchDriftDigest", "severity": "error"}
    assert alert["generatorURL"] == "https://watch.example.com"


def test_a_digest_that_waited_for_a_receiver_that_is_an_alertmanager_by_now_is_an_alert_too() -> None:
    listed = Gathered(notifications=9, models=9, firing=9, resolved=0, listed=(firing(),))
    waited = Notification("digest_2", "digest", "critical", NOW_MS, "digest_2", gathered=listed)
    (alert,) = read(Alertmanager().request_body(waited, NOW_MS))
    assert alert["labels"] == {"alertname": "StreamwatchDriftDigest", "severity": "critical"}
    assert alert["annotations"]["summary"] == title(waited)


@pytest.mark.parametrize("notification", [firing(), resolved(firing()), digest()], ids=lambda n: n.kind)
def test_slack_blocks_are_within_its_limits(notification: Notification) -> None:
    reported = read(Slack("https://watch.example.com").request_body(notification, NOW_MS))
    assert [block["type"] for block in reported["blocks"]][:2] == ["header", "section"]
    assert reported["blocks"][-1]["type"] == "actions"
    assert title(notification) in reported["text"].replace("&gt;", ">")


def test_names_cannot_mention_anybody_in_slack_or_plant_a_link() -> None:
    notification = firing(model="<!channel> & <https://evil.example|me>")
    body = Slack().request_body(notification, NOW_MS).body.decode()
    assert "<" not in body
    assert "&lt;!channel&gt; &amp; &lt;https" in body


def test_long_texts_are_cut_for_slack_but_never_inside_an_escape() -> None:
    reported = read(Slack().request_body(firing(model="&" * 128), NOW_MS))
    header = reported["blocks"][0]["text"]["text"]
    assert len(header) <= 150
    assert header.endswith("&amp;…")


def test_pagerduty_gets_a_trigger_and_a_resolve_with_one_key() -> None:
    form = PagerDuty("R0UTING", external_url="https://watch.example.com")
    trigger, resolve = (read(form.request_body(n, NOW_MS)) for n in (firing(), resolved(firing())))
    assert (trigger["event_action"], resolve["event_action"]) == ("trigger", "resolve")
    assert trigger["dedup_key"] == resolve["dedup_key"] == "incident_of_fraud-v3"
    assert trigger["routing_key"] == "R0UTING"
    assert trigger["payload"]["severity"] == "warning"
    assert trigger["payload"]["component"] == "fraud-v3"
    assert trigger["client_url"] == "https://watch.example.com/#/model/fraud-v3"
    assert "R0UTING" not in repr(form)


def test_a_digest_triggers_an_incident_of_its_own() -> None:
    reported = read(PagerDuty("R0UTING").request_body(digest(), NOW_MS))
    assert (reported["event_action"], reported["dedup_key"]) == ("trigger", "digest_1")
    assert len(reported["payload"]["summary"]) <= 1_024


def test_people_read_what_changed_since_when_and_why_it_ended() -> None:
    assert title(firing()) == "fraud-v3 errs more: 10.0 % → 31.2 % (page_hinkley)"
    better = firing(parts=(part(alarm(), before=0.5),))
    assert title(better) == "fraud-v3 errs less: 50.0 % → 31.2 % (page_hinkley)"
    assert title(firing(test=True)).startswith("Test: ")
    assert title(digest()) == "12345 older drift alarms found while catching up"
    assert "Alarm 3 since 2023-11-14T22:13:15.000Z" in description(firing(parts=(part(alarm(), alarms=3),)))
    assert description(resolved(firing(), reason="accepted_as_new_level")).endswith(
        "is over: the error did not come back, and this level now counts as normal."
    )


@pytest.mark.parametrize("ms", [-(10**15), 10**18])
def test_times_outside_of_the_calendar_are_its_nearest_end(ms: int) -> None:
    assert iso(ms) in {"1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"}


def test_slack_makes_no_link_of_what_a_name_looks_like() -> None:
    notification = firing(model="www.evil.example")
    request = read(Slack().request_body(notification, NOW_MS))
    texts = [
        text
        for block in request["blocks"]
        for text in (block.get("text"), *block.get("fields", ()), *block.get("elements", ()))
        if text is not None and text["type"] == "mrkdwn"
    ]
    assert len(texts) >= 5
    assert all(text["verbatim"] is True for text in texts)
    assert (request["parse"], request["unfurl_links"], request["mrkdwn"]) == ("none", False, False)


JOINED = updated(firing(), part(alarm(detector="adwin", outcome=4_400, after=0.4)), part(judged()))


def test_each_alarm_of_an_incident_is_an_alert_and_they_share_model_and_incident() -> None:
    alerts = read(Alertmanager().request_body(JOINED, NOW_MS))
    assert [(a["labels"]["alertname"], a["labels"]["detector"]) for a in alerts] == [
        ("StreamwatchDrift", "page_hinkley"),
        ("StreamwatchDrift", "adwin"),
        ("StreamwatchVerdict", "verdict"),
    ]
    assert {a["annotations"]["incident"] for a in alerts} == {JOINED.incident}
    assert {a["labels"]["model"] for a in alerts} == {"fraud-v3"}
    assert len({a["annotations"]["summary"] for a in alerts}) == 1
    assert all({"ordinal", "incident", "outcome"}.isdisjoint(a["labels"]) for a in alerts)


def test_an_alarm_that_ended_is_reported_to_alertmanager_once() -> None:
    """Its detector may have begun again in a later incident, whose alert has the same labels."""
    ended = part(alarm(detector="adwin"), ended_at_ms=NOW_MS, reason="back_to_level")
    news, no_news = (updated(firing(), ended, news=news) for news in (("adwin",), ("page_hinkley",)))
    reported = read(Alertmanager().request_body(news, NOW_MS))
    assert [(a["labels"]["detector"], a["endsAt"]) for a in reported] == [
        ("page_hinkley", iso(NOW_MS + 240_000)),
        ("adwin", iso(NOW_MS)),
    ]
    (reported,) = read(Alertmanager().request_body(no_news, NOW_MS))
    assert reported["labels"]["detector"] == "page_hinkley"
    (reported,) = read(Alertmanager().reminder([news], NOW_MS))
    assert reported["labels"]["detector"] == "page_hinkley"


def test_alertmanager_gets_alarms_of_the_severities_it_is_for() -> None:
    mixed = updated(firing(), part(judged(), severity="critical"))
    form = Alertmanager(severities=frozenset({"critical"}))
    assert [a["labels"]["detector"] for a in read(form.request_body(mixed, NOW_MS))] == ["verdict"]
    assert [a["labels"]["detector"] for a in read(form.reminder([mixed], NOW_MS))] == ["verdict"]


def test_pagerduty_adds_what_is_new_to_the_same_incident() -> None:
    form = PagerDuty("R0UTING")
    events = [read(form.request_body(n, NOW_MS)) for n in (firing(), JOINED, resolved(JOINED))]
    assert [event["event_action"] for event in events] == ["trigger", "trigger", "resolve"]
    assert len({event["dedup_key"] for event in events}) == 1
    assert events[1]["payload"]["group"] == "page_hinkley, adwin, verdict"


def test_people_read_of_an_incident_how_the_model_does_now_and_what_is_new() -> None:
    since = "since 2023-11-14T22:12:20.000Z, outcome 4,000"
    drift = "errs more: 10.0 % → 40.0 % (page_hinkley, adwin)"
    assert title(JOINED) == f"Update: fraud-v3 is worse than no change {since}; {drift}"
    shown = description(JOINED)
    assert shown.index("adwin found that") < shown.index("is worse than no change")
    shown = shown.partition(" Look first at ")[0]
    assert shown.endswith("Also open: page_hinkley since 2023-11-14T22:13:15.000Z.")
    reported = read(Slack().request_body(JOINED, NOW_MS))
    assert reported["text"].startswith("🟠 Update: fraud-v3")
    over = resolved(firing(parts=(part(judged(1)),)), "verdict_changed")
    assert title(over) == f"fraud-v3 is better than no change {since}"
    assert title(resolved(JOINED)) == "Drift of fraud-v3 resolved (page_hinkley, adwin, verdict)"


SHIFT = ClassShift("classes", 0.135, 0.1312, 0.0038, 0.021, Moved("c1", 0.1, 0.4), Moved("c1", 0.5, 0.49))


@pytest.mark.parametrize(
    ("shift", "shown"),
    [
        (
            SHIFT,
            "It looks like the classes, not the model: c1 went from 10.0 % to 40.0 % of labels; of +13.5 ",
        ),
        (
            msgspec.structs.replace(SHIFT, looks_like="model"),
            "It looks like the model, not the classes: recall of c1 went from 50.0 % to 49.0 %; of ",
        ),
        (
            msgspec.structs.replace(SHIFT, looks_like="unclear", by_model=-0.0038),
            "come from the shares of the classes and −0.4 points from recalls (± 2.1 points).",
        ),
        (
            msgspec.structs.replace(SHIFT, looks_like="unclear", past_differs=True),
            "is unclear: the error before the change differs from that of the whole past.",
        ),
    ],
    ids=["classes", "model", "unclear", "another past"],
)
def test_people_read_whether_it_looks_like_the_classes_or_the_model(shift: ClassShift, shown: str) -> None:
    begun = firing(shift=shift)
    assert shown in description(begun)
    assert shown not in description(resolved(begun)), "of what is over it does not matter any more"
    reported = json.loads(Webhook([b"sixteen bytes or more"]).request_body(begun, NOW_MS).body)["data"]
    assert reported["class_shift"]["looks_like"] == shift.looks_like
    assert (
        json.loads(Webhook([b"sixteen bytes or more"]).request_body(firing(), 0).body)["data"]["class_shift"]
        is None
    )


def test_people_read_in_which_segment_the_change_sits() -> None:
    begun = firing(segment=SegmentChange("country", "DE", 0.9, 0.2, 0.1, 0.6))
    shown = (
        "90.0 % of the extra errors are in country DE, which has 20.0 % of the outcomes: its error went from "
        "10.0 % over its past to 60.0 % recently."
    )
    assert shown in description(begun)
    assert shown not in description(resolved(begun))
    reported = json.loads(Webhook([b"sixteen bytes or more"]).request_body(begun, NOW_MS).body)["data"]
    assert reported["segment"]["value"] == "DE"


@pytest.mark.parametrize(
    ("external_url", "model", "address"),
    [
        ("https://watch.example.com", "m", "https://watch.example.com/#/model/m"),
        ("https://watch.example.com/", "m", "https://watch.example.com/#/model/m"),
        ("https://example.com/watch/?a=b#c", "m", "https://example.com/watch/?a=b#/model/m"),
        ("https://watch.example.com", "a/b c#ü", "https://watch.example.com/#/model/a%2Fb%20c%23%C3%BC"),
        ("", "m", ""),
    ],
)
def test_the_link_of_a_notification_opens_the_page_of_its_model(
    external_url: str, model: str, address: str
) -> None:
    assert link(external_url, firing(model=model)) == address


def test_the_link_of_a_digest_opens_the_page_of_all_models() -> None:
    assert link("https://watch.example.com", digest()) == "https://watch.example.com"


def cut_one_by_one(text: str, most: int) -> str:
    """The longest beginning that fits with an ellipsis, found by leaving out one character at a time."""
    kept = slack.escaped(text)
    while len(kept) > most:
        text = text[:-1]
        kept = f"{slack.escaped(text)}…"
    return kept


def test_a_long_text_is_cut_for_slack_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a & b <c> " * 20
    for most in range(1, 400):
        assert slack._cut(text, most) == cut_one_by_one(text, most)
    read = [0]

    def counting(text: str) -> str:
        read[0] += len(text)
        return text

    monkeypatch.setattr(slack, "escaped", counting)
    slack._cut("x" * 100_000, 3_000)
    assert read[0] <= 300_000


def test_a_digest_of_one_alarm_is_in_the_singular() -> None:
    found = digest().digest
    assert found is not None
    one = msgspec.structs.replace(digest(), digest=msgspec.structs.replace(found, alarms=1, series=1))
    assert "1 alarm of 1 pair of a model and a detector, " in description(one)
