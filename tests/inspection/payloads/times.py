"""Times in many units, and topics in which labels come first."""

from __future__ import annotations

import random

from tests.inspection.story import HOUR, Maker, Payload, iso, story


def nanoseconds() -> Payload:
    found = Payload(
        "nanoseconds, and the ids of tracing",
        predictions={
            "spans": {
                "id": "value.attributes.request_id",
                "prediction": "value.attributes.ml.prediction",
                "timestamp_unit": "ns",
            }
        },
        labels={"judged": {"id": "value.request_id", "label": "value.actual"}},
    )
    chance = random.Random(1)
    for item in story(102, classes=("ok", "abuse", "spam"), weights=(0.7, 0.2, 0.1)):
        attributes = {
            "request_id": item.uuid,
            "user_id": item.user,
            "ml": {"prediction": item.predicted, "model": "abuse-2", "latency_ms": chance.randrange(40)},
            "http": {"status": 200, "method": "POST"},
        }
        value = {
            "trace_id": f"{chance.getrandbits(128):032x}",
            "span_id": f"{chance.getrandbits(64):016x}",
            "start_time": item.made_ms * 1_000_000 + 77,
            "end_time": (item.made_ms + 12) * 1_000_000 + 5,
            "attributes": attributes,
        }
        found.add("spans", item.made_ms + 15, value)
        value = {"request_id": item.uuid, "actual": item.true, "reviewer": f"r{item.number % 4}"}
        found.add("judged", item.labelled_ms, value)
    return found


def dates_only() -> Payload:
    found = Payload(
        "dates without a time of day",
        predictions={"screening": {"id": "value.applicant", "prediction": "value.screen", "timestamp": None}},
        labels={"hires": {"id": "value.applicant", "label": "value.hired", "timestamp": None}},
    )
    for item in story(117, classes=("no", "yes"), weights=(0.7, 0.3), delay_ms=90 * HOUR):
        value = {"applicant": f"A{item.number}", "screen": item.predicted, "date": iso(item.made_ms)[:10]}
        found.add("screening", item.made_ms, value)
        value = {"applicant": f"A{item.number}", "hired": item.true, "date": iso(item.labelled_ms)[:10]}
        found.add("hires", item.labelled_ms, value)
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


TIMES: tuple[Maker, ...] = (nanoseconds, dates_only, labels_first, without_times)
