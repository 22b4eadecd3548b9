"""Labels and classes that are rare, and samples that are small."""

from __future__ import annotations

import random

from tests.inspection.story import Maker, Payload, story


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


def rare_labels() -> Payload:
    found = Payload(
        "labels are a quarter of their topic's records, and some are withdrawn",
        predictions={"risk-checks": {"id": "value.payment.id", "prediction": "value.check.decision"}},
        labels={
            "payment-status": {"id": "value.payment_id", "label": "value.dispute.result", "optional": True}
        },
    )
    for item in story(111, classes=("allow", "block"), weights=(0.8, 0.2)):
        value = {
            "payment": {"id": f"pay_{item.uuid[:12]}", "cents": item.number * 3, "currency": "EUR"},
            "check": {"decision": item.predicted, "rules": ["r1", "r7"]},
        }
        found.add("risk-checks", item.made_ms, value)
        for status in ("authorised", "captured", "settled"):
            value = {"payment_id": f"pay_{item.uuid[:12]}", "status": status, "dispute": None}
            found.add("payment-status", item.made_ms + 1_000, value)
        value = {
            "payment_id": f"pay_{item.uuid[:12]}",
            "status": "disputed",
            "dispute": {"result": item.true},
        }
        found.add("payment-status", item.labelled_ms, value)
    return found


def few_labels_many_numbers() -> Payload:
    found = Payload(
        "three labels in a hundred, beside numbers that both sides have",
        predictions={"kyc": {"id": "value.applicationNo", "prediction": "value.result.outcome"}},
        labels={"manual-review": {"id": "value.applicationNo", "label": "value.decision"}},
    )
    chance = random.Random(7)
    for item in story(120, 2_000, classes=("pass", "refer", "fail"), weights=(0.7, 0.2, 0.1)):
        age, zip_code, cents = (
            chance.randrange(18, 80),
            chance.randrange(10_000, 10_300),
            chance.randrange(2_000),
        )
        value = {
            "applicationNo": 5_000_000 + item.number,
            "applicant": {"age": age, "zip": zip_code, "cents": cents},
            "result": {"outcome": item.predicted, "reasons": ["r"]},
        }
        found.add("kyc", item.made_ms, value)
        if chance.random() < 0.03:
            value = {
                "applicationNo": 5_000_000 + item.number,
                "age": age,
                "decision": item.true,
                "cents": cents,
            }
            found.add("manual-review", item.labelled_ms, value)
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


RARITY: tuple[Maker, ...] = (ads, rare_labels, few_labels_many_numbers, rare_class, small)
