"""What Confluent's serializers write to Apache Kafka, keys and values, with schemas that they register."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from streamwatch.assembly.checks import check_all
from streamwatch.settings import Settings
from tests.edge.decoders.formats.test_confluent import AVRO, ID, JSON, message
from tests.integration.apicurio import Apicurio
from tests.integration.conftest import Broker
from tests.integration.running import child, value
from tests.integration.test_schema_registry import made, outcomes, running

COUNT = 200


def produce(broker: Broker, topic: str, records: Sequence[tuple[bytes, bytes]]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for key, content in records:
        producer.produce(topic, content, key=key)
    assert producer.flush(60) == 0


def contexts(topic: str) -> tuple[SerializationContext, SerializationContext]:
    return SerializationContext(topic, MessageField.KEY), SerializationContext(topic, MessageField.VALUE)


def labels_of(kind: str, client: SchemaRegistryClient) -> tuple[Any, Any]:
    """Serializer of labels, and what makes the content that it takes."""
    if kind == "json_schema":
        return JSONSerializer(json.dumps(JSON), client), lambda label: {"label": label}
    truth = message("Truth", ("label", 4))
    return ProtobufSerializer(truth, client), lambda label: truth(label=label)


@pytest.mark.real("schema registry")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["json_schema", "protobuf"])
async def test_what_confluent_s_serializers_write_is_joined_by_the_fields_of_its_keys(
    kafka: Broker, registry: Apicurio, tmp_path: Path, kind: str
) -> None:
    topics = await made(kafka)
    client = SchemaRegistryClient({"url": registry.url})
    keys, scored = AvroSerializer(client, json.dumps(ID)), AvroSerializer(client, json.dumps(AVRO))
    labels, label = labels_of(kind, client)
    key_at, value_at = contexts(topics["predictions"])
    event = {"model": "m", "decision": "fraud", "scored_at": 1_700_000_000_000, "scores": None}
    produce(
        kafka,
        topics["predictions"],
        [(keys({"id": i}, key_at), scored(event, value_at)) for i in range(COUNT)],
    )
    key_at, value_at = contexts(topics["labels"])
    truths = [label("legit" if i % 4 else "fraud") for i in range(COUNT)]
    produce(
        kafka,
        topics["labels"],
        [(keys({"id": i}, key_at), labels(each, value_at)) for i, each in enumerate(truths)],
    )
    document = {
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
        "schema_registry": {"url": registry.url},
        "topics": {
            "predictions": [
                {
                    "name": topics["predictions"],
                    "format": "avro",
                    "key_format": "avro",
                    "mapping": {"id": "key.id", "prediction": "value.decision", "timestamp": None},
                }
            ],
            "labels": [
                {
                    "name": topics["labels"],
                    "format": kind,
                    "key_format": "avro",
                    "mapping": {"id": "key.id", "timestamp": None},
                }
            ],
        },
    }
    (tmp_path / "streamwatch.yaml").write_text(yaml.safe_dump(document))
    results = await check_all(Settings(**document, state={"kind": "memory"}))  # type: ignore[arg-type]
    assert [result.what for result in results if "sample" in result.what] == [
        f"topic {topics['predictions']}: avro with keys of avro, 100 of 100 records of a sample were decoded",
        f"topic {topics['labels']}: {kind} with keys of avro, 100 of 100 records of a sample were decoded",
        "ids: 100 of 100 labels in the samples meet a prediction",
    ]
    with child(tmp_path) as process:
        async with aiohttp.ClientSession() as session:
            found = await running(process, session).until(lambda s: outcomes(s) == COUNT)
    assert value(found, "errors_total", model="m") == COUNT * 3 / 4
    assert value(found, "labels_joined_total") == COUNT
