"""Payloads written after the guessing was, to measure it on what it was not made for."""

from __future__ import annotations

import json
import random

from tests.lab.inspection.payloads import HOUR, Maker, Payload, iso, story


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


def composite() -> Payload:
    found = Payload("a composite key here, its parts there", cannot=("key", "'|'", "value.order"))
    for item in story(103):
        order = f"{40_000 + item.number}"
        found.add(
            "decisions", item.made_ms, {"decision": item.predicted}, key=f"shop{item.number % 3}|{order}"
        )
        value = {"shop": f"shop{item.number % 3}", "order": order, "outcome": item.true}
        found.add("outcomes", item.labelled_ms, value)
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


def champion_and_challenger() -> Payload:
    found = Payload(
        "two topics of predictions and one of labels",
        predictions={
            "champion": {"id": "value.rid", "prediction": "value.yhat"},
            "challenger": {"id": "value.rid", "prediction": "value.yhat"},
        },
        labels={"truths": {"id": "value.rid", "label": "value.y"}},
    )
    for item in story(105, classes=("a", "b", "c"), weights=(0.5, 0.3, 0.2)):
        found.add("champion", item.made_ms, {"rid": item.number + 88_000, "yhat": item.predicted})
        found.add("challenger", item.made_ms + 40, {"rid": item.number + 88_000, "yhat": item.true})
        found.add("truths", item.labelled_ms, {"rid": item.number + 88_000, "y": item.true})
    return found


def sequences() -> Payload:
    found = Payload(
        "each topic numbers its own records",
        predictions={"eta": {"id": "value.trackingNumber", "prediction": "value.bucket"}},
        labels={"delivered": {"id": "value.trackingNumber", "label": "value.bucket"}},
    )
    for at, item in enumerate(story(106, classes=("same_day", "next_day", "later"), weights=(0.3, 0.5, 0.2))):
        value = {"seq": at + 1, "trackingNumber": f"1Z{item.number * 7919:08d}", "bucket": item.predicted}
        found.add("eta", item.made_ms, value)
    for at, item in enumerate(
        sorted(
            story(106, classes=("same_day", "next_day", "later"), weights=(0.3, 0.5, 0.2)),
            key=lambda item: item.labelled_ms,
        )
    ):
        value = {"seq": at + 1, "trackingNumber": f"1Z{item.number * 7919:08d}", "bucket": item.true}
        found.add("delivered", item.labelled_ms, value)
    return found


def label_names_its_model() -> Payload:
    found = Payload(
        "labels name the model they are of",
        predictions={
            "ml.inference.v1": {
                "id": "value.inferenceId",
                "model": "value.modelId",
                "prediction": "value.predictedLabel",
            }
        },
        labels={
            "ml.groundtruth.v1": {
                "id": "value.inferenceId",
                "model": "value.modelId",
                "label": "value.actualLabel",
            }
        },
    )
    for item in story(107, classes=("P", "N"), weights=(0.4, 0.6)):
        model = ("emea", "apac")[item.number % 2]
        value = {
            "inferenceId": item.uuid,
            "modelId": model,
            "predictedLabel": item.predicted,
            "modelVersion": 4,
        }
        found.add("ml.inference.v1", item.made_ms, value)
        value = {
            "inferenceId": item.uuid,
            "modelId": model,
            "predictedLabel": item.predicted,
            "actualLabel": item.true,
        }
        found.add("ml.groundtruth.v1", item.labelled_ms, value)
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


def three_kinds() -> Payload:
    found = Payload(
        "three kinds of events on one topic",
        predictions={"bus": {"id": "value.entity", "prediction": "value.body.label", "kind": "value.event"}},
        labels={"bus": {"id": "value.entity", "label": "value.body.truth", "kind": "value.event"}},
    )
    for item in story(110, classes=("x", "y"), weights=(0.5, 0.5)):
        found.add(
            "bus",
            item.made_ms - 500,
            {"event": "created", "entity": item.number, "body": {"size": item.amount}},
        )
        found.add(
            "bus", item.made_ms, {"event": "scored", "entity": item.number, "body": {"label": item.predicted}}
        )
        found.add(
            "bus", item.labelled_ms, {"event": "audited", "entity": item.number, "body": {"truth": item.true}}
        )
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


def upper_case_ids() -> Payload:
    found = Payload("ids in capitals there", cannot=("case", "value.loan", "value.loanRef"))
    for item in story(112):
        found.add("loan-scores", item.made_ms, {"loan": item.uuid, "grade": item.predicted})
        found.add("loan-results", item.labelled_ms, {"loanRef": item.uuid.upper(), "result": item.true})
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


def german() -> Payload:
    found = Payload(
        "names in German, seconds with fractions",
        predictions={
            "pruefungen": {
                "id": "value.vorgang.nummer",
                "model": "value.modell",
                "prediction": "value.vorhersage",
                "timestamp": "value.zeitpunkt",
                "timestamp_unit": "s",
            }
        },
        labels={"ergebnisse": {"id": "value.vorgangsnummer", "label": "value.ergebnis"}},
    )
    for item in story(114, classes=("ja", "nein"), weights=(0.4, 0.6)):
        value = {
            "vorgang": {"nummer": f"V-{item.number:06d}", "filiale": item.country},
            "modell": "bonitaet",
            "vorhersage": item.predicted,
            "zeitpunkt": item.made_ms / 1_000,
        }
        found.add("pruefungen", item.made_ms + 9, value)
        value = {"vorgangsnummer": f"V-{item.number:06d}", "ergebnis": item.true, "filiale": item.country}
        found.add("ergebnisse", item.labelled_ms, value)
    return found


def meaningless_names() -> Payload:
    found = Payload(
        "names that say nothing",
        predictions={"t1": {"id": "value.a", "prediction": "value.d"}},
        labels={"t2": {"id": "value.q", "label": "value.s"}},
    )
    for item in story(115, classes=("k1", "k2", "k3"), weights=(0.5, 0.3, 0.2)):
        value = {
            "a": item.uuid[:13],
            "b": item.user,
            "c": item.amount,
            "d": item.predicted,
            "e": item.country,
        }
        found.add("t1", item.made_ms, value)
        found.add(
            "t2", item.labelled_ms, {"q": item.uuid[:13], "r": item.country, "s": item.true, "t": item.user}
        )
    return found


def urn_and_key() -> Payload:
    found = Payload(
        "a URN in the value, the plain id in the key",
        predictions={"quotes": {"id": "key", "prediction": "value.tier_predicted"}},
        labels={"sold": {"id": "value.quote", "label": "value.tier_sold"}},
    )
    for item in story(116, classes=("basic", "plus", "max"), weights=(0.5, 0.3, 0.2)):
        quote = f"Q{item.number + 300}"
        value = {"urn": f"urn:quote:{quote}", "tier_predicted": item.predicted, "price": item.amount}
        found.add("quotes", item.made_ms, value, key=quote)
        found.add("sold", item.labelled_ms, {"quote": quote, "tier_sold": item.true, "agent": item.user})
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


def double_encoded() -> Payload:
    found = Payload("JSON inside a JSON string", cannot=("JSON string", "wrapped"))
    for item in story(118):
        inner = json.dumps({"id": item.uuid, "prediction": item.predicted})
        found.add("wrapped", item.made_ms, None, raw=json.dumps(inner).encode())
        found.add("labels", item.labelled_ms, {"id": item.uuid, "label": item.true})
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


SECOND: tuple[Maker, ...] = (
    kserve,
    nanoseconds,
    composite,
    cases,
    champion_and_challenger,
    sequences,
    label_names_its_model,
    binary_cloudevents,
    codes,
    three_kinds,
    rare_labels,
    upper_case_ids,
    words_of_polarity,
    german,
    meaningless_names,
    urn_and_key,
    dates_only,
    double_encoded,
    floats,
    few_labels_many_numbers,
)
