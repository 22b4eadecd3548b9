"""CloudEvents, and what wraps a value without being one of its fields."""

from __future__ import annotations

import json
import struct

from tests.inspection.payloads.parts import batches, event
from tests.inspection.story import Maker, Payload, iso, story


def framed() -> Payload:
    found = Payload("values of a schema registry", cannot=("schema registry", "7"))
    for item in story(15):
        body = b"\0" + struct.pack(">I", 7) + item.uuid.encode() + item.predicted.encode()
        found.add("avro-scores", item.made_ms, None, raw=body)
        found.add("labels", item.labelled_ms, {"id": item.uuid, "label": item.true})
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


def binary_cloudevents() -> Payload:
    found = Payload(
        "CloudEvents, binary, on one topic",
        predictions={
            "loans": {
                "envelope": "cloudevents",
                "id": "value.subject",
                "prediction": "value.data.recommendation",
                "kind": "value.type",
            }
        },
        labels={"loans": {"id": "value.subject", "label": "value.data.final", "kind": "value.type"}},
    )
    for item in story(108, classes=("approve", "reject"), weights=(0.6, 0.4)):
        headers = {"ce_specversion": "1.0", "ce_source": "/loans", "ce_subject": f"loan/{item.number}"}
        own = {"ce_id": item.uuid, "ce_type": "com.bank.loan.scored", "ce_time": iso(item.made_ms)}
        found.add("loans", item.made_ms, {"recommendation": item.predicted}, headers=headers | own)
        own = {"ce_id": item.uuid[::-1], "ce_type": "com.bank.loan.closed", "ce_time": iso(item.labelled_ms)}
        found.add("loans", item.labelled_ms, {"final": item.true}, headers=headers | own)
    return found


def double_encoded() -> Payload:
    found = Payload(
        "JSON inside a JSON string",
        predictions={"wrapped": {"id": "value.id", "prediction": "value.prediction"}},
        labels={"labels": {"id": "value.id", "label": "value.label"}},
    )
    for item in story(118):
        inner = json.dumps({"id": item.uuid, "prediction": item.predicted})
        found.add("wrapped", item.made_ms, None, raw=json.dumps(inner).encode())
        found.add("labels", item.labelled_ms, {"id": item.uuid, "label": item.true})
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


def cloudevents_two_modes() -> Payload:
    found = Payload(
        "predictions as binary CloudEvents, labels as structured ones",
        predictions={
            "scoring": {
                "envelope": "cloudevents",
                "id": "value.data.order",
                "prediction": "value.data.risk_label",
                "timestamp": "value.time",
            }
        },
        labels={"orders": {"envelope": "cloudevents", "id": "value.subject", "label": "value.data.result"}},
    )
    for item in story(412, classes=("ok", "fraud"), weights=(0.8, 0.2)):
        headers = {
            "ce_specversion": "1.0",
            "ce_id": item.uuid,
            "ce_source": "/risk",
            "ce_type": "risk.scored",
            "ce_time": iso(item.made_ms),
        }
        value = {"order": f"O{item.number:05d}", "risk_label": item.predicted}
        found.add("scoring", item.made_ms + 3, value, headers=headers)
        closed = event("order.closed", item.uuid[::-1], {"result": item.true}, subject=f"O{item.number:05d}")
        found.add("orders", item.labelled_ms, closed)
    return found


def cloudevent_of_elements() -> Payload:
    found = Payload(
        "a CloudEvent whose data is a list of results",
        predictions={
            "detections": {
                "envelope": "cloudevents",
                "id": "value.data.items[].asset",
                "prediction": "value.data.items[].state",
            }
        },
        labels={"inspections": {"id": "value.asset", "label": "value.found_state"}},
    )
    for number, calls in enumerate(
        batches(story(413, classes=("fine", "worn", "broken"), weights=(6, 3, 1)))
    ):
        items = [{"asset": f"A-{item.number}", "state": item.predicted} for item in calls]
        value = event("asset.checked", f"scan-{number}", {"items": items, "site": "north"})
        found.add("detections", calls[-1].made_ms, value)
        for item in calls:
            value = {"asset": f"A-{item.number}", "found_state": item.true, "by": item.user}
            found.add("inspections", item.labelled_ms, value)
    return found


ENVELOPES: tuple[Maker, ...] = (
    framed,
    cloudevents,
    binary_cloudevents,
    double_encoded,
    connect,
    cloudevents_two_modes,
    cloudevent_of_elements,
)
