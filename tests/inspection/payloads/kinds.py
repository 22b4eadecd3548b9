"""Several kinds of events on one topic."""

from __future__ import annotations

from tests.inspection.story import Maker, Payload, iso, story


def one_topic() -> Payload:
    found = Payload(
        "predictions and labels on one topic, distinguished by a type",
        predictions={"events": {"id": "value.id", "prediction": "value.decision", "kind": "value.type"}},
        labels={"events": {"id": "value.id", "label": "value.truth", "kind": "value.type"}},
    )
    for item in story(11):
        found.add("events", item.made_ms, {"type": "scored", "id": item.uuid, "decision": item.predicted})
        found.add("events", item.labelled_ms, {"type": "resolved", "id": item.uuid, "truth": item.true})
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


def ids_at_two_paths() -> Payload:
    found = Payload(
        "predictions and labels on one topic by type, their ids at two paths",
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


KINDS: tuple[Maker, ...] = (one_topic, three_kinds, kinds_in_one_topic, ids_at_two_paths)
