"""Every make of messages says the same: to the daemon, and to the bare loop."""

from __future__ import annotations

import json
import uuid
import zlib
from typing import Any

import pytest

from streamwatch.assembly.topics import build_topics
from streamwatch.core.records.events import EventGroup, Label, Prediction, fold_name
from streamwatch.demo.simulate import ScheduleSpec, schedule
from streamwatch.demo.simulated import StreamSpec
from streamwatch.edge.keys import digest_ids
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord
from streamwatch.settings import Settings
from tests import tiers
from tests.bench.end_to_end.daemon import SETTINGS, settings
from tests.bench.peers.payloads import (
    CLASSES,
    PAYLOAD,
    PAYLOADS,
    TENANTS,
    one_of_many,
    payload_of,
    records_of,
)
from tests.bench.peers.scenarios import SCENARIOS

MODELS, INSTANCES = 3, 40
START_MS = 1_700_000_000_123


def plain() -> list[tuple[str, float, bytes, bytes]]:
    spec = ScheduleSpec(StreamSpec(models=MODELS), 1_000.0, START_MS, "run", INSTANCES)
    return [(due.side, due.at_s, due.key, due.value) for due in schedule(spec)]


def events_of(found: Any) -> list[Any]:
    return list(found.events) if isinstance(found, EventGroup) else [found]


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_payload_says_what_the_plain_one_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = next((each.settings for each in SCENARIOS if each.payload == name and name != "plain"), {})
    monkeypatch.setenv(PAYLOAD, name)
    monkeypatch.setenv(SETTINGS, json.dumps(own))
    topics = build_topics(Settings(**settings("nowhere:9092", ["predictions", "labels"])))
    payload = payload_of()
    bare = {"prediction": payload.decode_predictions(), "label": payload.decode_labels()}
    predictions, labels, records = [], [], 0
    for side, _, key, value, held in records_of(payload, plain(), MODELS):
        record = KafkaRecord(f"{side}s", 0, records, START_MS, key, value)
        (found,) = topics[f"{side}s"].decoder.decode_all([record], [START_MS])
        events = events_of(found)
        assert len(events) == held
        (predictions if side == "prediction" else labels).extend(events)
        bare[side](value)
        records += 1
    documents = [(side, json.loads(value)) for side, _, _, value in plain()]
    models = list(dict.fromkeys(each["model"] for side, each in documents if side == "prediction"))

    def model(each: Any) -> str:
        if name == "ten thousand models":
            return f"{each['model']}-{zlib.crc32(each['id'].encode()) % TENANTS}"
        return fold_name("fraud-v1", models.index(each["model"])) if name == "folds" else each["model"]

    def named(each: Any, given: str) -> str:
        return one_of_many(each["id"], given, CLASSES[name]) if name in CLASSES else given

    def id_of(each: Any) -> str:
        if name == "uuids":
            return str(uuid.uuid5(uuid.NAMESPACE_OID, each["id"]))
        return f"{100_000_000 + int(each['id'].split('-')[1])}" if name == "numbers" else each["id"]

    assert [(each.id, each.model, each.predicted_class, each.timestamp_ms) for each in predictions] == [
        (digest(id_of(each)), model(each), named(each, each["prediction"]), each["timestamp"])
        for side, each in documents
        if side == "prediction"
    ]
    assert all(type(each) is Prediction for each in predictions)
    assert all(type(each) is Label for each in labels)
    assert [(each.id, each.true_class, each.timestamp_ms) for each in labels] == [
        (digest(id_of(each)), named(each, each["label"]), each["timestamp"])
        for side, each in documents
        if side == "label"
    ]
    if name == "array":
        assert records == INSTANCES + len(labels)
    if name.endswith("segments"):
        assert all(each.segments for each in predictions)
    scores = {"three scores": 3, "hundred scores": 100, "scores and segments": 3}
    if classes := scores.get(name):
        assert all(len(each.scores) == classes for each in predictions)


@pytest.mark.parametrize("classes", tiers.few(CLASSES.values(), 1))
def test_of_many_classes_nearly_all_occur_and_hits_stay_hits(classes: int) -> None:
    ids = [f"run-{number}" for number in range(200 * classes)]
    few = StreamSpec().classes
    assert len({one_of_many(each, name, classes) for each in ids for name in few}) > 0.99 * classes
    for each in ids[:100]:
        assert len({one_of_many(each, name, classes) for name in few}) == len(few)


def digest(id_: str) -> str:
    return digest_ids([id_])[0]


def test_every_payload_has_a_scenario() -> None:
    assert {each.payload for each in SCENARIOS} == set(PAYLOADS)
