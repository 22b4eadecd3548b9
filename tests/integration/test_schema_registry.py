"""Avro, Protocol Buffers and JSON Schema from Apache Kafka, with the schemas of Apicurio Registry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from confluent_kafka import Producer

from streamwatch.assembly.checks import check_all
from streamwatch.settings import Settings
from tests.edge.decoders.schemas.avro_bytes import EVENT, event, framed
from tests.edge.decoders.schemas.test_protobuf import field
from tests.integration.apicurio import Apicurio
from tests.integration.conftest import Broker
from tests.integration.running import Child, Running, Samples, child, value
from tests.integration.topics import create_topic, fresh

COUNT = 400
CARD = 'syntax = "proto3"; package shop; message Truth { bool fraud = 1; }'
LABEL = """syntax = "proto3"; package shop; import "truth.proto";
message Unused { string a = 1; message Labelled { string id = 1; Truth truth = 2; } }"""
LABEL_MAPPING = {"label": "value.truth.fraud", "classes": {"true": "fraud", "false": "legit"}}
WIDER = {**EVENT, "fields": [*EVENT["fields"], {"name": "shop", "type": "string", "default": ""}]}


def predicted(i: int) -> int:
    return i % 2


def label(schema: int, i: int) -> bytes:
    """Fraud for every fourth id; the default, which is not on the wire, for the others."""
    truth = field(1, 0, b"\x01") if i % 4 == 1 else b""
    return framed(schema, bytes([4, 0, 0]) + field(1, 2, b"%d" % i) + field(2, 2, truth))


def wrong(ids: Iterable[int]) -> int:
    """Predictions of fraud that are none: every other id but every fourth is fraud in truth."""
    return sum(i % 4 == 3 for i in ids)


def produce(broker: Broker, topic: str, values: Iterable[bytes], headers: Any = None) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for each in values:
        producer.produce(topic, each, headers=headers)
    assert producer.flush(60) == 0


async def made(broker: Broker) -> dict[str, str]:
    return {side: await create_topic(broker, fresh(side)) for side in ("predictions", "labels")}


def configured(
    folder: Path, broker: Broker, registry: Apicurio, topics: Mapping[str, str], **formats: Any
) -> dict[str, Any]:
    document = {
        "kafka": {"bootstrap_servers": broker.bootstrap_servers},
        "schema_registry": {"url": registry.url},
        "topics": {
            "predictions": [{"name": topics["predictions"], "format": formats.get("predictions", "avro")}],
            "labels": [
                {
                    "name": topics["labels"],
                    "format": formats.get("labels", "protobuf"),
                    "mapping": LABEL_MAPPING,
                }
            ],
        },
    }
    (folder / "streamwatch.yaml").write_text(yaml.safe_dump(document))
    return document


def scored(schema: int, ids: Iterable[int]) -> Iterable[bytes]:
    return (framed(schema, event(id_=str(i), class_=predicted(i))) for i in ids)


def outcomes(samples: Samples) -> float:
    """Outcomes of the only model; 0 before there is one."""
    return sum(n for (name, _), n in samples.items() if name == "outcomes_total")


def running(process: Child, session: aiohttp.ClientSession) -> Running:
    return Running(process.url(), session, [])


@pytest.mark.timeout(900)
async def test_each_format_is_read_with_the_registry_s_schemas_and_every_record_counts(
    kafka: Broker, schema_registry: Apicurio, tmp_path: Path
) -> None:
    topics = await made(kafka)
    avro = schema_registry.register("scored-value", json.dumps(EVENT))
    schema_registry.register("truth.proto", CARD, "PROTOBUF")
    protobuf = schema_registry.register("l-value", LABEL, "PROTOBUF", [("truth.proto", "truth.proto", 1)])
    produce(kafka, topics["predictions"], scored(avro, range(COUNT)))
    produce(kafka, topics["predictions"], [framed(99, event()), b"{}", framed(avro, b"\xff")])
    produce(
        kafka,
        topics["predictions"],
        (event(id_=str(i), class_=predicted(i)) for i in range(COUNT, COUNT + 10)),
        headers=[("__value_schema_id", framed(avro, b""))],
    )
    produce(kafka, topics["labels"], (label(protobuf, i) for i in range(COUNT + 10)))
    document = configured(tmp_path, kafka, schema_registry, topics)
    results = await check_all(Settings(**document, state={"kind": "memory"}))  # type: ignore[arg-type]
    assert all(result.good for result in results), results
    assert [result.what for result in results if " of a sample " in result.what] == [
        f"topic {topics['predictions']}: avro, 100 of 100 records of a sample were decoded",
        f"topic {topics['labels']}: protobuf, 100 of 100 records of a sample were decoded",
    ]
    with child(tmp_path) as process:
        async with aiohttp.ClientSession() as session:
            daemon = running(process, session)
            found = await daemon.until(lambda s: outcomes(s) == COUNT + 10)
    assert value(found, "outcomes_total", model="m") == COUNT + 10
    assert value(found, "errors_total", model="m") == wrong(range(COUNT + 10))
    assert value(found, "schema_registry_up") == 1
    reasons = {
        reason: value(found, "records_invalid_total", topic=topics["predictions"], reason=reason)
        for reason in ("schema_unknown", "schema_missing", "invalid_avro")
    }
    assert reasons == {"schema_unknown": 1, "schema_missing": 1, "invalid_avro": 1}


@pytest.mark.timeout(900)
async def test_a_killed_registry_is_waited_for_and_nothing_is_lost(
    kafka: Broker, schema_registry: Apicurio, tmp_path: Path
) -> None:
    topics = await made(kafka)

    def register() -> list[int]:
        label_text = json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"})
        return [
            schema_registry.register("scored-value", json.dumps(EVENT)),
            schema_registry.register("scored-value", json.dumps(WIDER)),
            schema_registry.register("l-value", label_text, "JSON"),
        ]

    numbers = old, new, truth = register()
    labels = [
        framed(truth, json.dumps({"id": str(i), "truth": {"fraud": i % 4 == 1}}).encode())
        for i in range(2 * COUNT)
    ]
    configured(tmp_path, kafka, schema_registry, topics, labels="json_schema")
    produce(kafka, topics["predictions"], scored(old, range(COUNT)))
    produce(kafka, topics["labels"], labels[:COUNT])
    with child(tmp_path) as process:
        async with aiohttp.ClientSession() as session:
            daemon = running(process, session)
            await daemon.until(lambda s: outcomes(s) == COUNT)
            schema_registry.kill()
            wider = (each + b"\x00" for each in scored(new, range(COUNT, 2 * COUNT)))
            produce(kafka, topics["predictions"], wider)
            produce(kafka, topics["labels"], labels[COUNT:])
            down = await daemon.until(lambda s: value(s, "schema_registry_up") == 0)
            assert value(down, "ready") == 0
            status, body = await daemon.get("/readyz")
            assert status == 503
            [reason] = json.loads(body)["reasons"]
            assert reason == (
                "records wait for their schemas: schema registry at 127.0.0.1: the connection fails"
            )
            await daemon.until(lambda s: value(s, "internal_events_total", event="schema_registry_lost") >= 3)
            assert (await daemon.get("/healthz"))[0] == 200
            schema_registry.start()
            assert register() == numbers
            found = await daemon.until(lambda s: outcomes(s) == 2 * COUNT)
            assert (await daemon.get("/readyz"))[0] == 200
    assert value(found, "errors_total", model="m") == wrong(range(2 * COUNT))
    assert value(found, "predictions_accepted_total") == value(found, "labels_accepted_total") == 2 * COUNT
    assert value(found, "schema_registry_up") == 1
    assert not [n for (name, _), n in found.items() if name == "records_invalid_total" and n]
