"""Payloads written after the rules on several models in one record, and on kinds of records in one topic."""

from __future__ import annotations

from streamwatch.lab.inspection.guessed import Choice
from tests.lab.inspection.payloads import Item, Maker, Payload, iso, story


def second_opinion(item: Item, right_of: int = 10) -> str:
    """What another model says: it is right but for one request in so many."""
    return item.true if item.number % right_of else ("fraud" if item.true == "legit" else "legit")


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


def kinds_in_one_topic() -> Payload:
    found = Payload(
        "a bus with three kinds of events, of which one is a prediction; labels elsewhere",
        predictions={
            "app-events": {
                "id": "value.data.scoring_id",
                "prediction": "value.data.predicted_class",
                "when": {"value.eventType": ("ml.scored",)},
                "optional": False,
            }
        },
        labels={"labels": {"id": "value.scoring_id", "label": "value.label"}},
    )
    for item in story(604, classes=("spam", "ham"), weights=(0.3, 0.7)):
        data = {"scoring_id": item.uuid, "predicted_class": item.predicted, "model": "mail-3"}
        at = {"at": iso(item.made_ms)}
        found.add("app-events", item.made_ms, {"eventType": "ml.scored", "data": data} | at)
        if item.number % 2:
            page = {"user": item.user, "page": f"/{item.number % 9}"}
            found.add("app-events", item.made_ms + 5, {"eventType": "page.viewed", "data": page} | at)
        else:
            login = {"user": item.user, "ok": item.number % 5 > 0}
            found.add("app-events", item.made_ms + 7, {"eventType": "user.login", "data": login} | at)
        found.add("labels", item.labelled_ms, {"scoring_id": item.uuid, "label": item.true})
    return found


def ids_at_two_places() -> Payload:
    found = Payload(
        "predictions and labels on one topic by type, their ids at two places",
        predictions={
            "ledger": {
                "id": "value.prediction_id",
                "prediction": "value.predicted",
                "kind": "value.type",
            }
        },
        labels={"ledger": {"id": "value.of", "label": "value.actual", "kind": "value.type"}},
    )
    for item in story(605, classes=("up", "down"), weights=(0.5, 0.5)):
        made = {"type": "forecast", "prediction_id": item.uuid, "predicted": item.predicted, "model": "fx"}
        found.add("ledger", item.made_ms, made)
        found.add("ledger", item.labelled_ms, {"type": "settled", "of": item.uuid, "actual": item.true})
    return found


def places(others: object) -> list[tuple[str | None, str | None, bool]]:
    """Model, prediction and whether it may be missing, of further mappings."""
    return [
        (
            each.model.place if isinstance(each.model, Choice) else None,
            each.prediction.place if isinstance(each.prediction, Choice) else None,
            each.optional,
        )
        for each in others  # type: ignore[attr-defined]
    ]


FIFTH: tuple[Maker, ...] = (
    shadow_scoring,
    flat_challenger,
    two_stages_are_no_two_models,
    kinds_in_one_topic,
    ids_at_two_places,
)
