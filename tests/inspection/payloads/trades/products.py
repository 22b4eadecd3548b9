"""Records as monitoring products and platforms write them."""

from __future__ import annotations

import random

from tests.inspection.story import Maker, Payload, iso, story


def sagemaker_capture() -> Payload:
    found = Payload(
        "data capture of an endpoint, and ground truth by event",
        predictions={
            "capture": {
                "id": "value.eventMetadata.eventId",
                "prediction": "value.captureData.endpointOutput.data",
                "timestamp": "value.eventMetadata.inferenceTime",
                "timestamp_unit": "iso8601",
            }
        },
        labels={"ground-truth": {"id": "value.eventMetadata.eventId", "label": "value.groundTruthData.data"}},
    )
    chance = random.Random(1)
    for item in story(801, classes=("setosa", "versicolor", "virginica"), weights=(0.3, 0.4, 0.3)):
        measured = ",".join(f"{chance.uniform(0.1, 7):.1f}" for _ in range(4))
        value = {
            "captureData": {
                "endpointInput": {"observedContentType": "text/csv", "mode": "INPUT", "data": measured},
                "endpointOutput": {
                    "observedContentType": "text/csv",
                    "mode": "OUTPUT",
                    "data": item.predicted,
                },
            },
            "eventMetadata": {"eventId": item.uuid, "inferenceTime": iso(item.made_ms)},
            "eventVersion": "0",
        }
        found.add("capture", item.made_ms, value)
        value = {
            "groundTruthData": {"data": item.true, "encoding": "CSV"},
            "eventMetadata": {"eventId": item.uuid},
            "eventVersion": "0",
        }
        found.add("ground-truth", item.labelled_ms, value)
    return found


def observability_columns() -> Payload:
    found = Payload(
        "label and score of each side by the names of an observability product",
        predictions={
            "arize": {
                "id": "value.prediction_id",
                "prediction": "value.prediction_label",
                "timestamp": "value.prediction_ts",
                "timestamp_unit": "s",
            }
        },
        labels={"arize-actuals": {"id": "value.prediction_id", "label": "value.actual_label"}},
    )
    for item in story(802, classes=("stays", "leaves"), weights=(0.7, 0.3)):
        value = {
            "prediction_id": item.uuid,
            "prediction_ts": item.made_ms // 1_000,
            "prediction_label": item.predicted,
            "prediction_score": item.score,
            "features": {"tenure": item.number % 70, "plan": item.country},
            "tags": {"env": "prod"},
        }
        found.add("arize", item.made_ms, value)
        value = {"prediction_id": item.uuid, "actual_label": item.true, "actual_score": 1.0}
        found.add("arize-actuals", item.labelled_ms, value)
    return found


def columns_of_a_notebook() -> Payload:
    found = Payload(
        "y_pred beside y_pred_proba, and the truth under a name of its own",
        predictions={"scored": {"id": "value.identifier", "prediction": "value.y_pred"}},
        labels={"known": {"id": "value.identifier", "label": "value.work_home_actual"}},
    )
    for item in story(803, classes=("0", "1"), weights=(0.5, 0.5)):
        value = {
            "identifier": item.number,
            "distance": item.amount,
            "y_pred": int(item.predicted),
            "y_pred_proba": item.score if item.predicted == "1" else round(1 - item.score, 4),
        }
        found.add("scored", item.made_ms, value)
        found.add("known", item.labelled_ms, {"identifier": item.number, "work_home_actual": int(item.true)})
    return found


def salesforce_changes() -> Payload:
    found = Payload(
        "changes of a customer system, which lists the records that a change is of",
        predictions={"case-routing": {"id": "value.caseId", "prediction": "value.predictedPriority"}},
        labels={
            "CaseChangeEvent": {
                "id": "value.payload.ChangeEventHeader.recordIds[]",
                "label": "value.payload.Priority",
            }
        },
    )
    for item in story(804, classes=("High", "Medium", "Low"), weights=(0.2, 0.5, 0.3)):
        case = f"500{item.number:015d}"
        value = {"caseId": case, "predictedPriority": item.predicted, "modelVersion": "r12"}
        found.add("case-routing", item.made_ms, value)
        header = {
            "entityName": "Case",
            "recordIds": [case],
            "changeType": "UPDATE",
            "commitTimestamp": item.labelled_ms,
            "commitUser": item.user,
        }
        value = {
            "schema": "IeRuaY6cbI_HsV8Rv1Mc5g",
            "payload": {"ChangeEventHeader": header, "Priority": item.true},
            "event": {"replayId": 9_000 + item.number},
        }
        found.add("CaseChangeEvent", item.labelled_ms, value)
    return found


def fhir() -> Payload:
    found = Payload(
        "resources of a hospital, codes in lists of one",
        predictions={
            "risk-assessments": {
                "id": "value.identifier[].value",
                "prediction": "value.prediction[].qualitativeRisk.coding[0].code",
            }
        },
        labels={
            "observations": {
                "id": "value.identifier[].value",
                "label": "value.valueCodeableConcept.coding[].code",
            }
        },
    )
    for item in story(805, classes=("low", "moderate", "high"), weights=(0.5, 0.3, 0.2)):
        identifier = [{"system": "urn:oid:1.2.36", "value": f"enc-{item.number + 77_000}"}]
        risk = {"coding": [{"system": "http://terminology/risk", "code": item.predicted}]}
        value = {
            "resourceType": "RiskAssessment",
            "identifier": identifier,
            "status": "final",
            "occurrenceDateTime": iso(item.made_ms),
            "prediction": [{"qualitativeRisk": risk, "probabilityDecimal": item.score}],
        }
        found.add("risk-assessments", item.made_ms, value)
        value = {
            "resourceType": "Observation",
            "identifier": identifier,
            "status": "final",
            "effectiveDateTime": iso(item.labelled_ms),
            "valueCodeableConcept": {"coding": [{"system": "http://terminology/risk", "code": item.true}]},
        }
        found.add("observations", item.labelled_ms, value)
    return found


def log_attributes() -> Payload:
    found = Payload(
        "attributes of a log record as a list of keys and values",
        cannot=("value.attributes", "up to 2"),
    )
    for item in story(806, classes=("base", "peak"), weights=(0.7, 0.3)):
        attributes = [
            {"key": "ml.class", "value": {"stringValue": item.predicted}},
            {"key": "request", "value": {"stringValue": item.uuid}},
        ]
        value = {
            "timeUnixNano": str(item.made_ms * 1_000_000),
            "severityText": "INFO",
            "attributes": attributes,
        }
        found.add("otel-logs", item.made_ms, value)
        found.add("settled", item.labelled_ms, {"request": item.uuid, "load_class": item.true})
    return found


def zero_shot() -> Payload:
    found = Payload(
        "classes and their scores in arrays, the likeliest first",
        cannot=("up to 3", "value.labels[0] takes that one alone"),
    )
    classes = ("robin", "wren", "owl")
    for item in story(807, classes=classes, weights=(0.4, 0.4, 0.2)):
        rest = round(1 - item.score, 4)
        others = [name for name in classes if name != item.predicted]
        value = {
            "clip": item.uuid,
            "labels": [item.predicted, *others],
            "scores": [item.score, round(rest * 0.7, 4), round(rest * 0.3, 4)],
        }
        found.add("bird-calls", item.made_ms, value)
        found.add("ornithologists", item.labelled_ms, {"clip": item.uuid, "species": item.true, "rank": 1})
    return found


def mqtt_bridge() -> Payload:
    found = Payload(
        "messages of machines with the topic they came from",
        predictions={
            "mqtt": {"id": "value.payload.sid", "prediction": "value.payload.state", "timestamp": "value.ts"}
        },
        labels={"workshop": {"id": "value.sample", "label": "value.finding"}},
    )
    for item in story(808, classes=("good", "worn", "broken"), weights=(0.6, 0.3, 0.1)):
        value = {
            "topic": f"plant/{item.number % 7}/vibration",
            "qos": 1,
            "retain": False,
            "ts": item.made_ms,
            "payload": {"sid": f"s-{item.uuid[:8]}", "state": item.predicted, "rms": item.amount},
        }
        found.add("mqtt", item.made_ms, value)
        value = {"sample": f"s-{item.uuid[:8]}", "finding": item.true, "mechanic": item.user}
        found.add("workshop", item.labelled_ms, value)
    return found


PRODUCTS: tuple[Maker, ...] = (
    sagemaker_capture,
    observability_columns,
    columns_of_a_notebook,
    salesforce_changes,
    fhir,
    log_attributes,
    zero_shot,
    mqtt_bridge,
)
