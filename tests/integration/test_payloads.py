"""The examples of the pages on payloads, written to Apache Kafka and read by a daemon."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import Producer

from streamwatch.admin.kafka_check import CheckResult
from streamwatch.assembly.checks import check_all
from streamwatch.settings import Settings
from tests.integration.conftest import Broker
from tests.integration.running import daemon
from tests.integration.topics import create_topic, fresh
from tests.integration.watched import summed
from tests.payloads.pages import Example, examples

FAMILIES = {
    "cloudevents": ("cloudevents",),
    "debezium": ("debezium",),
    "kserve": ("kserve",),
    "seldon": ("seldon",),
    "mappings": ("classes", "elements", "several"),
}


def topics_of(example: Example, names: dict[str, str], namespace: str) -> dict[str, list[dict[str, Any]]]:
    """The topics of an example by other names, in a namespace of their own."""
    sides: dict[str, list[dict[str, Any]]] = {}
    for side, written in example.settings["topics"].items():
        topics = written if isinstance(written, list) else [written]
        full = [{"name": topic} if isinstance(topic, str) else topic for topic in topics]
        sides[side] = [topic | {"name": names[topic["name"]], "namespace": namespace} for topic in full]
    return sides


class Expected:
    """What the pages say, counted."""

    def __init__(self, found: Sequence[Example]) -> None:
        self.lines: Counter[str] = Counter(line.split()[0] for each in found for line in each.events)
        self.tied = sum(
            int(n) for each in found for line in each.events for n in re.findall(r"tied=(\d)", line)
        )
        self.outcomes: Counter[str] = Counter()
        for each in found:
            told = [dict(re.findall(r"(\w+)=(\S+)", line)) | {"is": line.split()[0]} for line in each.events]
            made = {(line["id"], line["model"]) for line in told if line["is"] == "prediction"}
            known = {line["id"] for line in told if line["is"] == "label"}
            self.outcomes.update(model for id_, model in made if id_ in known)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("family", FAMILIES)
async def test_a_daemon_counts_what_the_pages_say(kafka: Broker, family: str) -> None:
    found = [each for each in examples() if each.name.split(":")[0] in FAMILIES[family]]
    expected = Expected(found)
    sides: dict[str, list[dict[str, Any]]] = {"predictions": [], "labels": []}
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number, example in enumerate(found):
        used = {topic["name"] if isinstance(topic, dict) else topic for topic in _listed(example)}
        names = {name: await create_topic(kafka, fresh(family)) for name in sorted(used)}
        for side, topics in topics_of(example, names, f"page-{number}").items():
            sides[side] += topics
        for record in example.records:
            headers = list(record.headers)
            producer.produce(names[record.topic], record.value, key=record.key, headers=headers)
    assert producer.flush(60) == 0
    document = {"kafka": {"bootstrap_servers": kafka.bootstrap_servers}, "topics": sides}
    records = sum(len(example.records) for example in found)
    async with daemon(document) as running:
        samples = await running.until(lambda s: summed(s, "records_evaluated_total") == records)
    kinds = ("predictions_accepted_total", "predictions_duplicate_total", "predictions_conflict_total")
    lines = expected.lines
    assert sum(summed(samples, kind) for kind in kinds) == lines["prediction"]
    assert summed(samples, "records_invalid_total") == lines["invalid"]
    assert summed(samples, "null_records_total") == lines["null"] + lines["withdrawal"]
    assert summed(samples, "records_skipped_total") == lines["skipped"]
    assert summed(samples, "events_evaluated_total") == sum(lines.values()) - lines["skipped"]
    assert summed(samples, "predictions_tied_total") == expected.tied
    outcomes = {dict(labels)["model"]: n for (name, labels), n in samples.items() if name == "outcomes_total"}
    assert {model: n for model, n in outcomes.items() if n} == expected.outcomes


def _listed(example: Example) -> list[Any]:
    sides = example.settings["topics"].values()
    return [topic for side in sides for topic in (side if isinstance(side, list) else [side])]


@pytest.mark.timeout(600)
async def test_check_says_of_scores_on_a_topic_what_to_write_instead(kafka: Broker) -> None:
    topics = {side: await create_topic(kafka, fresh(side)) for side in ("predictions", "labels")}
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for n in range(50):
        producer.produce(topics["predictions"], json.dumps({"id": n, "model": "m", "p": n / 64}).encode())
        producer.produce(topics["labels"], json.dumps({"id": n, "label": "fraud"}).encode())
    assert producer.flush(60) == 0

    async def results(prediction: Any) -> dict[str, CheckResult]:
        named = {"name": topics["predictions"], "mapping": {"prediction": prediction}}
        sides = {"predictions": named, "labels": topics["labels"]}
        arguments: dict[str, Any] = {"kafka": {"bootstrap_servers": kafka.bootstrap_servers}, "topics": sides}
        found = await check_all(Settings(**arguments | {"state": {"kind": "memory"}}))
        return {result.what: result for result in found}

    what = f"topic {topics['predictions']}: 50 predictions in the first 50 records"
    wrong = await results("value.p")
    assert not wrong[what].good
    assert "write prediction: {score: value.p, threshold: 0.5," in wrong[what].details[0]
    right = await results({"score": "value.p", "threshold": 0.5, "above": "fraud", "below": "legit"})
    assert right[what].good
    assert right[f"topic {topics['labels']}: 50 labels in the first 50 records"].good


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("start", "good"), [("txn-", False), ("other", True)])
async def test_check_shows_ids_that_never_meet_as_records_have_them(
    kafka: Broker, start: str, *, good: bool
) -> None:
    topics = {side: await create_topic(kafka, fresh(side)) for side in ("predictions", "labels")}
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for n in range(1_000, 1_050):
        prediction = {"id": f"{n}", "model": "m", "prediction": "fraud"}
        later = n if start == "txn-" else n + 50_000
        producer.produce(topics["predictions"], json.dumps(prediction).encode())
        producer.produce(topics["labels"], json.dumps({"id": f"{start}{later}", "label": "fraud"}).encode())
    assert producer.flush(60) == 0

    arguments: dict[str, Any] = {"kafka": {"bootstrap_servers": kafka.bootstrap_servers}, "topics": topics}
    found = {result.what: result for result in await check_all(Settings(**arguments))}

    ids = found["ids: none of 50 labels in the samples meets one of 50 predictions"]
    assert ids.good is good
    shown = f"a prediction's id is '1000', a label's '{start}{1_000 if start == 'txn-' else 51_000}'"
    assert any(shown in line for line in ids.details)
    if not good:
        assert "ids at labels start with 'txn-', those at predictions do not" in ids.details[0]
