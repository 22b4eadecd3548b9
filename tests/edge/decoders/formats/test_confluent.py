"""Values and keys as Confluent's own serializers write them, with the schemas of its own registry client."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from streamwatch.assembly.topics import build_topics
from streamwatch.core.records.events import Event, Invalid, Label, NullRecord, Prediction
from streamwatch.edge.decoders.schemas.schema import Schema, SchemaRequest, SchemaUnusable, ValueReader
from streamwatch.edge.keys import digest_ids
from streamwatch.settings import Settings
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.records import AT_MS, FakeRecord

ID = {
    "type": "record",
    "name": "TransactionId",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}],
}
AVRO = {
    "type": "record",
    "name": "Scored",
    "namespace": "shop",
    "fields": [
        {"name": "model", "type": "string"},
        {"name": "decision", "type": {"type": "enum", "name": "Decision", "symbols": ["legit", "fraud"]}},
        {"name": "scored_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "scores", "type": ["null", {"type": "map", "values": "double"}], "default": None},
    ],
}
JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Truth",
    "type": "object",
    "properties": {"label": {"type": "string"}},
}
JSON_ID = {"title": "Id", "type": "object", "properties": {"id": {"type": "string"}}}


PROTO_TEXTS: dict[str, str] = {}
"""Text of each .proto by its descriptor, which is what the serializer registers."""


class Registry:
    """Confluent's registry in memory, and the readers that are made of its schemas."""

    def __init__(self) -> None:
        self.gives_text = False
        self.client = SchemaRegistryClient.new_client({"url": "mock://"})

    def reader(self, wanted: SchemaRequest) -> ValueReader | str:
        if not isinstance(wanted.ref, int):
            found = self.client.get_schema_by_guid(str(wanted.ref))
        else:
            found = self.client.get_schema(wanted.ref)
        try:
            is_proto = found.schema_type == "PROTOBUF"
            text = PROTO_TEXTS[found.schema_str] if is_proto and self.gives_text else found.schema_str
            return wanted.compile(Schema(found.schema_type, text))
        except SchemaUnusable as error:
            pytest.fail(str(error))


@pytest.fixture
def registry() -> Registry:
    return Registry()


def message(name: str, *fields: tuple[str, int]) -> Any:
    """The class of a message of text fields, in a file and after a message of its own."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto".lower(), package="shop", syntax="proto3")
    file.message_type.add(name="Before")
    made = file.message_type.add(name=name)
    for field, number in fields:
        made.field.add(name=field, number=number, type=9, label=1, json_name=field)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # type: ignore[attr-defined]
    text = "".join(f" string {field} = {number};" for field, number in fields)
    serialized = base64.b64encode(file.SerializeToString()).decode()
    PROTO_TEXTS[serialized] = (
        f'syntax = "proto3"; package shop; message Before {{}} message {name} {{{text} }}'
    )
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}"))


def decoded(
    registry: Registry, topics: dict[str, Any], topic: str, records: Sequence[FakeRecord]
) -> list[Event]:
    """Events of records decoded one by one, which must be those of the same records as a batch."""
    asked = {"kafka": {"bootstrap_servers": "a:1"}, "topics": topics, "state": {"kind": "memory"}}
    settings = Settings(**asked, schema_registry={"url": "http://127.0.0.1:1"})  # type: ignore[arg-type]
    decoder = build_topics(settings, registry)[topic].decoder
    alone = list(decoder.decode_all(records, [AT_MS + i for i in range(len(records))]))
    together = decoder.decode_batch(fetched(records)).events()
    assert [_shown(each) for each in together] == [_shown(each) for each in alone]
    return [each for each in alone if not hasattr(each, "events")]


def _shown(event: Any) -> Any:
    return event.reason if isinstance(event, Invalid) else event


VALUE = SerializationContext("scored", MessageField.VALUE)
KEY = SerializationContext("scored", MessageField.KEY)


def written(serialize: Callable[..., Any], content: Any, context: SerializationContext) -> bytes:
    found = serialize(content, context)
    assert isinstance(found, bytes)
    return found


def test_avro_of_confluent_s_serializer_with_a_key_that_is_a_record(registry: Registry) -> None:
    values = AvroSerializer(registry.client, json.dumps(AVRO))
    keys = AvroSerializer(registry.client, json.dumps(ID))
    content = {"model": "m", "decision": "fraud", "scored_at": 1_700_000_000_000, "scores": {"fraud": 0.9}}
    record = FakeRecord(written(values, content, VALUE), key=written(keys, {"id": 2**40}, KEY))
    mapping = {"id": "key.id", "prediction": "value.decision", "timestamp": "value.scored_at"}
    topic = {"name": "scored", "format": "avro", "key_format": "avro", "mapping": mapping}
    topics = {"predictions": [topic], "labels": "truths"}
    (event,) = decoded(registry, topics, "scored", [record])
    assert event == Prediction(
        *digest_ids([str(2**40)]), "m", "fraud", AT_MS, 1_700_000_000_000, {"fraud": 0.9}
    )


@pytest.mark.parametrize(("schema", "content", "id_"), [("string", "tx-1", "tx-1"), ("long", -7, "-7")])
def test_a_key_that_is_one_content_is_its_text(
    registry: Registry, schema: str, content: Any, id_: str
) -> None:
    keys = AvroSerializer(registry.client, json.dumps({"type": schema}))
    record = FakeRecord(b'{"label": "legit"}', key=written(keys, content, KEY))
    topic = {"name": "truths", "key_format": "avro", "mapping": {"id": "key"}}
    topics = {"predictions": "scored", "labels": [topic]}
    nothing = FakeRecord(None, key=record.key)
    assert decoded(registry, topics, "truths", [record])[0] == Label(
        *digest_ids([id_]), "legit", AT_MS, None, None
    )
    assert isinstance(decoded(registry, topics, "truths", [nothing])[0], NullRecord)


@pytest.mark.parametrize("gives_text", [False, True])
def test_protocol_buffers_of_confluent_s_serializer_with_message_indexes(
    registry: Registry, *, gives_text: bool
) -> None:
    registry.gives_text = gives_text
    made, key = message("Truth", ("label", 4)), message("Id", ("id", 1))
    values = ProtobufSerializer(made, registry.client, {"use.deprecated.format": False})
    keys = ProtobufSerializer(key, registry.client, {"use.deprecated.format": False})
    record = FakeRecord(
        written(values, made(label="fraud"), SerializationContext("truths", MessageField.VALUE)),
        key=written(keys, key(id="tx-1"), SerializationContext("truths", MessageField.KEY)),
    )
    topic = {"name": "truths", "format": "protobuf", "key_format": "protobuf", "mapping": {"id": "key.id"}}
    topics = {"predictions": "scored", "labels": [topic]}
    (event,) = decoded(registry, topics, "truths", [record])
    assert event == Label(*digest_ids(["tx-1"]), "fraud", AT_MS, None, None)


def test_json_schema_of_confluent_s_serializer(registry: Registry) -> None:
    values = JSONSerializer(json.dumps(JSON), registry.client)
    keys = JSONSerializer(json.dumps(JSON_ID), registry.client)
    record = FakeRecord(written(values, {"label": "fraud"}, VALUE), key=written(keys, {"id": "ä"}, KEY))
    topic = {
        "name": "truths",
        "format": "json_schema",
        "key_format": "json_schema",
        "mapping": {"id": "key.id"},
    }
    topics = {"predictions": "scored", "labels": [topic]}
    (event,) = decoded(registry, topics, "truths", [record])
    assert event == Label(*digest_ids(["ä"]), "fraud", AT_MS, None, None)


def test_schemas_named_in_headers_as_confluent_s_serializer_writes_them(registry: Registry) -> None:
    options = {"schema.id.serializer": header_schema_id_serializer}
    values = AvroSerializer(registry.client, json.dumps(AVRO), conf=options)
    keys = AvroSerializer(registry.client, json.dumps(ID), conf=options)
    headers: list[tuple[str, bytes]] = []
    content = {"model": "m", "decision": "legit", "scored_at": 1_700_000_000_000, "scores": None}
    value = written(values, content, SerializationContext("scored", MessageField.VALUE, headers))
    key = written(keys, {"id": 5}, SerializationContext("scored", MessageField.KEY, headers))
    assert {name for name, _ in headers} == {"__key_schema_id", "__value_schema_id"}
    mapping = {"id": "key.id", "prediction": "value.decision", "timestamp": "value.scored_at"}
    topic = {"name": "scored", "format": "avro", "key_format": "avro", "mapping": mapping}
    topics = {"predictions": [topic], "labels": "truths"}
    (event,) = decoded(registry, topics, "scored", [FakeRecord(value, key=key, headers=tuple(headers))])
    assert isinstance(event, Prediction)
    assert (event.id, event.predicted_class) == (*digest_ids(["5"]), "legit")


def test_fields_of_a_key_in_plain_json_need_no_format(registry: Registry) -> None:
    topic = {"name": "truths", "mapping": {"id": 'key.tx."the.id"', "model": "key.model"}}
    topics = {"predictions": "scored", "labels": [topic]}
    good = FakeRecord(b'{"label": "legit"}', key=b'{"model": "m", "tx": {"the.id": 12}}')
    without = FakeRecord(b'{"label": "legit"}', key=b"12")
    no_key = FakeRecord(b'{"label": "legit"}')
    found = decoded(registry, topics, "truths", [good, without, no_key])
    assert found[0] == Label(*digest_ids(["12"]), "legit", AT_MS, "m", None)
    assert [each.reason for each in found[1:] if isinstance(each, Invalid)] == ["missing_id"] * 2


@pytest.mark.parametrize("value", [b'{"label": "legit"}', None])
def test_a_key_that_names_a_schema_is_said_to_where_its_fields_are_read_as_plain_json(
    registry: Registry, value: bytes | None
) -> None:
    topic = {"name": "truths", "mapping": {"id": "key.id"}}
    topics = {"predictions": "scored", "labels": [topic]}
    (event,) = decoded(registry, topics, "truths", [FakeRecord(value, key=b"\0\0\0\0\x07\x02a")])
    assert isinstance(event, Invalid)
    assert event.reason == "schema_registry_framing"


@pytest.mark.parametrize("key", [b"plain", b"\0\0\0\0\x01", b"\0\0\0\0\x01\x02\x02"])
def test_a_key_that_is_not_what_its_format_says_makes_its_record_invalid(
    registry: Registry, key: bytes
) -> None:
    AvroSerializer(registry.client, json.dumps(ID))({"id": 1}, KEY)
    topic = {"name": "truths", "key_format": "avro", "mapping": {"id": "key.id"}}
    topics = {"predictions": "scored", "labels": [topic]}
    (event,) = decoded(registry, topics, "truths", [FakeRecord(b'{"label": "legit"}', key=key)])
    assert isinstance(event, Invalid)
    assert event.reason == "invalid_key"


@pytest.mark.parametrize("key", [b"\0\0\0\0\x01{", b"\0\0\0\0\x01", b"\0\0\0\0\x01" + b"[" * 100_000, b"{}"])
def test_a_key_of_json_schema_that_is_no_json_makes_its_record_invalid(
    registry: Registry, key: bytes
) -> None:
    """It raised, and ended the daemon."""
    topic = {"name": "truths", "key_format": "json_schema", "mapping": {"id": "key.id"}}
    topics = {"predictions": "scored", "labels": [topic]}
    (event,) = decoded(registry, topics, "truths", [FakeRecord(b'{"label": "legit"}', key=key)])
    assert isinstance(event, Invalid)
    assert event.reason == "invalid_key"
