"""Several models: by topic, by field, or side by side in one record."""

from __future__ import annotations

from tests.inspection.story import Item, Maker, Payload, story


def second_opinion(item: Item, right_of: int = 10) -> str:
    """What another model says: it is right but for one request in so many."""
    return item.true if item.number % right_of else ("fraud" if item.true == "legit" else "legit")


def several_models() -> Payload:
    found = Payload(
        "two models score each request",
        predictions={"scores": {"id": "value.req", "model": "value.model.id", "prediction": "value.label"}},
        labels={"outcomes": {"id": "value.req", "label": "value.outcome"}},
    )
    for item in story(10):
        for model, predicted in (("champion", item.predicted), ("challenger", item.true)):
            value = {"req": item.uuid, "model": {"id": model, "framework": "xgb"}, "label": predicted}
            found.add("scores", item.made_ms, value)
        found.add("outcomes", item.labelled_ms, {"req": item.uuid, "outcome": item.true})
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


def many_models() -> Payload:
    found = Payload(
        "models by endpoint and variant, ids repeat for each",
        predictions={
            "gateway": {"id": "value.traceId", "model": "value.target", "prediction": "value.answer.intent"}
        },
        labels={"handover": {"id": "value.traceId", "label": "value.intent"}},
    )
    for item in story(209, classes=("refund", "status", "cancel"), weights=(0.4, 0.4, 0.2)):
        for target, predicted in (("bert-a", item.predicted), ("bert-b", item.true), ("rules", "status")):
            value = {
                "traceId": item.uuid,
                "target": target,
                "answer": {"intent": predicted, "p": item.score},
                "ok": True,
            }
            found.add("gateway", item.made_ms, value)
        found.add(
            "handover", item.labelled_ms, {"traceId": item.uuid, "intent": item.true, "agent": item.user}
        )
    return found


def shadow_scoring() -> Payload:
    found = Payload(
        "a gateway that asks two models and writes one record, each model by its name",
        predictions={
            "gateway.decisions": {
                "id": "value.transactionId",
                "prediction": "value.models.primary.decision",
                "model": "value.models.primary.modelName",
                "others": [("value.models.shadow.modelName", "value.models.shadow.decision", False)],
            }
        },
        labels={"disputes": {"id": "value.txn", "label": "value.finalLabel"}},
    )
    for item in story(601):
        value = {
            "transactionId": item.uuid,
            "amount": item.amount,
            "models": {
                "primary": {"modelName": "fraud-7", "decision": item.predicted, "ms": 12},
                "shadow": {"modelName": "fraud-8", "decision": second_opinion(item), "ms": 31},
            },
        }
        found.add("gateway.decisions", item.made_ms, value)
        found.add("disputes", item.labelled_ms, {"txn": item.uuid, "finalLabel": item.true})
    return found


def flat_challenger() -> Payload:
    found = Payload(
        "champion and challenger side by side, the challenger for a third of the requests",
        predictions={
            "scored": {
                "id": "value.id",
                "prediction": "value.champion_prediction",
                "model": "=champion",
                "others": [("=challenger", "value.challenger_prediction", True)],
            }
        },
        labels={"truth": {"id": "value.id", "label": "value.label"}},
    )
    for item in story(602, count=600):
        value = {"id": item.uuid, "champion_prediction": item.predicted, "country": item.country}
        if item.number % 3 == 0:
            value["challenger_prediction"] = second_opinion(item)
        found.add("scored", item.made_ms, value)
        found.add("truth", item.labelled_ms, {"id": item.uuid, "label": item.true})
    return found


def two_stages_are_no_two_models() -> Payload:
    found = Payload(
        "one model, whose answer a rule may overrule: two fields with the same classes, but no two models",
        predictions={"answers": {"id": "value.req", "others": []}},
        labels={"audit": {"id": "value.req", "label": "value.audited_label"}},
    )
    for item in story(603):
        raw = second_opinion(item, 7)
        value = {"req": item.uuid, "model": "kyc-2", "prediction": item.predicted, "raw_prediction": raw}
        found.add("answers", item.made_ms, value)
        found.add("audit", item.labelled_ms, {"req": item.uuid, "audited_label": item.true})
    return found


def two_versions() -> Payload:
    found = Payload(
        "two versions of a model score each request",
        predictions={"scores": {"id": "value.req", "model": ("value.model.name", "value.model.version")}},
        labels={"outcomes": {"id": "value.req", "model": None, "label": "value.outcome"}},
    )
    for item in story(120):
        for version, predicted in (
            (7, item.predicted),
            (8, item.true if item.number % 20 else item.predicted),
        ):
            value = {"req": item.uuid, "model": {"name": "fraud", "version": version}, "decision": predicted}
            found.add("scores", item.made_ms, value)
        found.add("outcomes", item.labelled_ms, {"req": item.uuid, "outcome": item.true})
    return found


def versions_in_flat_fields() -> Payload:
    found = Payload(
        "two versions of two models in flat fields, and labels that name them",
        predictions={"scores": {"id": "value.req", "model": ("value.model_name", "value.model_version")}},
        labels={
            "outcomes": {
                "id": "value.req",
                "model": ("value.model_name", "value.model_version"),
                "label": "value.outcome",
            }
        },
    )
    for item in story(121):
        name = ("fraud", "abuse")[item.number % 2]
        for version, predicted in (("1.9", item.predicted), ("1.10", item.true)):
            names = {"model_name": name, "model_version": version, "schema_version": 3}
            found.add("scores", item.made_ms, {"req": item.uuid, "label": predicted} | names)
            found.add("outcomes", item.labelled_ms, {"req": item.uuid, "outcome": item.true} | names)
    return found


def few_ids_by_a_canary() -> Payload:
    found = Payload(
        "a canary scores one request of twenty, too",
        predictions={"scores": {"id": "value.req", "model": ("value.model", "value.deployment")}},
        labels={"outcomes": {"id": "value.req", "label": "value.outcome"}},
    )
    for item in story(122):
        for deployment in ("stable", "canary")[: 1 + (item.number % 20 == 0)]:
            predicted = item.predicted if deployment == "stable" else item.true
            value = {"req": item.uuid, "model": "fraud", "deployment": deployment, "prediction": predicted}
            found.add("scores", item.made_ms, value)
        found.add("outcomes", item.labelled_ms, {"req": item.uuid, "outcome": item.true})
    return found


def attempts() -> Payload:
    found = Payload(
        "each request is delivered twice: the second is no other model",
        predictions={"scores": {"id": "value.req", "model": "value.model"}},
        labels={"outcomes": {"id": "value.req", "label": "value.outcome"}},
    )
    for item in story(123):
        for attempt in (1, 2):
            value = {"req": item.uuid, "model": "fraud", "attempt": attempt, "prediction": item.predicted}
            found.add("scores", item.made_ms, value | {"schema_version": attempt})
        found.add("outcomes", item.labelled_ms, {"req": item.uuid, "outcome": item.true})
    return found


MODELS: tuple[Maker, ...] = (
    several_models,
    champion_and_challenger,
    label_names_its_model,
    many_models,
    shadow_scoring,
    flat_challenger,
    two_stages_are_no_two_models,
    two_versions,
    versions_in_flat_fields,
    few_ids_by_a_canary,
    attempts,
)
