"""What receivers are sent about models that are worse: which, than what, since when, what is promised."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from streamwatch.core.alerting.notification import Notification, NotifiedFleet, RivalPair
from streamwatch.core.estimators.registers.fleet import RULE, WorsePair
from streamwatch.edge.receivers import KINDS, EndpointSpec, HttpRequestBody
from streamwatch.edge.receivers.http import HttpReceiver
from streamwatch.edge.receivers.slack import Slack
from streamwatch.edge.receivers.texts import description, iso, link, title
from streamwatch.edge.receivers.webhook import MAX_BYTES, Webhook
from tests.edge.receivers.notifications import NOW_MS, firing

KEY = b"k" * 16
AT_MS, BEFORE_MS = NOW_MS // 86_400_000 * 86_400_000, (NOW_MS // 86_400_000 - 1) * 86_400_000
SINCE_MS = NOW_MS - 3_600_000
SINCE, EARLIEST, LATEST = "2023-11-14T21:13Z", "2023-11-14T21:12Z", "2023-11-14T21:14Z"
PAIRS = (
    WorsePair("fraud<1>", "majority", 8e4, "worse", SINCE_MS, SINCE_MS - 60_000, SINCE_MS + 60_000),
    WorsePair("fraud-2", "persistent_at_prediction", 7e4, "worse", SINCE_MS, None, SINCE_MS + 60_000),
    WorsePair("fraud-3", "majority", 6e4, "open"),
)


def digest(**changes: Any) -> Notification:
    reported = NotifiedFleet(
        at_ms=AT_MS,
        before_ms=BEFORE_MS,
        share=0.05,
        pairs=2_000,
        models=3,
        number=3,
        listed=PAIRS,
        number_added=1,
        added=(RivalPair("fraud-2", "persistent_at_prediction"),),
        number_left=2,
        left=(RivalPair("gone", "majority"),),
    )
    reported = msgspec.structs.replace(reported, **changes)
    return Notification("digest_1", "digest", "info", NOW_MS, "digest_1", fleet=reported)


EMPTY = {"models": 0, "number": 0, "listed": (), "number_added": 0, "added": ()}


def read(request: HttpRequestBody) -> Any:
    return json.loads(request.body)


@pytest.mark.parametrize(
    ("notification", "shown"),
    [
        (digest(), "Worse by the fleet's rule: 3 models (1 added, 2 left)"),
        (digest(models=1, number_left=0), "Worse by the fleet's rule: 1 model (1 added)"),
        (digest(**EMPTY), "Worse by the fleet's rule: no models (2 left)"),
        (digest(before_ms=None, number_left=0), "Worse by the fleet's rule: 3 models"),
    ],
)
def test_a_title_counts_models_and_what_changed(notification: Notification, shown: str) -> None:
    assert title(notification) == shown


def test_sentences_say_what_is_promised_and_of_each_pair_than_what_and_since_when() -> None:
    shown = description(digest(), "https://w.example").splitlines()
    assert shown[0].startswith(
        "List of 2023-11-14T00:00Z, of 2,000 pairs of a model and an opponent; the share is 5%: "
    )
    assert RULE in shown[0]
    assert shown[0].endswith("A model that has recovered may be listed.")
    assert shown[1:6] == [
        "Added since the list of 2023-11-13T00:00Z: fraud-2, worse than no change.",
        "Listed at 2023-11-13T00:00Z and no longer: gone, worse than the majority and 1 more.",
        f"• fraud<1>, worse than the majority since {SINCE} (between {EARLIEST} and {LATEST})",
        f"• fraud-2, worse than no change since {SINCE} ({LATEST} at the latest)",
        "• fraud-3, worse than the majority, verdict now: no clear difference",
    ]
    assert shown[6].strip().startswith("Look first at the models that were added")
    assert shown[6].endswith("https://w.example")
    assert link("https://w.example", digest()) == "https://w.example"


def test_the_first_list_says_nothing_of_one_before_and_a_long_one_how_many_more() -> None:
    shown = description(digest(before_ms=None, number=500, number_left=0, left=()))
    assert "since the list" not in shown
    assert "and no longer" not in shown
    assert "and 497 more; the page and the API have all." in shown


def test_a_webhook_has_a_type_of_its_own_and_all_that_is_listed() -> None:
    sent = read(Webhook([KEY]).request_body(digest(), NOW_MS))
    assert sent["type"] == "fleet.digest"
    assert (sent["data"]["severity"], sent["data"]["started_at"]) == ("info", iso(AT_MS))
    assert "model" not in sent["data"]
    reported = sent["data"]["digest"]
    assert reported["listed"][0] == {
        "model": "fraud<1>",
        "opponent": "majority",
        "e_value": 8e4,
        "verdict": "worse",
        "since": iso(SINCE_MS),
        "earliest": iso(SINCE_MS - 60_000),
        "latest": iso(SINCE_MS + 60_000),
    }
    assert (reported["listed"][1]["earliest"], reported["listed"][2]["since"]) == (None, None)
    assert reported["added"] == [{"model": "fraud-2", "opponent": "persistent_at_prediction"}]
    assert reported["left"] == [{"model": "gone", "opponent": "majority"}]
    assert (reported["number"], reported["number_added"], reported["number_left"]) == (3, 1, 2)
    assert (reported["at"], reported["before"]) == (iso(AT_MS), iso(BEFORE_MS))
    assert (reported["share"], reported["pairs"], reported["rule"]) == (0.05, 2_000, RULE)


def test_a_long_list_for_a_webhook_is_halved_until_it_fits_and_its_text_keeps_the_promise() -> None:
    many = tuple(msgspec.structs.replace(PAIRS[0], model=f"model-{n:04d}") for n in range(400))
    body = Webhook([KEY]).request_body(digest(number=400, listed=many), NOW_MS).body
    assert len(body) < MAX_BYTES
    data = json.loads(body)["data"]
    assert data["digest"]["number"] == 400
    assert 0 < len(data["digest"]["listed"]) < 400
    assert RULE in data["description"]
    assert len(data["description"]) <= 2_000


def test_slack_shows_it_as_a_list_without_links_by_names() -> None:
    blocks = read(Slack().request_body(digest(), NOW_MS))["blocks"]
    assert blocks[0]["text"]["text"] == "📋 Worse by the fleet's rule: 3 models (1 added, 2 left)"
    assert "• fraud&lt;1&gt;, worse than the majority" in blocks[1]["text"]["text"]
    assert not [block for block in blocks if "fields" in block]


@pytest.mark.parametrize(("wants", "alarms"), [(True, False), (False, True), (True, True)])
def test_it_goes_to_those_who_wait_for_digests_whatever_models_they_match(wants: bool, alarms: bool) -> None:  # noqa: FBT001
    spec = EndpointSpec("r", "http://127.0.0.1:9", alarms=alarms, digest=wants, matchers={"team": "risk"})
    receiver = HttpReceiver(spec, Webhook([KEY]))
    assert receiver.wants(digest()) == wants
    assert receiver.wants(firing(labels={"team": "risk"})) == alarms


def test_kinds_that_can_be_sent_one_are_those_that_keep_nothing_open() -> None:
    assert [name for name, kind in KINDS.items() if kind.reads_digests] == ["webhook", "slack"]
