"""Flat and nested records, by the names of their fields."""

from __future__ import annotations

from tests.inspection.story import Maker, Payload, iso, story


def flat() -> Payload:
    found = Payload(
        "flat with the default names",
        predictions={
            "predictions": {"id": "value.id", "model": "value.model", "prediction": "value.prediction"}
        },
        labels={"labels": {"id": "value.id", "label": "value.label"}},
    )
    for item in story(1):
        found.add("predictions", item.made_ms, {"id": item.uuid, "model": "m1", "prediction": item.predicted})
        found.add("labels", item.labelled_ms, {"id": item.uuid, "label": item.true})
    return found


def fraud() -> Payload:
    found = Payload(
        "nested uuid, model in a header, booleans, ISO times",
        predictions={
            "scoring-events": {
                "id": "value.transaction.uuid",
                "model": "header:model-version",
                "prediction": "value.decision",
                "timestamp": "value.scored_at",
                "timestamp_unit": "iso8601",
            }
        },
        labels={"chargebacks": {"id": "key", "label": "value.is_fraud", "timestamp": "value.decided"}},
    )
    for item in story(2):
        value = {
            "transaction": {"uuid": item.uuid, "amount": item.amount, "country": item.country},
            "decision": item.predicted == "fraud",
            "scored_at": iso(item.made_ms),
        }
        headers = {"model-version": "fraud-v3", "trace": item.uuid[::-1]}
        found.add("scoring-events", item.made_ms + 20, value, headers=headers)
        value = {"is_fraud": item.true == "fraud", "decided": iso(item.labelled_ms), "analyst": item.user[:2]}
        found.add("chargebacks", item.labelled_ms + 50, value, key=item.uuid)
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


NAMES: tuple[Maker, ...] = (flat, fraud, german, meaningless_names)
