"""What a record costs in each format, from fetched bytes to rows, beside the same records in JSON.

    python -m tests.bench.formats

All read the same predictions in turn, in one process; the lowest of the rounds is shown, in µs of CPU a
message and as a ratio to JSON.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import fastavro

from streamwatch.core.events import Partition
from streamwatch.edge.decoders.formats import KINDS, DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.decoders.schemas.protobuf import ProtobufReader
from streamwatch.edge.decoders.schemas.schema import Schema, SchemaRequest, ValueReader
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord, KafkaRecords, gathered, piece_of
from tests.bench.decode import AT_MS, microseconds, values

PROTO = """syntax = "proto3";
message Scored { string id = 1; string model = 2; string prediction = 3; int64 timestamp = 4;
                 map<string, double> features = 5; string comment = 6; }"""
FIELDS: Sequence[tuple[str, Any]] = (
    ("id", "string"),
    ("model", "string"),
    ("prediction", "string"),
    ("timestamp", "long"),
    ("features", {"type": "map", "values": "double"}),
    ("comment", "string"),
)
AVRO = {
    "type": "record",
    "name": "Scored",
    "fields": [{"name": name, "type": kind} for name, kind in FIELDS],
}
SCHEMAS = {1: Schema("AVRO", json.dumps(AVRO)), 2: Schema("PROTOBUF", PROTO)}
SIZES = {"thin": 80, "fat": 1_000}


class AtHand:
    """Readers of both schemas."""

    def __init__(self) -> None:
        self.readers: dict[int, ValueReader] = {}

    def reader(self, wanted: SchemaRequest) -> ValueReader:
        number = wanted.ref
        assert isinstance(number, int)
        if number not in self.readers:
            self.readers[number] = wanted.compile(SCHEMAS[number])
        return self.readers[number]


def plain(value: bytes) -> dict[str, Any]:
    """The prediction that a JSON value holds, features and comment at the top."""
    fields = json.loads(value)
    features = fields.pop("features", {})
    comment = features.pop("comment", "")
    return {**fields, "features": features, "comment": comment}


def in_avro(fields: Mapping[str, Any]) -> bytes:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, AVRO, fields)
    return b"\0\0\0\0\1" + written.getvalue()


def in_protobuf(fields: Mapping[str, Any], message: Any) -> bytes:
    return b"\0\0\0\0\2\0" + message(**fields).SerializeToString()


def fetched(written: Sequence[bytes]) -> KafkaRecords:
    records = [KafkaRecord("p", 0, n, AT_MS + n, None, value) for n, value in enumerate(written)]
    return gathered(Partition("p", 0), [piece_of(records)])


def contenders(size: int) -> dict[str, Callable[[], object]]:
    """Each format's decoder over the same predictions."""
    at_hand = AtHand()
    spec = DecoderSpec("p", "prediction", TopicMapping())
    decoders = {name: kind.build(spec, FormatOptions(at_hand)) for name, kind in KINDS.items()}
    told = [plain(value) for value in values(size)]
    text = [json.dumps(fields, separators=(",", ":")).encode() for fields in told]
    reader = at_hand.reader(SchemaRequest(2, decoders["protobuf"]._choice.compile))  # type: ignore[attr-defined]
    assert isinstance(reader, ProtobufReader)
    message = reader._class("Scored")
    written = {
        "json": text,
        "json_schema": [b"\0\0\0\0\3" + value for value in text],
        "avro": [in_avro(fields) for fields in told],
        "protobuf": [in_protobuf(fields, message) for fields in told],
    }
    found: dict[str, Callable[[], object]] = {}
    expected = decoders["json"].decode_batch(fetched(text)).events()
    for name, each in written.items():
        records, decoder = fetched(each), decoders[name]
        for _ in range(2):
            batch = decoder.decode_batch(records)
        if batch.events() != expected:
            raise SystemExit(f"{name} differs from JSON")
        found[name] = lambda decoder=decoder, records=records: decoder.decode_batch(records)
    return found


def main() -> None:
    """Print the table."""
    for size, bytes_each in SIZES.items():
        found = microseconds(contenders(bytes_each))
        sys.stdout.write(f"{size}\n")
        for name, cost in found.items():
            sys.stdout.write(f"  {name:12s} {cost:6.3f} µs  {cost / found['json']:5.1f} ×\n")


if __name__ == "__main__":
    main()
