"""Payloads written before there was anything to guess them."""

from __future__ import annotations

import struct

from streamwatch.lab.inspection.guessed import Numbers, ScoreChoice
from tests.lab.inspection.payloads import HOUR, Maker, Payload, iso, story


def flat() -> Payload:
    found = Payload(
        "flat with the default names",
        predictions={
            "predictions": {"id": "value.id", "model": "value.model", "prediction": "value.prediction"}
        },
        labels={"labels": {"id": "value.id", "label": "value.label"}},
    )
    for item in story(1):
        found.add("predictions", item.made_ms, {"id": item.uuid, "model": "m1", "prediction": item.predicted})
        found.add("labels", item.labelled_ms, {"id": item.uuid, "label": item.true})
    return found


def fraud() -> Payload:
    found = Payload(
        "nested uuid, model in a header, booleans, ISO times",
        predictions={
            "scoring-events": {
                "id": "value.transaction.uuid",
                "model": "header:model-version",
                "prediction": "value.decision",
                "timestamp": "value.scored_at",
                "timestamp_unit": "iso8601",
            }
        },
        labels={"chargebacks": {"id": "key", "label": "value.is_fraud", "timestamp": "value.decided"}},
    )
    for item in story(2):
        value = {
            "transaction": {"uuid": item.uuid, "amount": item.amount, "country": item.country},
            "decision": item.predicted == "fraud",
            "scored_at": iso(item.made_ms),
        }
        headers = {"model-version": "fraud-v3", "trace": item.uuid[::-1]}
        found.add("scoring-events", item.made_ms + 20, value, headers=headers)
        value = {"is_fraud": item.true == "fraud", "decided": iso(item.labelled_ms), "analyst": item.user[:2]}
        found.add("chargebacks", item.labelled_ms + 50, value, key=item.uuid)
    return found


def ads() -> Payload:
    found = Payload(
        "ads: clicks as 0 and 1, seconds, many ids that repeat",
        predictions={
            "bids": {
                "id": "value.impression_id",
                "model": "value.model_name",
                "prediction": "value.will_click",
                "timestamp": "value.ts",
                "timestamp_unit": "s",
            }
        },
        labels={"clicks": {"id": "value.imp", "label": "value.clicked", "timestamp": "value.ts"}},
    )
    for item in story(3, classes=("0", "1"), weights=(0.9, 0.1), delay_ms=60_000):
        value = {
            "impression_id": 70_000_000_000 + item.number * 7,
            "user_id": item.user,
            "campaign_id": item.number % 7,
            "p_click": item.score,
            "will_click": int(item.predicted),
            "model_name": "ctr",
            "ts": item.made_ms // 1_000,
        }
        found.add("bids", item.made_ms, value, key=item.user)
        value = {
            "imp": 70_000_000_000 + item.number * 7,
            "user_id": item.user,
            "clicked": int(item.true),
            "ts": item.labelled_ms // 1_000,
        }
        found.add("clicks", item.labelled_ms, value, key=item.user)
    return found


def churn() -> Payload:
    found = Payload(
        "churn: yes and no beside 0 and 1",
        predictions={"churn-scores": {"id": "value.customer", "prediction": "value.churn_flag"}},
        labels={
            "crm-status": {
                "id": "value.customer",
                "label": "value.churned",
                "classes": {"yes": "1", "no": "0"},
            }
        },
    )
    for item in story(4, classes=("no", "yes"), weights=(0.7, 0.3), delay_ms=24 * HOUR):
        customer = f"C{100_000 + item.number}"
        value = {
            "customer": customer,
            "churn_flag": int(item.predicted == "yes"),
            "segment": item.country,
            "tenure_months": item.number % 48,
        }
        found.add("churn-scores", item.made_ms, value)
        found.add("crm-status", item.labelled_ms, {"customer": customer, "churned": item.true})
    return found


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
    found = Payload("ids of predictions have a prefix", cannot=("txn-", "value.id", "value.txn"))
    for item in story(9):
        value = {"id": f"txn-{item.number + 5_000}", "model": "m", "prediction": item.predicted}
        found.add("predictions", item.made_ms, value)
        found.add("labels", item.labelled_ms, {"txn": str(item.number + 5_000), "label": item.true})
    return found


def several_models() -> Payload:
    found = Payload(
        "two models score each request",
        predictions={"scores": {"id": "value.req", "model": "value.model.id", "prediction": "value.label"}},
        labels={"outcomes": {"id": "value.req", "label": "value.outcome"}},
    )
    for item in story(10):
        for model, said in (("champion", item.predicted), ("challenger", item.true)):
            value = {"req": item.uuid, "model": {"id": model, "framework": "xgb"}, "label": said}
            found.add("scores", item.made_ms, value)
        found.add("outcomes", item.labelled_ms, {"req": item.uuid, "outcome": item.true})
    return found


def one_topic() -> Payload:
    found = Payload(
        "predictions and labels on one topic, told apart by a type",
        predictions={"events": {"id": "value.id", "prediction": "value.decision", "kind": "value.type"}},
        labels={"events": {"id": "value.id", "label": "value.truth", "kind": "value.type"}},
    )
    for item in story(11):
        found.add("events", item.made_ms, {"type": "scored", "id": item.uuid, "decision": item.predicted})
        found.add("events", item.labelled_ms, {"type": "resolved", "id": item.uuid, "truth": item.true})
    return found


def cloudevents() -> Payload:
    found = Payload(
        "CloudEvents, structured",
        predictions={
            "ce-scores": {
                "envelope": "cloudevents",
                "id": "value.data.applicationId",
                "model": "value.data.modelVersion",
                "prediction": "value.data.decision",
                "timestamp": "value.time",
                "timestamp_unit": "iso8601",
            }
        },
        labels={"ce-outcomes": {"id": "value.data.applicationId", "label": "value.data.finalDecision"}},
    )
    for item in story(12, classes=("approve", "decline", "refer"), weights=(0.5, 0.3, 0.2)):
        envelope = {"specversion": "1.0", "source": "/credit", "type": "scored", "id": item.uuid[::-1]}
        data = {"applicationId": item.uuid, "decision": item.predicted, "modelVersion": "credit-7"}
        found.add("ce-scores", item.made_ms + 5, {**envelope, "time": iso(item.made_ms), "data": data})
        envelope = {"specversion": "1.0", "source": "/crm", "type": "closed", "id": item.uuid[5:]}
        data = {"applicationId": item.uuid, "finalDecision": item.true}
        value = {**envelope, "time": iso(item.labelled_ms), "data": data}
        found.add("ce-outcomes", item.labelled_ms + 5, value)
    return found


def debezium() -> Payload:
    found = Payload(
        "labels by Debezium, with many columns; times in microseconds",
        predictions={
            "risk.scored": {
                "id": "value.claim_id",
                "prediction": "value.risk_class",
                "timestamp": "value.at_us",
                "timestamp_unit": "us",
            }
        },
        labels={"db.claims": {"envelope": "debezium", "id": "value.id", "label": "value.final_class"}},
    )
    for item in story(13, classes=("low", "mid", "high"), weights=(0.5, 0.3, 0.2)):
        value = {
            "claim_id": 900_000 + item.number,
            "risk_class": item.predicted,
            "at_us": item.made_ms * 1_000,
            "region": item.country,
        }
        found.add("risk.scored", item.made_ms + 3, value)
        after = {
            "id": 900_000 + item.number,
            "state": ["open", "closed"][item.number % 2],
            "region": item.country,
            "final_class": item.true,
            "handler": item.number % 11,
            "amount": item.amount,
            "version": 1,
            "updated_at": item.labelled_ms,
        }
        source = {
            "connector": "postgresql",
            "table": "claims",
            "ts_ms": item.labelled_ms,
            "lsn": item.number * 91,
        }
        payload = {"before": None, "after": after, "op": "u", "ts_ms": item.labelled_ms + 2, "source": source}
        found.add("db.claims", item.labelled_ms + 4, {"schema": None, "payload": payload})
    return found


def with_scores() -> Payload:
    found = Payload(
        "a class beside the probabilities of all",
        predictions={
            "triage": {
                "id": "value.ticket",
                "prediction": "value.result.class",
                "scores": Numbers("value.result.probabilities"),
            }
        },
        labels={"tickets": {"id": "value.ticket", "label": "value.team"}},
    )
    for item in story(14, classes=("billing", "tech", "sales"), weights=(0.5, 0.3, 0.2)):
        rest = round((1 - item.score) / 2, 5)
        probabilities = dict.fromkeys(("billing", "tech", "sales"), rest) | {item.predicted: item.score}
        result = {"class": item.predicted, "probabilities": probabilities, "confidence": item.score}
        found.add("triage", item.made_ms, {"ticket": f"T-{item.number}", "result": result})
        found.add("tickets", item.labelled_ms, {"ticket": f"T-{item.number}", "team": item.true})
    return found


def framed() -> Payload:
    found = Payload("values of a schema registry", cannot=("schema registry", "7"))
    for item in story(15):
        body = b"\0" + struct.pack(">I", 7) + item.uuid.encode() + item.predicted.encode()
        found.add("avro-scores", item.made_ms, None, raw=body)
        found.add("labels", item.labelled_ms, {"id": item.uuid, "label": item.true})
    return found


def only_score() -> Payload:
    found = Payload(
        "a score and no class",
        predictions={
            "p": {
                "id": "value.id",
                "prediction": "value.probability",
                "score": ScoreChoice(0.5, "true", "false"),
            }
        },
        labels={"l": {"id": "value.id", "label": "value.fraud"}},
    )
    for item in story(16):
        probability = item.score if item.predicted == "fraud" else 1 - item.score
        found.add("p", item.made_ms, {"id": item.uuid, "probability": probability, "model": "m"})
        found.add("l", item.labelled_ms, {"id": item.uuid, "fraud": item.true == "fraud"})
    return found


FIRST: tuple[Maker, ...] = (
    flat,
    fraud,
    ads,
    churn,
    two_ids,
    int_and_text,
    in_key,
    in_header,
    prefixed,
    several_models,
    one_topic,
    cloudevents,
    debezium,
    with_scores,
    framed,
    only_score,
)
