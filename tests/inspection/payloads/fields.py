"""Models that are the names of fields, thresholds in records, and values that are texts."""

from __future__ import annotations

import base64
import json

from streamwatch.edge.decoders.mapping import KeyOf, Trimmed
from streamwatch.edge.decoders.texts import TextRule
from streamwatch.inspection.guessed import ScoreChoice
from tests.inspection.story import Item, Maker, Payload, story


def opinion(item: Item) -> str:
    """The class of a second model."""
    return item.true if item.number % 3 else "fraud"


def chance(item: Item) -> float:
    """Probability of fraud."""
    return round(item.score if item.predicted == "fraud" else 1 - item.score, 4)


def class_of_each_model() -> Payload:
    found = Payload(
        "an object with the class of each model",
        predictions={
            "p": {"id": "value.id", "model": KeyOf("value.predictions"), "prediction": "value.predictions.*"}
        },
        labels={"l": {"id": "value.id", "model": None, "label": "value.label"}},
    )
    for item in story(951):
        value = {"id": item.number, "predictions": {"xgb": item.predicted, "lr": opinion(item)}}
        found.add("p", item.made_ms, value | {"amount": item.amount})
        found.add("l", item.labelled_ms, {"id": item.number, "label": item.true})
    return found


def object_of_each_model() -> Payload:
    found = Payload(
        "an object with an object for each model, one of which came later",
        predictions={
            "p": {"id": "value.id", "model": KeyOf("value.models"), "prediction": "value.models.*.class"}
        },
        labels={"l": {"id": "value.id", "model": None}},
    )
    for item in story(952):
        models = {"xgb": {"class": item.predicted, "ms": 3}}
        if item.number > 150:
            models["lr"] = {"class": opinion(item), "ms": 4}
        found.add("p", item.made_ms, {"id": item.number, "models": models})
        found.add("l", item.labelled_ms, {"id": item.number, "label": item.true})
    return found


def column_of_each_model() -> Payload:
    found = Payload(
        "a field with a prefix for each model, beside others",
        predictions={"p": {"model": KeyOf("value.pred_*"), "prediction": "value.pred_*"}},
        labels={"l": {"label": "value.y"}},
    )
    for item in story(953):
        value = {"id": item.uuid, "pred_tree": item.predicted, "pred_linear": opinion(item), "n": item.amount}
        found.add("p", item.made_ms, value)
        found.add("l", item.labelled_ms, {"id": item.uuid, "y": item.true})
    return found


def scores_of_each_class_are_no_models() -> Payload:
    found = Payload(
        "an object with a number for each class",
        predictions={"p": {"model": "=p", "prediction": "value.scores"}},
        labels={"l": {"label": "value.y"}},
    )
    for item in story(954):
        p = chance(item)
        found.add("p", item.made_ms, {"id": item.uuid, "scores": {"fraud": p, "legit": round(1 - p, 4)}})
        found.add("l", item.labelled_ms, {"id": item.uuid, "y": item.true})
    return found


def chances_of(item: Item) -> dict[str, list[float]]:
    """Of each of two models the probabilities of legit and of fraud; the second is surer, and errs more."""
    p, q = chance(item), 0.97 if opinion(item) == "fraud" else 0.08
    return {"xgb": [round(1 - p, 4), p], "lr": [round(1 - q, 4), q]}


def numbers_for_each_class_of_each_model() -> Payload:
    found = Payload(
        "an object with an object of probabilities for each model",
        predictions={"p": {"model": KeyOf("value.scores"), "prediction": "value.scores.*"}},
        labels={"l": {"model": None, "label": "value.y"}},
    )
    for item in story(958):
        scores = {name: {"legit": no, "fraud": yes} for name, (no, yes) in chances_of(item).items()}
        found.add("p", item.made_ms, {"id": item.uuid, "scores": scores})
        found.add("l", item.labelled_ms, {"id": item.uuid, "y": item.true})
    return found


def array_of_numbers_of_each_model() -> Payload:
    found = Payload(
        "an object with an array of probabilities for each model, one of which came later",
        predictions={
            "p": {"model": KeyOf("value.models"), "prediction": "value.models.*.probabilities"},
        },
        labels={"l": {"model": None, "label": "value.y"}},
    )
    for item in story(959):
        models = {name: {"probabilities": numbers} for name, numbers in chances_of(item).items()}
        if item.number < 150:
            del models["lr"]
        found.add("p", item.made_ms, {"id": item.uuid, "models": models})
        found.add("l", item.labelled_ms, {"id": item.uuid, "y": item.true})
    return found


def probabilities_of_two_tasks_are_no_models() -> Payload:
    found = Payload(
        "an object with an object of probabilities for each of two tasks",
        predictions={"p": {"model": "=p", "prediction": "value.scores.risk"}},
        labels={"l": {"label": "value.y"}},
    )
    for item in story(960):
        p, q = chance(item), 0.9 if item.number % 5 else 0.2
        tasks = {
            "risk": {"legit": round(1 - p, 4), "fraud": p},
            "churn": {"stays": q, "leaves": round(1 - q, 4)},
        }
        found.add("p", item.made_ms, {"id": item.uuid, "scores": tasks})
        found.add("l", item.labelled_ms, {"id": item.uuid, "y": item.true})
    return found


def threshold_and_affixes() -> Payload:
    found = Payload(
        "a score with its threshold, which changes once, and ids with more around them",
        predictions={
            "p": {
                "id": Trimmed("value.request_id", "req_", ".v2"),
                "prediction": "value.score",
                "score": ScoreChoice("value.cutoff", "fraud", "legit"),
            }
        },
        labels={"l": {"id": "value.request_id", "label": "value.y"}},
    )
    for item in story(955):
        value = {"request_id": f"req_{item.uuid}.v2", "score": chance(item)}
        value["cutoff"] = 0.5 if item.number < 250 else 0.4
        found.add("p", item.made_ms, value)
        found.add("l", item.labelled_ms, {"request_id": item.uuid, "y": item.true})
    return found


def lines_of_csv() -> Payload:
    rule = TextRule("value", ("csv",))
    found = Payload(
        "values that are lines of CSV on both sides",
        predictions={
            "p": {"id": "value[0][0]", "prediction": "value[0][2]", "decode": rule, "format": "text"}
        },
        labels={"l": {"id": "value[0][0]", "label": "value[0][1]", "decode": rule, "format": "text"}},
    )
    for item in story(956):
        found.add("p", item.made_ms, None, raw=f"{item.uuid},{item.amount},{item.predicted}".encode())
        found.add("l", item.labelled_ms, None, raw=f"{item.uuid},{item.true}".encode())
    return found


def whole_values_in_base64() -> Payload:
    rule = TextRule("value", ("base64", "json"))
    found = Payload(
        "JSON in base64 as the whole value, and a bare word as the label",
        predictions={"p": {"id": "value.id", "decode": rule, "format": "text"}},
        labels={"l": {"id": "key", "label": "value", "decode": [], "format": "text"}},
    )
    for item in story(957):
        inner = json.dumps({"id": item.uuid, "model": "m", "prediction": item.predicted})
        found.add("p", item.made_ms, None, raw=base64.b64encode(inner.encode()))
        found.add("l", item.labelled_ms, None, raw=item.true.encode(), key=item.uuid)
    return found


FIELDS: list[Maker] = [
    class_of_each_model,
    object_of_each_model,
    column_of_each_model,
    scores_of_each_class_are_no_models,
    numbers_for_each_class_of_each_model,
    array_of_numbers_of_each_model,
    probabilities_of_two_tasks_are_no_models,
    threshold_and_affixes,
    lines_of_csv,
    whole_values_in_base64,
]
