"""Every kind of receiver is sent what changed, since when, and what to look at first, with the link."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from streamwatch.core.alerting.notification import Notification
from streamwatch.core.records.events import Alarm, Confirmation, ErrorChange
from streamwatch.edge.receivers import KINDS, EndpointSpec, ReceiverOptions
from streamwatch.edge.receivers.alertmanager import Alertmanager
from streamwatch.edge.receivers.texts import look_first
from streamwatch.edge.receivers.webhook import Webhook
from tests.edge.receivers.notifications import (
    NOW_MS,
    alarm,
    digest,
    firing,
    judged,
    judged_by_cohorts,
    part,
    resolved,
)

PAGE = "https://watch.example.com"
MODEL = "https://watch.example.com/#/model/fraud-v3"
OWN = {"secret": "key", "secrets": (b"k" * 24,), "texts": {}, "duration": 60_000}
"""A value for each sort of key that a kind may have of its own."""
FORMS = {
    kind.name: kind.configure(
        EndpointSpec("oncall", kind.default_url or "http://127.0.0.1:9/"),
        ReceiverOptions(PAGE, {key.name: OWN[key.holds] for key in kind.keys}),
    ).form
    for kind in KINDS.values()
}


def sent(kind: str, notification: Notification) -> str:
    """Every text of the request, as one."""

    def texts(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [text for each in value.values() for text in texts(each)]
        if isinstance(value, list):
            return [text for each in value for text in texts(each)]
        return [str(value)]

    return "\n".join(texts(json.loads(FORMS[kind].request_body(notification, NOW_MS).body)))


@pytest.mark.parametrize("kind", FORMS)
def test_what_changed_since_when_and_where_to_look_are_in_every_kind(kind: str) -> None:
    shown = sent(kind, firing())
    assert "error of fraud-v3 went from 10.0 % to 31.2 %" in shown
    assert "at 2023-11-14T22:13:15.000Z" in shown
    assert f"Look first at the recall of each class, and what changed upstream at that time: {MODEL}" in shown
    assert f"Look first at the models with most alarms, which the page lists first: {PAGE}" in sent(
        kind, digest()
    )
    assert "Look first" not in sent(kind, resolved(firing()))


@pytest.mark.parametrize("kind", FORMS)
def test_a_verdict_points_to_the_baselines(kind: str) -> None:
    verdict = judged()
    shown = sent(kind, firing(parts=(part(verdict),), news=("verdict",)))
    assert "is worse than no change since 2023-11-14T22:12:20.000Z, outcome 4,000" in shown
    assert f"Look first at the accuracy and its baselines, and the recall of each class: {MODEL}" in shown


def test_without_an_address_it_says_what_to_look_at() -> None:
    assert look_first(firing()) == (
        "Look first at the recall of each class, and what changed upstream at that time, on the model's page."
    )


def test_pagerduty_has_the_page_as_a_link() -> None:
    event = json.loads(FORMS["pagerduty"].request_body(firing(), NOW_MS).body)
    assert event["links"] == [{"href": MODEL, "text": "The model's page"}]


def test_a_long_description_keeps_what_to_look_at() -> None:
    long = digest(listed=200, model="m" * 100)
    data = json.loads(FORMS["webhook"].request_body(long, NOW_MS).body)["data"]
    assert len(data["description"]) <= 2_000
    assert data["description"].endswith(PAGE)


@pytest.mark.parametrize("kind", FORMS)
def test_since_when_predictions_err_is_stated_where_labels_came_later(kind: str) -> None:
    change = ErrorChange(NOW_MS - 12_000_000, NOW_MS - 14_000_000, NOW_MS - 9_000_000, 0.1, 0.3)
    shown = sent(kind, firing(parts=(part(alarm(predictions=change)),)))
    assert (
        "Predictions made since about 2023-11-14T18:53Z err more: 10.0 % → 30.0 % "
        "(between 2023-11-14T18:20Z and 2023-11-14T19:43Z); their labels came later."
    ) in shown
    assert "Predictions made" not in sent(kind, firing())


@pytest.mark.parametrize("kind", FORMS)
def test_an_alarm_in_prediction_time_says_at_which_prediction_it_fell(kind: str) -> None:
    shown = sent(kind, firing(parts=(part(alarm(predicted_ms=NOW_MS - 12_000_000)),)))
    assert (
        "It was found in the order of predictions, at the one made at 2023-11-14T18:53:20.000Z, once all "
        "labels up to it were in."
    ) in shown
    assert "order of predictions" not in sent(kind, firing())


@pytest.mark.parametrize("kind", FORMS)
def test_a_verdict_on_quick_labels_alone_says_so(kind: str) -> None:
    settled = judged()
    assert settled.judgement is not None
    young = msgspec.structs.replace(
        settled, judgement=msgspec.structs.replace(settled.judgement, quick_labels_only=True)
    )
    shown = [sent(kind, firing(parts=(part(each),), news=("verdict",))) for each in (young, settled)]
    assert ["Only quick labels were in" in each for each in shown] == [True, False]


@pytest.mark.parametrize("kind", FORMS)
def test_a_useful_model_of_rare_classes_is_not_reported_as_a_bad_one(kind: str) -> None:
    verdict = part(judged(), accuracy_misleads=True)
    shown = sent(kind, firing(parts=(verdict,), news=("verdict",), severity="info"))
    assert "outcome 4,000 (by accuracy, which says little about rare classes)" in shown
    assert "the model distinguishes the others (kappa is 3 standard errors above 0)" in shown
    assert "Set monitors.utility to balanced, or to costs of each mistake" in shown
    assert "Look first at the recall of each class and kappa, and whether monitors.utility suits" in shown
    over = resolved(firing(parts=(verdict,), news=("verdict",)), "model_retired")
    assert "rare classes" not in sent(kind, over)


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize(
    ("verdict", "shown"),
    [
        (judged_by_cohorts(), "worse than the majority since 2023-11-14T22:12:20.000Z (early)"),
        (judged_by_cohorts(opponent="persistent_at_prediction"), "worse than no change since"),
        (
            judged_by_cohorts(utility="costs"),
            "worse than the majority by costs since 2023-11-14T22:12:20.000Z",
        ),
        (judged_by_cohorts(utility="balanced"), "worse than the majority by balanced accuracy since"),
        (
            judged_by_cohorts(earliest_ms=NOW_MS - 180_000, latest_ms=NOW_MS),
            "since 2023-11-14T22:12:20.000Z (early, between 2023-11-14T22:10Z and 2023-11-14T22:13Z)",
        ),
        (judged_by_cohorts(latest_ms=NOW_MS), "(early, 2023-11-14T22:13Z at the latest)"),
        (judged_by_cohorts(), "confirmed or retracted once all labels of these predictions are in"),
        (judged_by_cohorts(status="confirmed"), "It is confirmed: the labels of these predictions are in."),
    ],
)
def test_a_verdict_by_cohorts_says_whom_it_is_against_and_how_sure_it_is(
    kind: str, verdict: Alarm, shown: str
) -> None:
    reported = sent(kind, firing(parts=(part(verdict),), news=("verdict",)))
    assert shown in reported
    assert "outcome 4,000" not in reported, "in the order of labels it has a position, by cohorts a time"
    assert "by cohorts" in reported


@pytest.mark.parametrize("kind", FORMS)
def test_a_retracted_verdict_says_why_it_ends(kind: str) -> None:
    ended = part(judged_by_cohorts(0, "retracted"))
    over = resolved(firing(parts=(ended,), news=("verdict",)), "retracted")
    reported = sent(kind, over)
    assert "no longer shown to be better or worse than no change or the majority" in reported
    assert "once all labels of its predictions were in, they did not confirm it" in reported


def test_alertmanager_and_the_webhook_carry_basis_and_status_apart() -> None:
    begun = firing(parts=(part(judged_by_cohorts()),), news=("verdict",))
    (alert,) = json.loads(Alertmanager().request_body(begun, NOW_MS).body)
    figures = {name: alert["annotations"][name] for name in ("basis", "opponent", "status")}
    assert figures == {"basis": "cohorts", "opponent": "majority", "status": "early"}
    assert not {"basis", "status"} & alert["labels"].keys(), "or its confirmation would be another alert"
    (reported,) = json.loads(Webhook([b"sixteen bytes or more"]).request_body(begun, NOW_MS).body)["data"][
        "alarms"
    ]
    judgement = reported["newest"]["judgement"]
    assert (judgement["basis"], judgement["status"], reported["reason"]) == ("cohorts", "early", None)
    over = resolved(firing(parts=(part(judged_by_cohorts(0, "retracted")),), news=("verdict",)), "retracted")
    (alert,) = json.loads(Alertmanager().request_body(over, NOW_MS).body)
    assert alert["annotations"]["reason"] == "retracted"


@pytest.mark.parametrize("kind", FORMS)
def test_an_alarm_says_whether_predictions_show_it_too(kind: str) -> None:
    expected_ms = NOW_MS + 3_600_000
    unconfirmed = part(alarm(), expected_ms=expected_ms)
    shown = sent(kind, firing(parts=(unconfirmed,)))
    assert "This is unconfirmed: labels come late" in shown
    assert "from about 2023-11-14T23:13Z on" in shown
    assert "10.0 % → 31.2 % (page_hinkley, unconfirmed)" in shown
    found = Confirmation(is_confirmed=True, since_ms=NOW_MS - 12_000_000, before=0.1, after=0.3)
    shown = sent(kind, firing(parts=(msgspec.structs.replace(unconfirmed, confirmation=found),)))
    assert (
        "This is confirmed: of predictions made since 2023-11-14T18:53Z, 30.0 % are wrong, of those before "
        "10.0 %, however late their labels come."
    ) in shown
    assert "unconfirmed" not in shown
    ended = part(alarm(), expected_ms=expected_ms, reason="labels_changed", ended_at_ms=NOW_MS)
    shown = sent(kind, firing(kind="resolved", parts=(ended,)))
    if kind not in {"alertmanager", "pagerduty"}:
        assert "the mix of labels that arrived has changed" in shown
    assert "confirmed" not in sent(kind, firing())


def test_a_webhook_has_what_cohorts_showed_as_fields() -> None:
    found = Confirmation(is_confirmed=True, since_ms=NOW_MS, before=0.1, after=0.3)
    parts = (
        part(alarm(), expected_ms=NOW_MS),
        part(alarm(detector="adwin"), expected_ms=NOW_MS, confirmation=found),
        part(alarm(detector="ddm")),
    )
    data = json.loads(FORMS["webhook"].request_body(firing(parts=parts), NOW_MS).body)["data"]
    assert [(each["confirmation_expected_at"], each["confirmation"]) for each in data["alarms"]] == [
        ("2023-11-14T22:13:20.000Z", None),
        (None, {"is_confirmed": True, "since_ms": NOW_MS, "before": 0.1, "after": 0.3}),
        (None, None),
    ]


@pytest.mark.parametrize("kind", FORMS)
def test_an_alarm_says_how_many_false_ones_are_to_be_expected(kind: str) -> None:
    shown = sent(kind, firing(parts=(part(alarm(), false_monthly=0.09),)))
    assert (
        "At this model's rate of outcomes and dependence of errors, page_hinkley is expected to raise a "
        "false alarm about 1 a year."
    ) in shown
    assert "false alarm" not in sent(kind, firing()).replace("false_alarms_expected_monthly", "")


def test_a_webhook_has_the_expected_number_of_false_alarms_as_a_field() -> None:
    parts = (part(alarm(), false_monthly=2.5), part(alarm(detector="ddm")))
    data = json.loads(FORMS["webhook"].request_body(firing(parts=parts), NOW_MS).body)["data"]
    assert [each.get("false_alarms_expected_monthly") for each in data["alarms"]] == [2.5, None]
    assert "false_alarms_expected_monthly" not in data["alarms"][1]


@pytest.mark.parametrize("kind", FORMS)
def test_an_early_verdict_says_that_the_delays_it_counts_on_have_moved(kind: str) -> None:
    moved = part(judged_by_cohorts(), delays_moved=("errors", "hits"))
    shown = sent(kind, firing(parts=(moved,), news=("verdict",)))
    assert (
        "How late labels of errors and hits are has changed lately: until predictions with the new delays "
        "have all their labels, this verdict may be wrong."
    ) in shown
    for each in (
        part(judged_by_cohorts()),
        part(judged_by_cohorts(status="confirmed"), delays_moved=("hits",)),
    ):
        assert "has changed lately" not in sent(kind, firing(parts=(each,), news=("verdict",)))
