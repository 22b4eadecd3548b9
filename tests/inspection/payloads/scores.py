"""Scores of classes: one, by name or in an array, with the class beside them or without."""

from __future__ import annotations

import random

from streamwatch.inspection.guessed import Numbers, ScoreChoice
from tests.inspection.payloads.parts import batches, probabilities
from tests.inspection.story import Maker, Payload, story


def with_scores() -> Payload:
    found = Payload(
        "a class beside the probabilities of all",
        predictions={
            "triage": {
                "id": "value.ticket",
                "prediction": "value.result.class",
                "scores": Numbers("value.result.probabilities"),
            }
        },
        labels={"tickets": {"id": "value.ticket", "label": "value.team"}},
    )
    for item in story(14, classes=("billing", "tech", "sales"), weights=(0.5, 0.3, 0.2)):
        rest = round((1 - item.score) / 2, 5)
        probabilities = dict.fromkeys(("billing", "tech", "sales"), rest) | {item.predicted: item.score}
        result = {"class": item.predicted, "probabilities": probabilities, "confidence": item.score}
        found.add("triage", item.made_ms, {"ticket": f"T-{item.number}", "result": result})
        found.add("tickets", item.labelled_ms, {"ticket": f"T-{item.number}", "team": item.true})
    return found


def only_score() -> Payload:
    found = Payload(
        "a score and no class",
        predictions={
            "p": {
                "id": "value.id",
                "prediction": "value.probability",
                "score": ScoreChoice(0.5, "true", "false"),
            }
        },
        labels={"l": {"id": "value.id", "label": "value.fraud"}},
    )
    for item in story(16):
        probability = item.score if item.predicted == "fraud" else 1 - item.score
        found.add("p", item.made_ms, {"id": item.uuid, "probability": probability, "model": "m"})
        found.add("l", item.labelled_ms, {"id": item.uuid, "fraud": item.true == "fraud"})
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


SCORES: tuple[Maker, ...] = (
    with_scores,
    only_score,
    logits,
    named_scores,
    rare_in_an_array,
    score_of_elements,
    class_and_array,
    embeddings,
    sparse_scores,
)
