"""Classes that are spelt otherwise in labels, or stand beside what looks like them."""

from __future__ import annotations

import random

from tests.inspection.story import HOUR, Maker, Payload, story


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


def cases() -> Payload:
    found = Payload(
        "classes in other letters and with hyphens",
        predictions={"model-decisions": {"id": "value.caseId", "prediction": "value.modelDecision"}},
        labels={
            "case-closed": {
                "id": "value.caseId",
                "label": "value.disposition",
                "classes": {"NOT FRAUD": "not_fraud", "FRAUD": "fraud"},
            }
        },
    )
    for item in story(104, classes=("not_fraud", "fraud")):
        value = {"caseId": item.uuid, "modelDecision": item.predicted, "queue": item.country}
        found.add("model-decisions", item.made_ms, value)
        disposition = item.true.upper().replace("_", " ")
        value = {
            "caseId": item.uuid,
            "disposition": disposition,
            "closedBy": item.user,
            "queue": item.country,
        }
        found.add("case-closed", item.labelled_ms, value)
    return found


def codes() -> Payload:
    found = Payload(
        "codes here, names there: only the joined records tell which is which",
        predictions={"icd": {"id": "value.encounter", "prediction": "value.code"}},
        labels={
            "diagnoses": {
                "id": "value.encounter",
                "label": "value.diagnosis",
                "classes": {"flu": "J11", "cold": "J00", "covid": "U07"},
            }
        },
    )
    names = {"J11": "flu", "J00": "cold", "U07": "covid"}
    for item in story(109, classes=("J11", "J00", "U07"), weights=(0.3, 0.5, 0.2)):
        found.add(
            "icd",
            item.made_ms,
            {"encounter": item.number + 10_000, "code": item.predicted, "ward": item.user},
        )
        value = {"encounter": item.number + 10_000, "diagnosis": names[item.true], "ward": item.user}
        found.add("diagnoses", item.labelled_ms, value)
    return found


def words_of_polarity() -> Payload:
    found = Payload(
        "a text here, a boolean there",
        predictions={"credit": {"id": "value.loan_id", "prediction": "value.prediction"}},
        labels={
            "ledger": {
                "id": "value.loan_id",
                "label": "value.defaulted",
                "classes": {"true": "bad", "false": "good"},
            }
        },
    )
    for item in story(113, classes=("good", "bad"), right=0.55, delay_ms=48 * HOUR):
        value = {
            "loan_id": item.number * 11 + 5,
            "prediction": item.predicted,
            "income": 1_000 + item.number % 90,
        }
        found.add("credit", item.made_ms, value)
        value = {
            "loan_id": item.number * 11 + 5,
            "defaulted": item.true == "bad",
            "income": 1_000 + item.number % 90,
        }
        found.add("ledger", item.labelled_ms, value)
    return found


def floats() -> Payload:
    found = Payload(
        "0 and 1 here, 0.0 and 1.0 there, and a threshold beside the score",
        predictions={"predictive-maintenance": {"id": "value.reading", "prediction": "value.alarm"}},
        labels={"inspections": {"id": "value.reading", "label": "value.failed"}},
    )
    for item in story(119, classes=("0", "1")):
        value = {
            "machine": f"M{item.number % 12}",
            "reading": f"{item.number:x}-{item.uuid[:4]}",
            "score": item.score,
            "threshold": 0.5,
            "alarm": int(item.predicted),
            "temperature": item.amount,
        }
        found.add("predictive-maintenance", item.made_ms, value)
        value = {
            "machine": f"M{item.number % 12}",
            "reading": f"{item.number:x}-{item.uuid[:4]}",
            "failed": float(item.true),
        }
        found.add("inspections", item.labelled_ms, value)
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


def forecast_and_actual() -> Payload:
    found = Payload(
        "each record has a forecast and what came",
        predictions={"weather": {"id": "value.slot_id", "prediction": "value.forecast_class"}},
        labels={"weather": {"id": "value.slot_id", "label": "value.observed_class"}},
    )
    for item in story(422, classes=("dry", "rain"), weights=(0.6, 0.4)):
        value = {
            "slot_id": item.uuid,
            "station": item.country,
            "forecast_class": item.predicted,
            "observed_class": item.true,
        }
        found.add("weather", item.labelled_ms, value)
    return found


CLASSES: tuple[Maker, ...] = (
    churn,
    cases,
    codes,
    words_of_polarity,
    floats,
    name_and_number,
    echo,
    two_tasks,
    forecast_and_actual,
)
