"""Records whose ids stand at several paths or differ between the sides."""

from __future__ import annotations

import random

from streamwatch.edge.decoders.mapping import Trimmed
from tests.inspection.story import HOUR, Maker, Payload, iso, story


def two_ids() -> Payload:
    found = Payload(
        "a user's id and a request's id, both on both sides",
        predictions={"inference": {"id": "value.request_id", "prediction": "value.output"}},
        labels={"feedback": {"id": "value.request_id", "label": "value.ground_truth"}},
    )
    for item in story(5, classes=("cat", "dog", "bird"), weights=(0.4, 0.4, 0.2), users=390):
        value = {"user_id": item.user, "request_id": f"r{item.number}", "output": item.predicted}
        found.add("inference", item.made_ms, value)
        value = {"user_id": item.user, "request_id": f"r{item.number}", "ground_truth": item.true}
        found.add("feedback", item.labelled_ms, value)
    return found


def int_and_text() -> Payload:
    found = Payload(
        "an id that is a number here and text there",
        predictions={"decisions": {"id": "value.order.number", "prediction": "value.verdict"}},
        labels={"returns": {"id": "value.orderNumber", "label": "value.result"}},
    )
    for item in story(6, classes=("accept", "reject"), weights=(0.6, 0.4)):
        number = 1_000_000 + item.number * 3
        value = {"order": {"number": number, "total": item.amount}, "verdict": item.predicted}
        found.add("decisions", item.made_ms, value)
        found.add("returns", item.labelled_ms, {"orderNumber": str(number), "result": item.true})
    return found


def in_key() -> Payload:
    found = Payload(
        "the id is the key of both",
        predictions={"p": {"id": "key", "prediction": "value.class"}},
        labels={"l": {"id": "key", "label": "value.class"}},
    )
    for item in story(7):
        found.add("p", item.made_ms, {"class": item.predicted, "amount": item.amount}, key=item.uuid)
        found.add("l", item.labelled_ms, {"class": item.true, "source": "review"}, key=item.uuid)
    return found


def in_header() -> Payload:
    found = Payload(
        "the id is a header of predictions and a field of labels",
        predictions={"model-out": {"id": "header:correlation-id", "prediction": "value.pred"}},
        labels={"truth": {"id": "value.meta.correlation", "label": "value.y"}},
    )
    for item in story(8):
        headers = {"correlation-id": item.uuid, "content-type": "application/json"}
        found.add(
            "model-out", item.made_ms, {"pred": item.predicted, "ms": item.number % 30}, headers=headers
        )
        found.add("truth", item.labelled_ms, {"meta": {"correlation": item.uuid}, "y": item.true})
    return found


def prefixed() -> Payload:
    found = Payload(
        "ids of predictions have a prefix",
        predictions={"predictions": {"id": Trimmed("value.id", "txn-"), "prediction": "value.prediction"}},
        labels={"labels": {"id": "value.txn", "label": "value.label"}},
    )
    for item in story(9):
        value = {"id": f"txn-{item.number + 5_000}", "model": "m", "prediction": item.predicted}
        found.add("predictions", item.made_ms, value)
        found.add("labels", item.labelled_ms, {"txn": str(item.number + 5_000), "label": item.true})
    return found


def composite() -> Payload:
    found = Payload("a composite key here, its parts there", cannot=("key", "'|'", "value.order"))
    for item in story(103):
        order = f"{40_000 + item.number}"
        found.add(
            "decisions", item.made_ms, {"decision": item.predicted}, key=f"shop{item.number % 3}|{order}"
        )
        value = {"shop": f"shop{item.number % 3}", "order": order, "outcome": item.true}
        found.add("outcomes", item.labelled_ms, value)
    return found


def sequences() -> Payload:
    found = Payload(
        "each topic numbers its own records",
        predictions={"eta": {"id": "value.trackingNumber", "prediction": "value.bucket"}},
        labels={"delivered": {"id": "value.trackingNumber", "label": "value.bucket"}},
    )
    for at, item in enumerate(story(106, classes=("same_day", "next_day", "later"), weights=(0.3, 0.5, 0.2))):
        value = {"seq": at + 1, "trackingNumber": f"1Z{item.number * 7919:08d}", "bucket": item.predicted}
        found.add("eta", item.made_ms, value)
    for at, item in enumerate(
        sorted(
            story(106, classes=("same_day", "next_day", "later"), weights=(0.3, 0.5, 0.2)),
            key=lambda item: item.labelled_ms,
        )
    ):
        value = {"seq": at + 1, "trackingNumber": f"1Z{item.number * 7919:08d}", "bucket": item.true}
        found.add("delivered", item.labelled_ms, value)
    return found


def upper_case_ids() -> Payload:
    found = Payload("ids in capitals there", cannot=("case", "value.loan", "value.loanRef"))
    for item in story(112):
        found.add("loan-scores", item.made_ms, {"loan": item.uuid, "grade": item.predicted})
        found.add("loan-results", item.labelled_ms, {"loanRef": item.uuid.upper(), "result": item.true})
    return found


def urn_and_key() -> Payload:
    found = Payload(
        "a URN in the value, the plain id in the key",
        predictions={"quotes": {"id": "key", "prediction": "value.tier_predicted"}},
        labels={"sold": {"id": "value.quote", "label": "value.tier_sold"}},
    )
    for item in story(116, classes=("basic", "plus", "max"), weights=(0.5, 0.3, 0.2)):
        quote = f"Q{item.number + 300}"
        value = {"urn": f"urn:quote:{quote}", "tier_predicted": item.predicted, "price": item.amount}
        found.add("quotes", item.made_ms, value, key=quote)
        found.add("sold", item.labelled_ms, {"quote": quote, "tier_sold": item.true, "agent": item.user})
    return found


def user_and_day() -> Payload:
    found = Payload(
        "a user and a day make the id together",
        predictions={"daily": {"id": ("value.user", "value.day"), "prediction": "value.prediction"}},
        labels={"visits": {"id": ("value.user", "value.day"), "label": "value.label"}},
    )
    chance = random.Random(3)
    for day in range(10):
        for user in range(40):
            made_ms = 1_764_000_000_000 + day * 24 * HOUR + user * 1_000
            true = chance.choice(["buy", "leave"])
            predicted = true if chance.random() < 0.8 else "buy"
            value = {"user": f"u{user}", "day": iso(made_ms)[:10], "prediction": predicted}
            found.add("daily", made_ms, value)
            found.add("visits", made_ms + HOUR, {"user": f"u{user}", "day": iso(made_ms)[:10], "label": true})
    return found


def dots_in_names() -> Payload:
    found = Payload(
        "names with dots, as of flat documents",
        predictions={"ecs": {"id": 'value."event.id"', "prediction": 'value."ml.prediction"'}},
        labels={"triaged": {"id": 'value."event.id"', "label": 'value."triage.verdict"'}},
    )
    for item in story(211, classes=("benign", "attack"), weights=(0.8, 0.2)):
        value = {"event.id": item.uuid, "ml.prediction": item.predicted, "host.name": item.country}
        found.add("ecs", item.made_ms, value)
        found.add("triaged", item.labelled_ms, {"event.id": item.uuid, "triage.verdict": item.true})
    return found


IDS: tuple[Maker, ...] = (
    two_ids,
    int_and_text,
    in_key,
    in_header,
    prefixed,
    composite,
    sequences,
    upper_case_ids,
    urn_and_key,
    user_and_day,
    dots_in_names,
)
