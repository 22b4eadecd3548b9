"""Records as twenty-six public systems write them, each with an independent count of what is right in them.

Samples are written here, in the shape that the named document shows. `outcomes` has, by model, how many
predictions have a label and how many of them are right; it is counted from the story that the records tell,
not from the records. `cannot`: words that `inspect` says where nothing can be joined.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.inspection.story import Item, Payload, iso, story

CHURN = ("stays", "leaves")
DIGITS = ("0", "1")
PLANTS = ("setosa", "versicolor", "virginica")


@dataclass
class System:
    """Records of one system, and what is right about them."""

    name: str
    source: str
    """Title of the public document, or its address."""
    payload: Payload
    outcomes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Labelled predictions of each model, and those that are right."""
    cannot: Sequence[str] = ()


def counted(
    items: Sequence[Item], said: Callable[[Item], str] = lambda item: item.predicted
) -> tuple[int, int]:
    return len(items), sum(said(item) == item.true for item in items)


def probability(item: Item, positive: str) -> float:
    """Of the positive class, at least .5 where it is predicted."""
    return round(item.score if item.predicted == positive else 1 - item.score, 4)


def strict(items: Sequence[Item]) -> list[Item]:
    """Items whose score is on no threshold."""
    return [item for item in items if 0.5 < item.score < 1]


def kserve_v2() -> System:
    # KServe documentation, "Inference Logger" and "V2 / Open Inference Protocol"
    found = Payload("kserve_v2")
    items = story(901, classes=DIGITS, weights=(0.6, 0.4))
    for item in items:
        data = {
            "model_name": "sklearn-iris",
            "model_version": "v1",
            "id": item.uuid,
            "outputs": [
                {"name": "predict", "datatype": "INT64", "shape": [1], "data": [int(item.predicted)]}
            ],
        }
        event = {
            "specversion": "1.0",
            "id": item.uuid,
            "type": "org.kubeflow.serving.inference.response",
            "source": "http://localhost:9081/",
            "inferenceservicename": "sklearn-iris",
            "namespace": "default",
            "time": iso(item.made_ms),
            "data": data,
        }
        found.add("kserve-logger", item.made_ms, event)
        found.add("ground-truth", item.labelled_ms, {"request_id": item.uuid, "label": int(item.true)})
    return System("KServe v2", "KServe: Inference Logger", found, {"sklearn-iris": counted(items)})


def triton() -> System:
    # NVIDIA Triton, "HTTP/REST and GRPC Protocol", "Inference Response JSON Object"
    found = Payload("triton")
    items = story(902, classes=("cat", "dog", "bird"), weights=(0.4, 0.3, 0.3))
    for item in items:
        found.add(
            "triton.responses",
            item.made_ms,
            {
                "id": item.uuid,
                "model_name": "resnet",
                "model_version": "2",
                "outputs": [{"name": "LABEL", "datatype": "BYTES", "shape": [1], "data": [item.predicted]}],
            },
        )
        found.add("annotations", item.labelled_ms, {"image": item.uuid, "annotation": item.true})
    return System("Triton", "Triton: HTTP/REST and GRPC Protocol", found, {"resnet": counted(items)})


def seldon_v1() -> System:
    # Seldon Core 1, "Payload Logging" and "Seldon Protocol"
    found = Payload("seldon")
    items = strict(story(903, classes=CHURN, weights=(0.7, 0.3)))
    for item in items:
        p = probability(item, "leaves")
        data = {"data": {"names": ["stays", "leaves"], "ndarray": [[round(1 - p, 4), p]]}, "meta": {}}
        headers = {
            "ce_specversion": "1.0",
            "ce_id": item.uuid,
            "ce_type": "io.seldon.serving.inference.response",
            "ce_source": "http://:8000/",
            "ce_requestid": item.uuid,
            "ce_inferenceservicename": "churn",
        }
        found.add("seldon", item.made_ms, data, headers=headers)
        found.add("feedback", item.labelled_ms, {"request": item.uuid, "truth": item.true})
    return System("Seldon Core 1", "Seldon Core: Payload Logging", found, {"churn": counted(items)})


def seldon_v2() -> System:
    # Seldon Core 2, "Kafka": topics of pipelines hold inference responses, keyed by the request id
    found = Payload("seldon2")
    items = story(904, classes=DIGITS, weights=(0.5, 0.5))
    for item in items:
        value = {
            "modelName": "income_1",
            "modelVersion": "1",
            "id": item.uuid,
            "outputs": [
                {
                    "name": "predict",
                    "datatype": "INT64",
                    "shape": ["1", "1"],
                    "contents": {"int64Contents": [item.predicted]},
                }
            ],
        }
        found.add("seldon.default.model.income.outputs", item.made_ms, value, key=item.uuid)
        found.add("income-truth", item.labelled_ms, {"label": int(item.true)}, key=item.uuid)
    return System("Seldon Core 2", "Seldon Core 2: Kafka", found, {"income_1": counted(items)})


def capture(item: Item, data: str, encoding: str, content_type: str) -> dict[str, Any]:
    return {
        "captureData": {
            "endpointInput": {
                "observedContentType": "text/csv",
                "mode": "INPUT",
                "data": f"132,{item.amount},10",
                "encoding": "CSV",
            },
            "endpointOutput": {
                "observedContentType": content_type,
                "mode": "OUTPUT",
                "data": data,
                "encoding": encoding,
            },
        },
        "eventMetadata": {"eventId": item.uuid, "inferenceTime": iso(item.made_ms)},
        "eventVersion": "0",
    }


def sagemaker_csv() -> System:
    # Amazon SageMaker, "Data capture" and "Ingest ground truth labels and merge them with predictions"
    found = Payload("sagemaker")
    items = strict(story(905, classes=DIGITS, weights=(0.7, 0.3)))
    for item in items:
        data = repr(probability(item, "1"))
        found.add("capture", item.made_ms, capture(item, data, "CSV", "text/csv; charset=utf-8"))
        truth = {
            "groundTruthData": {"data": item.true, "encoding": "CSV"},
            "eventMetadata": {"eventId": item.uuid},
            "eventVersion": "0",
        }
        found.add("groundtruth", item.labelled_ms, truth)
    source = "SageMaker: Monitor models with data capture"
    return System("SageMaker data capture, CSV", source, found, {"capture": counted(items)})


def sagemaker_base64() -> System:
    # Amazon SageMaker, "Data capture": contents that are not listed as CSV or JSON are in base64
    found = Payload("sagemaker64")
    items = story(906, classes=PLANTS, weights=(0.4, 0.3, 0.3))
    for item in items:
        said = base64.b64encode(json.dumps({"predicted_label": item.predicted}).encode()).decode()
        found.add("capture64", item.made_ms, capture(item, said, "BASE64", "application/x-json"))
        found.add("truth64", item.labelled_ms, {"event_id": item.uuid, "label": item.true})
    source = "SageMaker: Monitor models with data capture"
    return System("SageMaker data capture, base64", source, found, {"capture64": counted(items)})


def vertex() -> System:
    # Vertex AI, "Use prediction request-response logging": rows whose payloads are arrays of JSON texts
    found = Payload("vertex")
    items = story(907, classes=CHURN, weights=(0.6, 0.4))
    for item in items:
        row = {
            "endpoint": "7315",
            "deployed_model_id": "8804",
            "logging_time": iso(item.made_ms),
            "request_id": item.uuid,
            "request_payload": [json.dumps({"tenure": item.amount})],
            "response_payload": [json.dumps({"predicted_label": item.predicted, "confidence": item.score})],
        }
        found.add("vertex-logging", item.made_ms, row)
        found.add("crm-churn", item.labelled_ms, {"request_id": item.uuid, "actual": item.true})
    return System(
        "Vertex AI", "Vertex AI: prediction request-response logging", found, {"8804": counted(items)}
    )


def azure_ml() -> System:
    # Azure Machine Learning, "Collect production data from models deployed for real-time inferencing"
    found = Payload("azureml")
    items = story(908, classes=CHURN, weights=(0.6, 0.4))
    for item in items:
        event = {
            "specversion": "1.0",
            "id": f"e{item.number}",
            "source": "/subscriptions/s/endpoints/churn",
            "type": "azureml.inference.model_outputs",
            "datacontenttype": "application/json",
            "time": iso(item.made_ms),
            "data": [{"label": item.predicted, "score": item.score}],
            "correlationid": item.uuid,
            "xrequestid": item.uuid,
            "modelversion": "default",
            "collectdatatype": "pandas.core.frame.DataFrame",
            "agent": "azureml-ai-monitoring/0.1.0b4",
            "contentrange": "bytes 0-116/117",
        }
        found.add("azureml-outputs", item.made_ms, event)
        found.add("azureml-truth", item.labelled_ms, {"correlationid": item.uuid, "ground_truth": item.true})
    source = "Azure Machine Learning: production data collection"
    return System("Azure ML data collector", source, found, {"azureml-outputs": counted(items)})


def databricks() -> System:
    # Databricks, "Inference tables for monitoring and debugging models" (MLflow's scoring protocol inside)
    found = Payload("databricks")
    items = story(909, classes=DIGITS, weights=(0.6, 0.4))
    for item in items:
        row = {
            "databricks_request_id": item.uuid,
            "client_request_id": None,
            "date": iso(item.made_ms)[:10],
            "timestamp_ms": item.made_ms,
            "status_code": 200,
            "execution_time_ms": 11 + item.number % 9,
            "request": json.dumps({"dataframe_split": {"columns": ["amount"], "data": [[item.amount]]}}),
            "response": json.dumps({"predictions": [int(item.predicted)]}),
            "sampling_fraction": 1.0,
            "request_metadata": {"endpoint_name": "fraud", "model_name": "fraud", "model_version": "3"},
        }
        found.add("payload-table", item.made_ms, row)
        found.add("label-table", item.labelled_ms, {"request_id": item.uuid, "ground_truth": int(item.true)})
    source = "Databricks: Inference tables"
    return System("Databricks inference tables", source, found, {"fraud": counted(items)})


def mlflow() -> System:
    # MLflow, "Inference Server Specification": the answer is `predictions`, a proxy adds the id
    found = Payload("mlflow")
    items = story(910, classes=PLANTS, weights=(0.4, 0.3, 0.3))
    for item in items:
        value = {
            "request_id": item.uuid,
            "model": "iris-rf",
            "request": {"dataframe_records": [{"petal": item.amount}]},
            "response": {"predictions": [item.predicted]},
        }
        found.add("mlflow-serving", item.made_ms, value)
        found.add("species", item.labelled_ms, {"request_id": item.uuid, "species": item.true})
    return System(
        "MLflow serving", "MLflow: Inference Server Specification", found, {"iris-rf": counted(items)}
    )


def bentoml() -> System:
    # BentoML, "Inference data collection and model monitoring": bentoml.monitor's rows
    found = Payload("bentoml")
    items = story(911, classes=DIGITS, weights=(0.5, 0.5))
    for item in items:
        row = {
            "sepal length": item.amount,
            "sepal width": 3.0,
            "pred": int(item.predicted),
            "timestamp": iso(item.made_ms),
            "request_id": str(10**15 + item.number * 7),
        }
        found.add("iris_classifier_prediction", item.made_ms, row)
        found.add(
            "iris_truth", item.labelled_ms, {"request_id": 10**15 + item.number * 7, "target": int(item.true)}
        )
    source = "BentoML: Model monitoring"
    return System("BentoML monitoring", source, found, {"iris_classifier_prediction": counted(items)})


def evidently() -> System:
    # Evidently, "Data definition": a row has id, timestamp, prediction and, once known, target
    found = Payload("evidently")
    items = story(912, classes=CHURN, weights=(0.6, 0.4))
    for item in items:
        row = {
            "id": item.number,
            "timestamp": iso(item.labelled_ms),
            "tenure": item.amount,
            "target": item.true,
            "prediction": item.predicted,
        }
        found.add("current", item.labelled_ms, row)
    return System("Evidently", "Evidently: Data definition", found, {"current": counted(items)})


def nannyml() -> System:
    # NannyML, "Data requirements": identifier, timestamp, y_pred_proba and y_pred; targets come later
    found = Payload("nannyml")
    items = strict(story(913, classes=DIGITS, weights=(0.5, 0.5)))
    for item in items:
        row = {
            "id": str(item.number),
            "timestamp": iso(item.made_ms),
            "car_value": item.amount,
            "y_pred_proba": probability(item, "1"),
            "y_pred": int(item.predicted),
        }
        found.add("loans-analysis", item.made_ms, row)
        found.add("loans-targets", item.labelled_ms, {"id": str(item.number), "repaid": int(item.true)})
    return System("NannyML", "NannyML: Data requirements", found, {"loans-analysis": counted(items)})


def arize() -> System:
    # Arize, "Model schema reference": prediction and actual share prediction_id
    found = Payload("arize")
    items = story(914)
    for item in items:
        record = {
            "prediction_id": item.uuid,
            "model_id": "fraud-model",
            "model_version": "v1.7",
            "model_type": "score_categorical",
            "prediction_label": item.predicted,
            "prediction_score": item.score,
            "features": {"state": item.country, "amount": item.amount},
            "tags": {"location": item.country},
            "prediction_timestamp": item.made_ms // 1000,
        }
        found.add("arize-predictions", item.made_ms, record)
        found.add("arize-actuals", item.labelled_ms, {"prediction_id": item.uuid, "actual_label": item.true})
    return System("Arize", "Arize: Model schema reference", found, {"fraud-model": counted(items)})


def fiddler() -> System:
    # Fiddler, "Publishing production data": events with the model's output, updated by event id
    found = Payload("fiddler")
    items = strict(story(915, classes=("no", "yes"), weights=(0.6, 0.4)))
    for item in items:
        event = {
            "event_id": item.uuid,
            "timestamp": item.made_ms,
            "tenure": item.amount,
            "probability_churned": probability(item, "yes"),
        }
        found.add("fiddler-events", item.made_ms, event)
        found.add("fiddler-updates", item.labelled_ms, {"event_id": item.uuid, "churned": item.true})
    return System("Fiddler", "Fiddler: Publishing production data", found, {"fiddler-events": counted(items)})


def whylabs() -> System:
    # WhyLabs, "Model performance": columns for predictions, scores and targets, logged as one row
    found = Payload("whylabs")
    items = story(916, classes=PLANTS, weights=(0.4, 0.3, 0.3))
    for item in items:
        row = {
            "trace_id": item.uuid,
            "output_prediction": item.predicted,
            "output_score": item.score,
            "output_target": item.true,
        }
        found.add("whylogs-rows", item.labelled_ms, row)
    return System("WhyLabs", "WhyLabs: Classification performance", found, {"whylogs-rows": counted(items)})


def debezium() -> System:
    # Debezium, "Data change events": rows of two tables, each in its envelope
    found = Payload("debezium")
    items = story(917)
    for item in items:
        for topic, stamp, row in (
            (
                "db.public.decisions",
                item.made_ms,
                {"order_id": item.number, "model": "m1", "decision": item.predicted},
            ),
            ("db.public.disputes", item.labelled_ms, {"order_id": item.number, "finding": item.true}),
        ):
            found.add(
                topic,
                stamp,
                {
                    "before": None,
                    "after": row,
                    "op": "c",
                    "ts_ms": stamp,
                    "source": {
                        "connector": "postgresql",
                        "db": "shop",
                        "table": topic.rsplit(".", 1)[1],
                        "lsn": stamp,
                    },
                },
            )
    return System("Debezium", "Debezium: Data change events", found, {"m1": counted(items)})


def cloudevents() -> System:
    # CloudEvents 1.0, "Kafka Protocol Binding", binary mode
    found = Payload("cloudevents")
    items = story(918)
    for item in items:
        for topic, stamp, data in (
            ("scored", item.made_ms, {"tx": item.uuid, "model": "m2", "decision": item.predicted}),
            ("settled", item.labelled_ms, {"tx": item.uuid, "outcome": item.true}),
        ):
            headers = {
                "ce_specversion": "1.0",
                "ce_id": f"{topic}-{item.number}",
                "ce_source": "/risk",
                "ce_type": f"com.example.{topic}",
                "ce_time": iso(stamp),
            }
            found.add(topic, stamp, data, headers=headers)
    return System("CloudEvents", "CloudEvents: Kafka Protocol Binding", found, {"m2": counted(items)})


def snowplow() -> System:
    # Snowplow, "Analytics SDKs": an enriched event as JSON, with its self-describing event by vendor
    found = Payload("snowplow")
    items = story(919)
    for item in items:
        event = {
            "app_id": "web",
            "platform": "srv",
            "event_id": f"{item.uuid[:-1]}0",
            "collector_tstamp": iso(item.made_ms),
            "event": "unstruct",
            "unstruct_event_com_acme_prediction_1": {
                "request_id": item.uuid,
                "model": "rec-4",
                "prediction": item.predicted,
            },
        }
        found.add("enriched-predictions", item.made_ms, event)
        event = {
            "app_id": "web",
            "platform": "srv",
            "event_id": f"{item.uuid[:-1]}1",
            "collector_tstamp": iso(item.labelled_ms),
            "event": "unstruct",
            "unstruct_event_com_acme_outcome_1": {"request_id": item.uuid, "outcome": item.true},
        }
        found.add("enriched-outcomes", item.labelled_ms, event)
    return System("Snowplow", "Snowplow: Analytics SDKs", found, {"rec-4": counted(items)})


def segment() -> System:
    # Segment, "Spec: Track": predictions and outcomes as two events of one stream
    found = Payload("segment")
    items = story(920)
    for item in items:
        for name, stamp, properties in (
            (
                "Prediction Served",
                item.made_ms,
                {"request_id": item.uuid, "model": "s1", "prediction": item.predicted},
            ),
            ("Outcome Recorded", item.labelled_ms, {"request_id": item.uuid, "outcome": item.true}),
        ):
            call = {
                "type": "track",
                "event": name,
                "messageId": f"{name[0]}{item.number}",
                "userId": item.user,
                "properties": properties,
                "timestamp": iso(stamp),
                "context": {"library": {"name": "analytics-python"}},
            }
            found.add("tracks", stamp, call)
    return System("Segment", "Segment: Spec, Track", found, {"s1": counted(items)})


def opentelemetry() -> System:
    # OpenTelemetry, "OTLP/JSON": a log record whose attributes are pairs of key and value
    found = Payload("otel")
    items = story(921)
    for item in items:
        for topic, stamp, attributes in (
            (
                "otlp_logs",
                item.made_ms,
                {"request.id": item.uuid, "model.name": "o1", "prediction.class": item.predicted},
            ),
            ("otlp_outcomes", item.labelled_ms, {"request.id": item.uuid, "outcome.class": item.true}),
        ):
            record = {
                "timeUnixNano": str(stamp * 1_000_000),
                "severityText": "INFO",
                "body": {"stringValue": topic},
                "attributes": [
                    {"key": key, "value": {"stringValue": text}} for key, text in attributes.items()
                ],
            }
            logs = {
                "resourceLogs": [
                    {"resource": {}, "scopeLogs": [{"scope": {"name": "risk"}, "logRecords": [record]}]}
                ]
            }
            found.add(topic, stamp, logs)
    return System("OpenTelemetry logs", "OpenTelemetry: OTLP/JSON", found, {"o1": counted(items)})


def tensorflow() -> System:
    # TensorFlow Serving, "RESTful API": `predictions` alone; the gateway writes the request's id as the key
    found = Payload("tfserving")
    items = strict(story(922, classes=DIGITS, weights=(0.6, 0.4)))
    for item in items:
        p = probability(item, "1")
        found.add("tf-serving", item.made_ms, {"predictions": [[round(1 - p, 4), p]]}, key=item.uuid)
        found.add("tf-truth", item.labelled_ms, {"id": item.uuid, "label": int(item.true)})
    return System(
        "TensorFlow Serving", "TensorFlow Serving: RESTful API", found, {"tf-serving": counted(items)}
    )


def datarobot() -> System:
    # DataRobot, "Prediction API": rows with the class, the probability of each and the threshold
    found = Payload("datarobot")
    items = strict(story(923, classes=("no", "yes"), weights=(0.6, 0.4)))
    for item in items:
        p = probability(item, "yes")
        row = {
            "rowId": 0,
            "prediction": item.predicted,
            "predictionThreshold": 0.5,
            "predictionValues": [{"label": "yes", "value": p}, {"label": "no", "value": round(1 - p, 4)}],
            "passthroughValues": {"association_id": item.uuid},
            "deploymentApprovalStatus": "APPROVED",
        }
        found.add("datarobot", item.made_ms, {"data": [row]})
        found.add("actuals", item.labelled_ms, {"associationId": item.uuid, "actualValue": item.true})
    return System("DataRobot", "DataRobot: Prediction API reference", found, {"datarobot": counted(items)})


def aporia() -> System:
    # Aporia, "Logging data": predictions and actuals by id
    found = Payload("aporia")
    items = story(924, classes=("true", "false"), weights=(0.4, 0.6))
    for item in items:
        record = {
            "id": item.uuid,
            "model_id": "will-buy",
            "model_version": "v1",
            "occurred_at": iso(item.made_ms),
            "features": {"age": item.amount},
            "predictions": {"will_buy_insurance": item.predicted == "true"},
        }
        found.add("aporia-predictions", item.made_ms, record)
        actual = {"id": item.uuid, "actuals": {"will_buy_insurance": item.true == "true"}}
        found.add("aporia-actuals", item.labelled_ms, actual)
    return System("Aporia", "Aporia: Logging data", found, {"will-buy": counted(items)})


def challengers() -> System:
    # DataRobot, "Challenger models"; a gateway that asks all: scores by model, and the cutoff in use
    found = Payload("challengers")
    items = strict(story(925, classes=("legit", "fraud"), weights=(0.6, 0.4)))

    def second(item: Item) -> str:
        return item.true if item.number % 4 else ("legit", "fraud")[item.true == "legit"]

    for item in items:
        other = 0.8 if second(item) == "fraud" else 0.3
        scores = {
            "champion": probability(item, "fraud"),
            "challenger": round(other + item.number % 7 / 100, 4),
        }
        found.add("gateway", item.made_ms, {"id": f"txn-{item.uuid}", "scores": scores, "cutoff": 0.5})
        found.add("cases", item.labelled_ms, {"case": item.uuid, "verdict": item.true})
    outcomes = {"champion": counted(items), "challenger": counted(items, second)}
    return System("Champion and challengers", "DataRobot: Challenger models", found, outcomes)


def feast() -> System:
    # Feast, "Feature logging": what a feature server gave, with no prediction in it
    found = Payload("feast")
    for item in story(926):
        row = {
            "driver_id": item.user,
            "conv_rate": item.score,
            "conv_rate__status": 2,
            "__log_timestamp": iso(item.made_ms),
            "__request_id": item.uuid,
            "__log_date": iso(item.made_ms)[:10],
        }
        found.add("feast-logs", item.made_ms, row)
        found.add("driver-truth", item.labelled_ms, {"request_id": item.uuid, "trip_completed": "yes"})
    return System(
        "Feast feature logs", "Feast: Saving features logged", found, cannot=("has no field with a class",)
    )


def tfx_records() -> System:
    # TFX, "PredictionLog" in TFRecord files: binary, without the id of a request
    found = Payload("tfx")
    for item in story(927):
        raw = b"\x1a\x08\x00\x12\x04" + item.uuid.encode()[:6] + b"\xff\xfe" + bytes((item.number % 256,))
        found.add("prediction-logs", item.made_ms, None, raw=raw)
        found.add("tfx-truth", item.labelled_ms, {"id": item.uuid, "label": item.true})
    return System(
        "TFX prediction logs", "TensorFlow Serving: prediction_log.proto", found, cannot=("not text",)
    )


SYSTEMS = [
    make()
    for make in (
        kserve_v2,
        triton,
        seldon_v1,
        seldon_v2,
        sagemaker_csv,
        sagemaker_base64,
        vertex,
        azure_ml,
        databricks,
        mlflow,
        bentoml,
        evidently,
        nannyml,
        arize,
        fiddler,
        whylabs,
        debezium,
        cloudevents,
        snowplow,
        segment,
        opentelemetry,
        tensorflow,
        datarobot,
        aporia,
        challengers,
        feast,
        tfx_records,
    )
]
