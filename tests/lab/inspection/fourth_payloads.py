"""Payloads written after the rules on envelopes, arrays and numbers for each class."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from streamwatch.lab.inspection.guessed import Numbers, ScoreChoice
from tests.lab.inspection.payloads import HOUR, Item, Maker, Payload, iso, story


def batches(items: Sequence[Item], sizes: Sequence[int] = (1, 2, 3, 4)) -> Iterator[list[Item]]:
    """Requests of one call to a server, one after another."""
    at, turn = 0, 0
    while at < len(items):
        size = sizes[turn % len(sizes)]
        yield list(items[at : at + size])
        at, turn = at + size, turn + 1


def probabilities(item: Item, classes: Sequence[str]) -> list[float]:
    """The score for the predicted class, the rest shared by the others."""
    rest = (1 - item.score) / (len(classes) - 1)
    return [item.score if name == item.predicted else rest for name in classes]


def event(kind: str, id_: str, data: object, **more: str) -> dict[str, object]:
    """A structured CloudEvent."""
    return {"specversion": "1.0", "id": id_, "source": "/serving", "type": kind, "data": data} | more


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


def results_of_a_batch() -> Payload:
    found = Payload(
        "one record for a job of many documents",
        predictions={
            "classified": {
                "id": "value.results[].doc_id",
                "model": "value.job.model",
                "prediction": "value.results[].category",
                "timestamp": "value.job.finished_at",
            }
        },
        labels={"corrections": {"id": "value.document", "label": "value.correct_category"}},
    )
    classes = ("invoice", "letter", "form")
    for number, calls in enumerate(batches(story(406, classes=classes, weights=(0.5, 0.3, 0.2)), (5, 1, 8))):
        results = [
            {"doc_id": item.uuid, "category": item.predicted, "pages": item.number % 9} for item in calls
        ]
        job = {"id": f"job-{number}", "model": "docs-2", "finished_at": iso(calls[-1].made_ms)}
        found.add("classified", calls[-1].made_ms, {"job": job, "results": results})
        for item in calls:
            found.add("corrections", item.labelled_ms, {"document": item.uuid, "correct_category": item.true})
    return found


def parallel_arrays() -> Payload:
    found = Payload(
        "ids and answers in arrays side by side, and an array of something else",
        predictions={"scored": {"id": "value.ids[]", "prediction": "value.answers[]"}},
        labels={"known": {"id": "value.id", "label": "value.answer"}},
    )
    for calls in batches(story(407, classes=("yes", "no"), weights=(0.5, 0.5)), (3, 2)):
        value = {
            "ids": [item.number + 5_000 for item in calls],
            "answers": [item.predicted for item in calls],
            "tags": ["a", "b", "c", "d"][: 1 + calls[0].number % 4],
        }
        found.add("scored", calls[0].made_ms, value)
        for item in calls:
            found.add("known", item.labelled_ms, {"id": item.number + 5_000, "answer": item.true})
    return found


def logits() -> Payload:
    found = Payload(
        "logits in an array beside features, classes are numbers",
        predictions={
            "digits": {"id": "value.image_id", "largest": Numbers("value.logits", ("0", "1", "2", "3"))}
        },
        labels={"digits-labels": {"id": "value.image_id", "label": "value.digit"}},
    )
    chance = random.Random(8)
    classes = ("0", "1", "2", "3")
    for item in story(408, classes=classes, weights=(0.25,) * 4):
        numbers = [round(chance.gauss(4.0 if name == item.predicted else 0.0, 0.8), 4) for name in classes]
        features = [round(chance.random(), 3) for _ in range(5)]
        value = {"image_id": item.uuid, "features": features, "logits": numbers}
        found.add("digits", item.made_ms, value)
        found.add("digits-labels", item.labelled_ms, {"image_id": item.uuid, "digit": int(item.true)})
    return found


def named_scores() -> Payload:
    found = Payload(
        "probabilities by name and no class",
        predictions={
            "intents": {"id": "value.utterance.id", "largest": Numbers("value.nlu.intent_probabilities")}
        },
        labels={"annotated": {"id": "value.utterance_id", "label": "value.intent"}},
    )
    classes = ("greet", "order", "cancel", "other")
    for item in story(409, classes=classes, weights=(0.4, 0.3, 0.2, 0.1)):
        numbers = dict(zip(classes, probabilities(item, classes), strict=True))
        value = {
            "utterance": {"id": item.uuid, "lang": "de"},
            "nlu": {"intent_probabilities": numbers, "model": "nlu-7"},
        }
        found.add("intents", item.made_ms, value)
        found.add("annotated", item.labelled_ms, {"utterance_id": item.uuid, "intent": item.true})
    return found


def list_of_candidates() -> Payload:
    found = Payload(
        "candidates by rank: the first is the prediction",
        predictions={
            "tagger": {"id": "value.id", "prediction": "value.candidates[0].label"},
        },
        labels={"gold": {"id": "value.id", "label": "value.label"}},
        cannot=("value.candidates", "up to 3"),
    )
    classes = ("sport", "politics", "culture")
    for item in story(410, classes=classes, weights=(0.4, 0.4, 0.2)):
        others = [name for name in classes if name != item.predicted]
        ranked = [
            {"label": name, "p": p}
            for name, p in zip((item.predicted, *others), (item.score, 0.1, 0.05), strict=True)
        ]
        found.add("tagger", item.made_ms, {"id": item.uuid, "candidates": ranked})
        found.add("gold", item.labelled_ms, {"id": item.uuid, "label": item.true})
    return found


def debezium_both() -> Payload:
    found = Payload(
        "both tables by Debezium without a schema, decimals as text",
        predictions={
            "pg.public.decision": {
                "envelope": "debezium",
                "id": "value.application_id",
                "prediction": "value.decision",
            }
        },
        labels={
            "pg.public.loan": {
                "envelope": "debezium",
                "id": "value.application_id",
                "label": "value.repaid",
                "optional": True,
            }
        },
    )
    source = {"connector": "postgresql", "db": "bank", "schema": "public", "lsn": 1}
    for item in story(411, classes=("true", "false"), weights=(0.7, 0.3), delay_ms=20 * HOUR):
        after = {
            "decision_id": item.uuid,
            "application_id": item.number + 33_000,
            "decision": item.predicted == "true",
            "limit_eur": str(item.amount),
        }
        change = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": item.made_ms + 4}
        found.add("pg.public.decision", item.made_ms + 9, change)
        after = {"application_id": item.number + 33_000, "paid": "0.00", "repaid": None}
        change = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": item.made_ms + 50}
        found.add("pg.public.loan", item.made_ms + 60, change)
        after = after | {"paid": str(item.amount), "repaid": item.true == "true"}
        change = {"before": None, "after": after, "source": source, "op": "u", "ts_ms": item.labelled_ms}
        found.add("pg.public.loan", item.labelled_ms + 9, change)
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


def rare_in_an_array() -> Payload:
    found = Payload(
        "two probabilities, of which that of the rare class is never the larger",
        predictions={
            "claims-scored": {"id": "value.claim", "largest": Numbers("value.proba", ("false", "true"))}
        },
        labels={"claims-closed": {"id": "value.claim", "label": "value.fraudulent"}},
    )
    chance = random.Random(14)
    for item in story(414, 800, weights=(0.95, 0.05)):
        p = chance.uniform(0.2, 0.45) if item.true == "fraud" else chance.uniform(0.01, 0.25)
        value = {"claim": item.number + 71_000, "proba": [round(1 - p, 4), round(p, 4)]}
        found.add("claims-scored", item.made_ms, value)
        value = {"claim": item.number + 71_000, "fraudulent": item.true == "fraud"}
        found.add("claims-closed", item.labelled_ms, value)
    return found


def score_of_elements() -> Payload:
    found = Payload(
        "a score for each element and no class",
        predictions={
            "ranker": {
                "id": "value.impressions[].id",
                "prediction": "value.impressions[].pctr",
                "score": ScoreChoice(0.5, "1", "0"),
            }
        },
        labels={"clicks": {"id": "value.impression", "label": "value.clicked"}},
    )
    for calls in batches(story(415, classes=("0", "1"), weights=(0.6, 0.4)), (4, 6)):
        shown = [
            {"id": item.uuid, "pctr": item.score if item.predicted == "1" else 1 - item.score, "slot": at}
            for at, item in enumerate(calls)
        ]
        found.add("ranker", calls[0].made_ms, {"page": calls[0].user, "impressions": shown})
        for item in calls:
            found.add("clicks", item.labelled_ms, {"impression": item.uuid, "clicked": int(item.true)})
    return found


def class_and_array() -> Payload:
    found = Payload(
        "a class, and its probabilities in an array",
        predictions={
            "emotion": {
                "id": "value.clip",
                "prediction": "value.emotion",
                "largest": None,
                "scores": Numbers("value.probs", ("anger", "joy", "calm")),
            }
        },
        labels={"rated": {"id": "value.clip", "label": "value.rated_emotion"}},
    )
    classes = ("anger", "joy", "calm")
    for item in story(416, classes=classes, weights=(0.3, 0.3, 0.4)):
        value = {"clip": item.uuid, "emotion": item.predicted, "probs": probabilities(item, classes)}
        found.add("emotion", item.made_ms, value)
        found.add("rated", item.labelled_ms, {"clip": item.uuid, "rated_emotion": item.true})
    return found


def array_at_the_top() -> Payload:
    found = Payload(
        "the value is an array, the id of the request its key",
        predictions={"lists": {"id": "key", "prediction": "value[].class"}},
        labels={"answers": {"id": "value.ref", "label": "value.actual"}},
    )
    for calls in batches(story(417, classes=("a", "b"), weights=(0.5, 0.5)), (2, 1, 3)):
        value = [{"class": item.predicted, "p": item.score} for item in calls]
        found.add("lists", calls[0].made_ms, value, key=f"req-{calls[0].number}")
        for at, item in enumerate(calls):
            value = {"ref": f"req-{calls[0].number}#{at}", "actual": item.true}
            found.add("answers", item.labelled_ms, value)
    return found


def embeddings() -> Payload:
    found = Payload(
        "a class beside an embedding that knows the answer as well, and features by name",
        predictions={"faces": {"id": "value.face", "prediction": "value.identity", "largest": None}},
        labels={"badge": {"id": "value.face", "label": "value.person"}},
    )
    chance = random.Random(18)
    people = ("ann", "bob", "cy")
    for item in story(418, classes=people, weights=(0.4, 0.4, 0.2)):
        embedding = [round(chance.gauss(3.0 if name == item.true else 0.0, 0.3), 3) for name in people]
        features = {"brightness": chance.random(), "blur": chance.random(), "angle": chance.random()}
        value = {
            "face": item.uuid,
            "identity": item.predicted,
            "embedding": embedding,
            "features": features,
        }
        found.add("faces", item.made_ms, value)
        found.add("badge", item.labelled_ms, {"face": item.uuid, "person": item.true})
    return found


def nested_results() -> Payload:
    found = Payload(
        "one outer element, whose inner array has an element for each item",
        predictions={
            "ocr": {
                "id": "value.pages[0].lines[].line_id",
                "prediction": "value.pages[0].lines[].kind",
            }
        },
        labels={"ocr-checked": {"id": "value.line_id", "label": "value.kind"}},
    )
    kinds = ("heading", "text", "footer")
    for calls in batches(story(419, classes=kinds, weights=(0.2, 0.6, 0.2)), (3, 5)):
        lines = [{"line_id": item.uuid, "kind": item.predicted} for item in calls]
        found.add("ocr", calls[0].made_ms, {"scan": calls[0].user, "pages": [{"no": 1, "lines": lines}]})
        for item in calls:
            found.add("ocr-checked", item.labelled_ms, {"line_id": item.uuid, "kind": item.true})
    return found


def sparse_scores() -> Payload:
    found = Payload(
        "the best few scores by name, in capitals, labels in lower case",
        predictions={"topics": {"id": "value.article", "largest": Numbers("value.scores")}},
        labels={"desk": {"id": "value.article", "label": "value.section"}},
    )
    classes = ("POLITICS", "SPORT", "CULTURE", "LOCAL")
    for item in story(420, classes=classes, weights=(0.3, 0.3, 0.2, 0.2)):
        other = classes[(classes.index(item.predicted) + 1) % 4]
        scores = {item.predicted: item.score, other: round((1 - item.score) / 2, 4)}
        found.add("topics", item.made_ms, {"article": item.uuid, "scores": scores})
        found.add("desk", item.labelled_ms, {"article": item.uuid, "section": item.true.lower()})
    return found


def one_table() -> Payload:
    found = Payload(
        "a table of decisions whose rows are updated with the truth, by Debezium",
        predictions={
            "db.decisions": {"envelope": "debezium", "id": "value.id", "prediction": "value.decision"}
        },
        labels={"db.decisions": {"envelope": "debezium", "id": "value.id", "label": "value.actual"}},
    )
    source = {"connector": "mysql", "db": "shop", "pos": 4}
    for item in story(421):
        after = {"id": item.number + 7_000, "decision": item.predicted, "actual": None}
        change = {"before": None, "after": after, "op": "c", "ts_ms": item.made_ms, "source": source}
        found.add("db.decisions", item.made_ms, change)
        after = after | {"actual": item.true}
        change = {"before": None, "after": after, "op": "u", "ts_ms": item.labelled_ms, "source": source}
        found.add("db.decisions", item.labelled_ms, change)
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


FOURTH: tuple[Maker, ...] = (
    kserve_v1_logged,
    kserve_v1_scores,
    kserve_v2_tensor,
    triton_single,
    seldon_logged,
    results_of_a_batch,
    parallel_arrays,
    logits,
    named_scores,
    list_of_candidates,
    debezium_both,
    cloudevents_two_modes,
    cloudevent_of_elements,
    rare_in_an_array,
    score_of_elements,
    class_and_array,
    array_at_the_top,
    embeddings,
    nested_results,
    sparse_scores,
    one_table,
    forecast_and_actual,
)
