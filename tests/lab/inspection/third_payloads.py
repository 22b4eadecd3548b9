"""Harder payloads, written after both others: what misleads by its names or its contents."""

from __future__ import annotations

import random

from tests.lab.inspection.payloads import HOUR, Maker, Payload, iso, story


def two_tasks() -> Payload:
    found = Payload(
        "two predictions and two labels in each record: a pair must be of one task",
        predictions={"guard": {"id": "value.msg", "prediction": "value.spam_pred"}},
        labels={"moderated": {"id": "value.msg", "label": "value.spam"}},
    )
    chance = random.Random(1)
    for item in story(201, classes=("no", "yes")):
        toxic = chance.choice(["no", "no", "yes"])
        value = {"msg": item.uuid, "toxic_guess": "no", "spam_pred": item.predicted, "toxic_pred": toxic}
        found.add("guard", item.made_ms, value)
        found.add("moderated", item.labelled_ms, {"msg": item.uuid, "spam": item.true, "lang": item.country})
    return found


def name_and_number() -> Payload:
    found = Payload(
        "a class by number and by name, a label by name, and last month's label",
        predictions={"vision": {"id": "value.image", "prediction": "value.detected.class_name"}},
        labels={"annotations": {"id": "value.image", "label": "value.annotation.value"}},
    )
    names = ("cat", "dog", "fox", "hen")
    chance = random.Random(2)
    for item in story(202, classes=names, weights=(0.4, 0.3, 0.2, 0.1)):
        detected = {
            "class_id": names.index(item.predicted),
            "class_name": item.predicted,
            "confidence": item.score,
        }
        value = {
            "image": f"img/{item.number}.png",
            "detected": detected,
            "previous_label": chance.choice(names),
        }
        found.add("vision", item.made_ms, value)
        annotation = {"value": item.true, "by": item.user}
        found.add(
            "annotations", item.labelled_ms, {"image": f"img/{item.number}.png", "annotation": annotation}
        )
    return found


def rare_class() -> Payload:
    found = Payload(
        "two in a hundred are positive, and the plan is copied",
        predictions={"aml": {"id": "value.transfer.ref", "prediction": "value.alert"}},
        labels={"sar": {"id": "value.ref", "label": "value.suspicious"}},
    )
    for item in story(203, 600, weights=(0.98, 0.02), right=0.97):
        value = {"transfer": {"ref": item.uuid, "plan": item.country}, "alert": item.predicted == "fraud"}
        found.add("aml", item.made_ms, value)
        value = {"ref": item.uuid, "suspicious": item.true == "fraud", "plan": item.country}
        found.add("sar", item.labelled_ms, value)
    return found


def small() -> Payload:
    found = Payload(
        "thirty records of each",
        predictions={"p": {"id": "value.k", "prediction": "value.pred"}},
        labels={"l": {"id": "value.k", "label": "value.actual"}},
    )
    for item in story(204, 30, classes=("up", "down"), weights=(0.5, 0.5)):
        found.add("p", item.made_ms, {"k": item.number + 1, "pred": item.predicted, "n": item.number % 9})
        found.add("l", item.labelled_ms, {"k": item.number + 1, "actual": item.true, "n": item.number % 5})
    return found


def echo() -> Payload:
    found = Payload(
        "labels repeat what was decided, and when",
        predictions={
            "underwriting": {
                "id": "value.policy",
                "prediction": "value.decision",
                "timestamp": "value.decidedAt",
                "timestamp_unit": "ms",
            }
        },
        labels={
            "appeals": {
                "id": "value.policy",
                "label": "value.reviewDecision",
                "timestamp": "value.reviewedAt",
            }
        },
    )
    for item in story(205, classes=("grant", "deny"), weights=(0.6, 0.4), delay_ms=5 * HOUR):
        value = {"policy": f"PL{item.number:05d}", "decision": item.predicted, "decidedAt": str(item.made_ms)}
        found.add("underwriting", item.made_ms + 30, value)
        value = {
            "policy": f"PL{item.number:05d}",
            "decision": item.predicted,
            "decidedAt": str(item.made_ms),
            "reviewDecision": item.true,
            "reviewedAt": item.labelled_ms,
            "validUntil": item.labelled_ms + 30 * 24 * HOUR,
        }
        found.add("appeals", item.labelled_ms + 80, value)
    return found


def connect() -> Payload:
    found = Payload(
        "Kafka Connect's schema beside each payload",
        predictions={"scores": {"id": "value.payload.ID", "prediction": "value.payload.PREDICTED_TIER"}},
        labels={"tiers": {"id": "value.payload.ACCOUNT_ID", "label": "value.payload.TIER"}},
    )
    for item in story(206, classes=("GOLD", "SILVER", "BRONZE"), weights=(0.2, 0.3, 0.5)):
        schema = {"type": "struct", "optional": False, "name": "row", "version": 1}
        payload = {"ID": item.number + 700, "PREDICTED_TIER": item.predicted, "REGION": item.country}
        found.add("scores", item.made_ms, {"schema": schema, "payload": payload})
        payload = {
            "ACCOUNT_ID": item.number + 700,
            "TIER": item.true,
            "REGION": item.country,
            "DELETED": False,
        }
        found.add("tiers", item.labelled_ms, {"schema": schema, "payload": payload})
    return found


def user_and_day() -> Payload:
    found = Payload("a user and a day make the id together", cannot=("repeat",))
    chance = random.Random(3)
    for day in range(10):
        for user in range(40):
            made_ms = 1_764_000_000_000 + day * 24 * HOUR + user * 1_000
            true = chance.choice(["buy", "leave"])
            said = true if chance.random() < 0.8 else "buy"
            value = {"user": f"u{user}", "day": iso(made_ms)[:10], "prediction": said}
            found.add("daily", made_ms, value)
            found.add("visits", made_ms + HOUR, {"user": f"u{user}", "day": iso(made_ms)[:10], "label": true})
    return found


def several_elements() -> Payload:
    found = Payload("two predictions in each record", cannot=("value.predictions[]", "up to 2"))
    for item in story(210, classes=("low", "high"), weights=(0.5, 0.5)):
        value = {"id": item.uuid, "predictions": [item.predicted, "low"]}
        found.add("batches", item.made_ms, value)
        found.add("seen", item.labelled_ms, {"id": item.uuid, "actual": item.true})
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


def labels_first() -> Payload:
    found = Payload(
        "labels are often there before the prediction; both topics are named alike",
        predictions={"stream-a": {"id": "value.eventId", "prediction": "value.predictedCategory"}},
        labels={"stream-b": {"id": "value.eventId", "label": "value.category"}},
    )
    for item in story(207, classes=("a", "b"), weights=(0.5, 0.5), delay_ms=10_000):
        found.add(
            "stream-a", item.made_ms + 12_000, {"eventId": item.uuid, "predictedCategory": item.predicted}
        )
        found.add("stream-b", item.labelled_ms, {"eventId": item.uuid, "category": item.true})
    return found


def without_times() -> Payload:
    found = Payload(
        "a file without record times, in milliseconds and ISO",
        predictions={
            "predictions": {
                "id": "value.order_id",
                "model": "value.meta.model.name",
                "prediction": "value.fraud_pred",
                "timestamp": "value.meta.created_at",
                "timestamp_unit": "iso8601",
            }
        },
        labels={
            "labels": {"id": "value.order_id", "label": "value.is_fraud", "timestamp": "value.labeled_at"}
        },
    )
    for item in story(208, classes=("0", "1")):
        model = {"name": "xgb", "version": "1.2", "type": "classifier"}
        value = {
            "order_id": item.number + 9_000,
            "meta": {"created_at": iso(item.made_ms), "model": model},
            "fraud_pred": int(item.predicted),
            "fraud_prob": item.score,
        }
        found.add("predictions", -1, value)
        value = {"order_id": item.number + 9_000, "is_fraud": int(item.true), "labeled_at": item.labelled_ms}
        found.add("labels", -1, value)
    return found


def many_models() -> Payload:
    found = Payload(
        "models by endpoint and variant, ids repeat for each",
        predictions={
            "gateway": {"id": "value.traceId", "model": "value.target", "prediction": "value.answer.intent"}
        },
        labels={"handover": {"id": "value.traceId", "label": "value.intent"}},
    )
    for item in story(209, classes=("refund", "status", "cancel"), weights=(0.4, 0.4, 0.2)):
        for target, said in (("bert-a", item.predicted), ("bert-b", item.true), ("rules", "status")):
            value = {
                "traceId": item.uuid,
                "target": target,
                "answer": {"intent": said, "p": item.score},
                "ok": True,
            }
            found.add("gateway", item.made_ms, value)
        found.add(
            "handover", item.labelled_ms, {"traceId": item.uuid, "intent": item.true, "agent": item.user}
        )
    return found


THIRD: tuple[Maker, ...] = (
    two_tasks,
    name_and_number,
    rare_class,
    small,
    echo,
    connect,
    user_and_day,
    several_elements,
    dots_in_names,
    labels_first,
    without_times,
    many_models,
)
