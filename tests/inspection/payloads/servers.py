"""What servers of models log: KServe, Triton, Seldon."""

from __future__ import annotations

from streamwatch.inspection.guessed import Numbers
from tests.inspection.payloads.parts import batches, event, probabilities
from tests.inspection.story import Maker, Payload, story


def kserve() -> Payload:
    found = Payload(
        "KServe v1: the class is an element of an array",
        predictions={
            "kserve-responses": {
                "id": "value.id",
                "model": "value.model_name",
                "prediction": "value.predictions[0]",
            }
        },
        labels={"species": {"id": "value.id", "label": "value.species"}},
    )
    for item in story(101, classes=("setosa", "virginica"), weights=(0.5, 0.5)):
        value = {"id": item.uuid, "model_name": "iris", "predictions": [item.predicted], "model_version": "2"}
        found.add("kserve-responses", item.made_ms, value)
        found.add("species", item.labelled_ms, {"id": item.uuid, "species": item.true})
    return found


def kserve_v1_logged() -> Payload:
    found = Payload(
        "KServe v1 as its logger writes it: requests and answers of several instances, by CloudEvents",
        predictions={
            "kserve-log": {"envelope": "kserve_v1", "id": "value.id", "prediction": "value.predictions[]"}
        },
        labels={"reviewed": {"id": "value.prediction_id", "label": "value.reviewed_as"}},
    )
    kind = "org.kubeflow.serving.inference"
    for number, calls in enumerate(batches(story(401, classes=("spam", "ham"), weights=(0.3, 0.7)))):
        first, id_ = calls[0], calls[0].uuid
        request = {"instances": [[item.amount, item.number % 7] for item in calls]}
        more = {"inferenceservicename": "mailguard"}
        found.add("kserve-log", first.made_ms, event(f"{kind}.request", id_, request, **more))
        answer = {"predictions": [item.predicted for item in calls]}
        found.add("kserve-log", first.made_ms + 20, event(f"{kind}.response", id_, answer, **more))
        for at, item in enumerate(calls):
            value = {"prediction_id": f"{id_}#{at}", "reviewed_as": item.true, "desk": number % 3}
            found.add("reviewed", item.labelled_ms, value)
    return found


def kserve_v1_scores() -> Payload:
    found = Payload(
        "KServe v1, request and answer in one record, two probabilities for each instance",
        predictions={
            "audit": {
                "envelope": "kserve_v1",
                "id": "value.instances[].tx_id",
                "prediction": "value.predictions[]",
                "largest": Numbers("value.predictions[]", ("legit", "fraud")),
            }
        },
        labels={"chargebacks": {"id": "value.tx_id", "label": "value.status"}},
    )
    classes = ("legit", "fraud")
    for calls in batches(story(402)):
        instances = [{"tx_id": item.uuid, "amount": item.amount} for item in calls]
        answer = {"predictions": [probabilities(item, classes) for item in calls]}
        value = {"model": "fraud-net", "request": {"instances": instances}, "response": answer}
        found.add("audit", calls[0].made_ms, value)
        for item in calls:
            found.add("chargebacks", item.labelled_ms, {"tx_id": item.uuid, "status": item.true})
    return found


def kserve_v2_tensor() -> Payload:
    found = Payload(
        "KServe v2: a tensor of three scores for each row, ids are those of the request",
        predictions={
            "infer": {
                "envelope": "kserve_v2",
                "id": "value.id",
                "model": "value.model",
                "largest": Numbers("value.outputs.softmax[]", ("cat", "dog", "fox")),
            }
        },
        labels={"truth": {"id": "value.request_id", "label": "value.species[]"}},
    )
    classes = ("cat", "dog", "fox")
    for calls in batches(story(403, classes=classes, weights=(0.5, 0.3, 0.2)), (2, 3)):
        data = [number for item in calls for number in probabilities(item, classes)]
        shape = [len(calls), 3]
        output = {"name": "softmax", "shape": shape, "datatype": "FP32", "data": data}
        value = {"model_name": "pets", "model_version": "4", "id": calls[0].uuid, "outputs": [output]}
        found.add("infer", calls[0].made_ms, value)
        value = {"request_id": calls[0].uuid, "species": [item.true for item in calls]}
        found.add("truth", max(item.labelled_ms for item in calls), value)
    return found


def triton_single() -> Payload:
    found = Payload(
        "Triton: one instance a call, the label as text, plain ids in labels",
        predictions={"triton": {"envelope": "kserve_v2", "id": "value.id", "prediction": "value.output[0]"}},
        labels={"graded": {"id": "value.inference", "label": "value.grade"}},
    )
    for item in story(404, classes=("A", "B", "C"), weights=(0.4, 0.4, 0.2)):
        output = {"name": "label", "shape": [1], "datatype": "BYTES", "data": [item.predicted]}
        value = {"id": item.uuid, "model_name": "grader", "outputs": [output]}
        found.add("triton", item.made_ms, value)
        found.add("graded", item.labelled_ms, {"inference": item.uuid, "grade": item.true})
    return found


def seldon_logged() -> Payload:
    found = Payload(
        "Seldon: request and answer apart, columns with names",
        predictions={
            "seldon-log": {
                "envelope": "seldon",
                "id": "value.id",
                "largest": Numbers("value.columns[]"),
                "scores": Numbers("value.columns[]"),
            }
        },
        labels={"settled": {"id": "value.row", "label": "value.outcome"}},
    )
    classes = ("approve", "refuse")
    for calls in batches(story(405, classes=classes, weights=(0.7, 0.3))):
        id_ = calls[0].uuid
        headers = {"ce_specversion": "1.0", "ce_source": "seldon", "ce_requestid": id_}
        kind = "io.seldon.serving.inference"
        rows = [[item.amount, 1.0] for item in calls]
        own = {"ce_id": f"{id_}-q", "ce_type": f"{kind}.request"}
        found.add("seldon-log", calls[0].made_ms, {"data": {"ndarray": rows}}, headers=headers | own)
        own = {"ce_id": f"{id_}-a", "ce_type": f"{kind}.response"}
        data = {"names": list(classes), "ndarray": [probabilities(item, classes) for item in calls]}
        found.add("seldon-log", calls[0].made_ms + 9, {"data": data, "meta": {}}, headers=headers | own)
        for at, item in enumerate(calls):
            found.add("settled", item.labelled_ms, {"row": f"{id_}#{at}", "outcome": item.true})
    return found


SERVERS: tuple[Maker, ...] = (
    kserve,
    kserve_v1_logged,
    kserve_v1_scores,
    kserve_v2_tensor,
    triton_single,
    seldon_logged,
)
