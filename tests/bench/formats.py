"""What a record of each make costs, from fetched bytes to rows, beside a plain one of JSON.

    python -m tests.bench.formats

All are read in turn, in one process; the lowest of the rounds is shown, in µs of CPU a record, and for each
event that it holds as a ratio to a plain record. `tests.bench.decode` has msgspec beside them.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import fastavro

from streamwatch.core.ports import Decoder
from streamwatch.core.records.events import Partition
from streamwatch.edge.decoders.envelopes import KINDS as ENVELOPES
from streamwatch.edge.decoders.formats import KINDS, DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.decoders.schemas.protobuf import ProtobufReader
from streamwatch.edge.decoders.schemas.schema import Schema, SchemaRequest, ValueReader
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord, KafkaRecords, gathered
from tests.bench.decode import AT_MS, RECORDS, microseconds, payloads, scored, values
from tests.edge.sources.kafka.batches.pieces import piece_of

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
SCORES = {"type": "map", "values": "double"}
SCORED_AVRO = AVRO | {"fields": [*AVRO["fields"], {"name": "scores", "type": SCORES}]}
SCORED_PROTO = PROTO.replace("}", " map<string, double> scores = 7; }")
SCHEMAS |= {4: Schema("AVRO", json.dumps(SCORED_AVRO)), 5: Schema("PROTOBUF", SCORED_PROTO)}
TRACED = (("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),)
"""Headers as tracing adds them."""


class Row(NamedTuple):
    """Records of one make."""

    decoder: Decoder
    written: Sequence[bytes]
    events: int = 1
    """Of a record."""
    headers: Sequence[tuple[str, bytes]] = ()


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


def in_avro(fields: Mapping[str, Any], number: int = 1) -> bytes:
    """A value in Confluent's wire format."""
    written = io.BytesIO()
    fastavro.schemaless_writer(written, SCORED_AVRO if number == 4 else AVRO, fields)
    return bytes((0, 0, 0, 0, number)) + written.getvalue()


def in_protobuf(fields: Mapping[str, Any], message: Any, number: int = 2) -> bytes:
    """The same, with the index of the first message."""
    return bytes((0, 0, 0, 0, number, 0)) + message(**fields).SerializeToString()


def fetched(written: Sequence[bytes], headers: Sequence[tuple[str, bytes]] = ()) -> KafkaRecords:
    """Records as the source has them."""
    records = [KafkaRecord("p", 0, n, AT_MS + n, None, value, headers) for n, value in enumerate(written)]
    return gathered(Partition("p", 0), [piece_of(records)])


def in_json(name: str) -> Row:
    """One of the makes of `tests.bench.decode`."""
    payload = payloads()[name]
    decoder = KINDS["json"].build(DecoderSpec("p", "prediction", payload.mapping), FormatOptions())
    return Row(decoder, payload.written, 3 if name.startswith("three models") else 1)


def in_german(name: str, text: str) -> Row:
    """Plain records with text beyond ASCII."""
    told = [json.loads(value) | {name: f"{text}{n}"} for n, value in enumerate(values(80))]
    written = [json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode() for fields in told]
    decoder = KINDS["json"].build(DecoderSpec("p", "prediction", TopicMapping()), FormatOptions())
    return Row(decoder, written)


def top_array() -> Row:
    """Records that are an array of three predictions."""
    mapping = TopicMapping(
        id="value[].id",
        model="value[].model",
        prediction="value[].prediction",
        timestamp="value[].timestamp",
        scores=None,
        fold=None,
    )
    plain_ones = values(80)
    written = [b"[" + b",".join([each] * 3) + b"]" for each in plain_ones]
    return Row(KINDS["json"].build(DecoderSpec("p", "prediction", mapping), FormatOptions()), written, 3)


def kserve() -> Row:
    """Answers of a model server, with one instance each."""
    fields = ENVELOPES["kserve_v2"].defaults
    mapping = TopicMapping(
        id="value.id",
        model=("value.model", "value.model_version?"),
        prediction=cast("str", fields["prediction"]),
        timestamp=None,
        scores=None,
        fold=None,
    )
    spec = DecoderSpec("p", "prediction", mapping, envelope=ENVELOPES["kserve_v2"])
    written = [
        json.dumps(
            {
                "id": f"{n:016x}",
                "model_name": f"m{n % 3}",
                "model_version": "1",
                "outputs": [{"name": "label", "shape": [1], "datatype": "BYTES", "data": [str(n % 2)]}],
            }
        ).encode()
        for n in range(RECORDS)
    ]
    return Row(KINDS["json"].build(spec, FormatOptions()), written)


def with_schemas(size: int, *, scores: bool = False) -> dict[str, Row]:
    """Formats with a schema, of the same predictions, beside JSON."""
    at_hand = AtHand()
    spec = DecoderSpec("p", "prediction", TopicMapping())
    decoders = {name: kind.build(spec, FormatOptions(at_hand)) for name, kind in KINDS.items()}
    source = scored(3, named=True) if scores else values(size)
    told = [plain(value) for value in source]
    text = [json.dumps(fields, separators=(",", ":")).encode() for fields in told]
    avro, proto = (4, 5) if scores else (1, 2)
    choice = decoders["protobuf"]._choice  # type: ignore[attr-defined]
    reader = at_hand.reader(SchemaRequest(proto, choice.compile))
    assert isinstance(reader, ProtobufReader)
    message = reader._class("Scored")
    return {
        "json": Row(decoders["json"], text),
        "json_schema": Row(decoders["json_schema"], [b"\0\0\0\0\3" + value for value in text]),
        "avro": Row(decoders["avro"], [in_avro(fields, avro) for fields in told]),
        "protobuf": Row(decoders["protobuf"], [in_protobuf(fields, message, proto) for fields in told]),
    }


def rows() -> dict[str, Row]:
    """Records of each make, by what the table calls them; a plain one first."""
    thin, fat, scores = with_schemas(80), with_schemas(1_000), with_schemas(80, scores=True)
    found = {"plain JSON": in_json("thin")}
    found |= {name: in_json(name) for name in payloads() if name not in {"thin", "fat"}}
    found |= {"an array of three records": top_array(), "KServe v2": kserve()}
    found |= {
        "a comment in German": in_german("comment", "Grüße "),
        "an id in German": in_german("id", "Maß-"),
    }
    for title, several in (("", thin), (", 3 scores", scores), (", 1 kB", fat)):
        found |= {f"{name}{title}": row for name, row in several.items() if title or name != "json"}
    found["avro, traced"] = thin["avro"]._replace(headers=TRACED)
    for several in (thin, fat, scores):
        expected = events_of(several["json"])
        for name, row in several.items():
            if events_of(row) != expected:
                raise SystemExit(f"{name} differs from JSON")
    return found


def events_of(row: Row) -> object:
    """Events of records, read twice: then with every name met before."""
    records = fetched(row.written, row.headers)
    row.decoder.decode_batch(records)
    return row.decoder.decode_batch(records).events()


def contenders(makes: Mapping[str, Row]) -> dict[str, Callable[[], object]]:
    """Decode the records of each make."""
    found: dict[str, Callable[[], object]] = {}
    for name, row in makes.items():
        records, decoder = fetched(row.written, row.headers), row.decoder
        for _ in range(2):
            decoder.decode_batch(records)
        found[name] = lambda decoder=decoder, records=records: decoder.decode_batch(records)
    return found


def main() -> None:
    """Print the table."""
    makes = rows()
    found = microseconds(contenders(makes))
    one = found["plain JSON"]
    sys.stdout.write(f"{'':28s}  bytes  µs a record  × a plain record, for each event\n")
    for name, cost in found.items():
        row = makes[name]
        size = sum(map(len, row.written)) / len(row.written)
        sys.stdout.write(f"{name:28s}  {size:5.0f}  {cost:11.3f}  {cost / one / row.events:32.2f}\n")


if __name__ == "__main__":
    main()
