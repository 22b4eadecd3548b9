"""Requests by Standard Webhooks, checked by its reference library."""

from __future__ import annotations

import base64
import json
import time

import pytest
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from streamwatch.edge.receivers.webhook import MAX_BYTES, Webhook, key_of
from tests.edge.receivers.notifications import alarm, digest, firing, judged, part, resolved, updated

OLD = "whsec_" + base64.b64encode(b"an old secret, 24 bytes.").decode()
NEW = "whsec_" + base64.b64encode(b"its successor of 32 bytes, new.!").decode()
FOREIGN = "whsec_" + base64.b64encode(b"nobody signs with this one").decode()


def test_the_reference_library_verifies_with_each_of_several_secrets() -> None:
    request = Webhook([key_of(OLD), key_of(NEW)]).request_body(firing(), time.time_ns() // 1_000_000)
    for secret in (OLD, NEW):
        assert Verifier(secret).verify(request.body, dict(request.headers))["type"] == "drift.firing"
    with pytest.raises(WebhookVerificationError):
        Verifier(FOREIGN).verify(request.body, dict(request.headers))


def test_a_changed_body_is_noticed() -> None:
    request = Webhook([key_of(OLD)]).request_body(firing(), time.time_ns() // 1_000_000)
    with pytest.raises(WebhookVerificationError):
        Verifier(OLD).verify(request.body.replace(b"fraud", b"clean"), dict(request.headers))


def test_an_attempt_is_signed_with_its_own_time_and_the_same_id() -> None:
    form = Webhook([key_of(OLD)])
    first, second = form.request_body(firing(), 1_000_999), form.request_body(firing(), 9_000_000)
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == "firing_1"
    assert (first.headers["webhook-timestamp"], second.headers["webhook-timestamp"]) == ("1000", "9000")
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]
    assert first.body == second.body


def test_the_body_says_what_happened() -> None:
    reported = json.loads(Webhook([key_of(OLD)], "https://watch.example.com").request_body(firing(), 0).body)
    assert set(reported) == {"type", "timestamp", "data"}
    assert reported["timestamp"] == "2023-11-14T22:13:20.000Z"
    (about,) = reported["data"]["alarms"]
    assert (about["detector"], about["newest"]["model"], about["before"]) == ("page_hinkley", "fraud-v3", 0.1)
    assert (reported["data"]["model"], reported["data"]["news"]) == ("fraud-v3", ["page_hinkley"])
    assert reported["data"]["started_at"] == "2023-11-14T22:13:15.000Z"
    assert reported["data"]["url"] == "https://watch.example.com/#/model/fraud-v3"
    assert reported["data"]["title"] == "fraud-v3 errs more: 10.0 % → 31.2 % (page_hinkley)"
    over = json.loads(Webhook([key_of(OLD)]).request_body(resolved(firing()), 0).body)
    assert (over["type"], over["data"]["incident"]) == ("drift.resolved", reported["data"]["incident"])
    assert over["data"]["ended_at"] == over["data"]["alarms"][0]["ended_at"] == "2023-11-14T22:14:20.000Z"
    assert over["data"]["alarms"][0]["reason"] == "back_to_level"


def test_what_joins_an_incident_is_an_update_of_the_same_incident() -> None:
    begun = firing()
    more = updated(begun, part(alarm(detector="adwin")), part(judged(), severity="critical"))
    first, second = (json.loads(Webhook([key_of(OLD)]).request_body(n, 0).body) for n in (begun, more))
    assert [reported["type"] for reported in (first, second)] == ["drift.firing", "drift.updated"]
    assert first["data"]["incident"] == second["data"]["incident"]
    assert first["data"]["id"] != second["data"]["id"]
    assert [each["detector"] for each in second["data"]["alarms"]] == ["page_hinkley", "adwin", "verdict"]
    assert second["data"]["news"] == ["adwin", "verdict"]
    assert second["data"]["ended_at"] is None


def test_an_incident_of_very_many_detectors_stays_below_the_limit() -> None:
    parts = [part(alarm('"' * 128, f"detector-{i}")) for i in range(60)]
    body = Webhook([key_of(OLD)]).request_body(updated(firing(model='"' * 128), *parts), 0).body
    assert len(body) < MAX_BYTES
    assert len(json.loads(body)["data"]["alarms"]) == 61


@pytest.mark.parametrize(("listed", "model"), [(3, "m"), (1_000, "m"), (400, "é" * 64), (2, '"' * 128)])
def test_a_digest_of_any_length_stays_below_the_limit_and_keeps_its_totals(listed: int, model: str) -> None:
    body = Webhook([key_of(OLD)]).request_body(digest(listed, model=model), 0).body
    assert len(body) < MAX_BYTES
    reported = json.loads(body)["data"]["digest"]
    assert (reported["alarms"], reported["series"]) == (12_345, listed)
    assert len(reported["tallies"]) > 0


def test_a_digest_that_cannot_be_made_short_enough_is_sent_with_its_totals() -> None:
    url = f"https://watch.example.com/{'x' * MAX_BYTES}"
    reported = json.loads(Webhook([key_of(OLD)], url).request_body(digest(3, model="m"), 0).body)["data"][
        "digest"
    ]
    assert (reported["alarms"], reported["tallies"], reported["earliest"]) == (12_345, [], [])


def test_undefined_numbers_are_null() -> None:
    notification = firing(parts=(part(alarm(), before=float("nan")),))
    assert "unknown" in json.loads(Webhook([key_of(OLD)]).request_body(notification, 0).body)["data"]["title"]
    unsure = firing(parts=(part(alarm(threshold=float("nan"))),))
    (reported,) = json.loads(Webhook([key_of(OLD)]).request_body(unsure, 0).body)["data"]["alarms"]
    assert reported["newest"]["threshold"] is None


@pytest.mark.parametrize("secret", ["whsec_not base64!", "whsec_AAAA", "", "whsec_"])
def test_a_secret_that_protects_nothing_is_refused_without_showing_it(secret: str) -> None:
    with pytest.raises(ValueError, match="not shown") as caught:
        key_of(secret)
    assert not secret or secret not in str(caught.value)


def test_prefix_and_padding_of_a_secret_may_be_missing() -> None:
    assert key_of(OLD) == key_of(OLD.removeprefix("whsec_")) == b"an old secret, 24 bytes."
    assert key_of(FOREIGN.rstrip("=") + "\n") == b"nobody signs with this one"


def test_keys_and_bodies_are_not_part_of_any_repr() -> None:
    form = Webhook([key_of(OLD)])
    assert "old secret" not in repr(form)
    assert "fraud" not in repr(form.request_body(firing(), 0))
