"""Records with a schema decode as the same records in JSON would, alone and many at once."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from typing import Any

import fastavro
import pytest

from streamwatch.core.records.events import Event, Invalid, Prediction
from streamwatch.edge.decoders.formats import KINDS, DecoderSpec, FormatMisused, FormatOptions, avro, protobuf
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.formats.schema_decoder import SchemaDecoder
from streamwatch.edge.decoders.mapping import REASONS, TopicMapping
from streamwatch.edge.decoders.scanner.contents import are_without_header
from streamwatch.edge.decoders.schemas.cache import UNKNOWN, UNUSABLE
from streamwatch.edge.decoders.schemas.schema import (
    HEADER,
    Schema,
    SchemaRequest,
    SchemaUnusable,
    ValueReader,
)
from streamwatch.edge.decoders.transcoding.avro import transcode_avro
from streamwatch.edge.decoders.transcoding.protobuf import transcode_protobuf
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.records import AT_MS, FakeRecord, of
from tests.edge.decoders.schemas.avro_bytes import EVENT, event, framed
from tests.edge.decoders.schemas.test_protobuf import field
from tests.tiers import examples

PROTO = """syntax = "proto3"; package ml;
message Scored { string id = 1; string model = 2; string prediction = 3; int64 timestamp = 4;
                 map<string, double> scores = 5; }"""
SCHEMAS = {1: Schema("AVRO", json.dumps(EVENT)), 2: Schema("PROTOBUF", PROTO)}


class AtHand:
    """Readers of `SCHEMAS`; every other number is unknown."""

    def __init__(self) -> None:
        self._readers: dict[SchemaRequest, ValueReader] = {}

    def reader(self, wanted: SchemaRequest) -> ValueReader | str:
        if wanted.ref not in SCHEMAS:
            return UNKNOWN
        if wanted not in self._readers:
            try:
                self._readers[wanted] = wanted.compile(SCHEMAS[wanted.ref])  # type: ignore[index]
            except SchemaUnusable:
                return UNUSABLE
        return self._readers[wanted]


READERS = AtHand()


def decoder(kind: str, mapping: TopicMapping | None = None, **options: Any) -> SchemaDecoder:
    built = KINDS[kind].build(
        DecoderSpec("predictions", "prediction", mapping or TopicMapping()), FormatOptions(READERS, **options)
    )
    assert isinstance(built, SchemaDecoder)
    return built


def both_ways(decoding: SchemaDecoder, records: Sequence[FakeRecord]) -> list[Event]:
    """Events of records decoded one by one, which must be those of the same records as a batch."""
    alone = list(decoding.decode_all(records, [AT_MS + i for i in range(len(records))]))
    together = decoding.decode_batch(fetched(records))
    assert together.rows["offset"].tolist() == list(range(len(records)))
    made = together.events()
    for one, other in zip(alone, made, strict=True):
        if isinstance(one, Invalid):
            assert isinstance(other, Invalid)
            assert (one.reason, one.model) == (other.reason, other.model)
        else:
            assert one == other
    return alone


def test_avro_gives_the_event_that_json_gives() -> None:
    contents = {"id": "ä", "model": "m", "prediction": "legit", "timestamp": 5, "scores": {"legit": 0.9}}
    written = io.BytesIO()
    fastavro.schemaless_writer(written, EVENT, contents)
    expected = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping())).decode(
        of(contents), AT_MS
    )
    assert isinstance(expected, Prediction)
    assert both_ways(decoder("avro"), [FakeRecord(framed(1, written.getvalue()))]) == [expected]


def test_protobuf_gives_the_event_that_json_gives() -> None:
    contents = field(1, 2, b"a") + field(2, 2, b"m") + field(3, 2, b"fraud") + field(4, 0, b"\x05")
    reported = {"id": "a", "model": "m", "prediction": "fraud", "timestamp": 5, "scores": {}}
    expected = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping())).decode(
        of(reported), AT_MS
    )
    assert both_ways(decoder("protobuf"), [FakeRecord(framed(2, b"\0" + contents))]) == [expected]


def test_json_behind_its_schema_s_name_is_json_whatever_the_schema() -> None:
    reported = {"id": "a", "model": "m", "prediction": "fraud"}
    text = json.dumps(reported).encode()
    plain = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping()))
    expected = plain.decode_all([of(reported), of(reported)], [AT_MS, AT_MS + 1])
    records = [FakeRecord(framed(77, text)), FakeRecord(text, headers=((HEADER, framed(9, b"")),))]
    decoding = decoder("json_schema")
    assert both_ways(decoding, records) == list(expected)
    assert list(decoding.wanted(fetched(records))) == []


def test_the_schema_may_be_named_in_a_header_by_number_or_global_id() -> None:
    contents = event()
    records = [
        FakeRecord(contents, headers=(("trace", b"1"), (HEADER, framed(1, b"")))),
        FakeRecord(framed(1, contents), headers=(("trace", b"1"),)),
        FakeRecord(contents, headers=((HEADER, b"\x01" + bytes(16)),)),
        FakeRecord(b"\x01" + bytes(16) + contents),
    ]
    decoding = decoder("avro")
    found = both_ways(decoding, records)
    assert [type(each) for each in found] == [Prediction, Prediction, Invalid, Invalid]
    assert [each.reason for each in found[2:] if isinstance(each, Invalid)] == [UNKNOWN] * 2
    assert {str(each.ref) for each in decoding.wanted(fetched(records))} == {
        "1",
        "00000000-0000-0000-0000-000000000000",
    }


class Counted:
    """A reader that counts the values that it reads one by one."""

    def __init__(self, reader: ValueReader) -> None:
        self.reader = reader
        self.alone = 0

    def to_json(self, value: bytes, start: int, preface: bytes | None) -> bytes:
        self.alone += 1
        return self.reader.to_json(value, start, preface)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reader, name)


def test_only_headers_that_may_name_a_schema_have_their_records_read_one_by_one() -> None:
    plain, alone = ("trace", b"1"), ("x" * len(HEADER), None)
    headers: list[tuple[tuple[str, bytes | None], ...]] = [
        (),
        (plain,),
        (plain, alone, (HEADER[:-1], b""), (HEADER + "x", framed(1, b""))),
        ((HEADER, framed(1, b"")), plain),
        (plain, (HEADER, framed(9, b"")), (HEADER, None)),
        (("é", b""),),
    ]
    records = [FakeRecord(framed(1, event()), headers=each) for each in headers]
    records[3] = FakeRecord(event(), headers=headers[3])
    decoding = decoder("avro")
    expected = list(decoding.decode_all(records, [AT_MS + i for i in range(len(records))]))
    counted = Counted(READERS.reader(SchemaRequest(1, decoding._choice.compile)))  # type: ignore[arg-type]
    decoding._readers = type("", (), {"reader": lambda _, wanted: counted if wanted.ref == 1 else UNKNOWN})()
    assert decoding.decode_batch(fetched(records)).events() == expected
    assert counted.alone == 3
    assert {each.ref for each in decoding.wanted(fetched(records))} == {1}


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("avro", b"", "schema_missing"),
        ("avro", b'{"id": 1}', "schema_missing"),
        ("avro", b"\0\0\0\0", "schema_missing"),
        ("avro", framed(1, b""), "invalid_avro"),
        ("avro", framed(1, event() + b"\0"), "invalid_avro"),
        ("avro", framed(9, event()), "schema_unknown"),
        ("avro", framed(1, event(id_="")), "invalid_id"),
        ("protobuf", framed(2, b"\0\xff"), "invalid_protobuf"),
        ("protobuf", framed(2, b"\0"), "invalid_id"),
        ("protobuf", framed(2, b""), "invalid_protobuf"),
        ("json_schema", b'{"id": 1}', "schema_missing"),
        ("json_schema", framed(2, b"{"), "invalid_json"),
    ],
)
def test_bad_input_is_a_value_with_a_reason_that_names_the_model_where_the_mapping_does(
    kind: str, value: bytes, reason: str
) -> None:
    assert reason in REASONS
    decoding = decoder(kind, TopicMapping(model="=m", scores=None))
    [found] = both_ways(decoding, [FakeRecord(value)])
    assert isinstance(found, Invalid)
    assert (found.reason, found.model) == (reason, "m")


def test_null_values_and_records_that_could_not_be_read_stay_what_they_are() -> None:
    records = [
        FakeRecord(None, key=b"a"),
        FakeRecord(None, fault="record_too_large"),
        FakeRecord(framed(1, event())),
        FakeRecord(b"x", fault="header_encoding"),
    ]
    decoding = decoder("avro", TopicMapping(id="key"))
    batch = decoding.decode_batch(fetched(records))
    plain = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping(id="key"))).decode_batch(
        fetched(records)
    )
    for index in (0, 1, 3):
        one, other = batch.events()[index], plain.events()[index]
        assert type(one) is type(other)
        assert getattr(one, "reason", "") == getattr(other, "reason", "")


def test_a_batch_may_hold_nothing_that_has_a_value() -> None:
    decoding = decoder("avro", TopicMapping(id="key"))
    assert len(decoding.decode_batch(fetched([FakeRecord(None, key=b"a")] * 2))) == 2
    assert len(decoding.decode_batch(fetched([]))) == 0
    assert list(decoding.wanted(fetched([FakeRecord(None, key=b"a")]))) == []


def test_a_schema_in_a_file_reads_records_that_name_none() -> None:
    decoding = decoder("avro", schema_text=json.dumps(EVENT))
    assert isinstance(both_ways(decoding, [FakeRecord(event())])[0], Prediction)
    assert list(decoding.wanted(fetched([FakeRecord(event())]))) == []
    bare = decoder("protobuf", TopicMapping(scores=None), schema_text=PROTO, message="ml.Scored")
    contents = field(1, 2, b"a") + field(2, 2, b"m") + field(3, 2, b"fraud")
    assert isinstance(both_ways(bare, [FakeRecord(contents)])[0], Prediction)


def test_a_schema_of_the_settings_is_wanted_by_every_record() -> None:
    decoding = decoder("avro", fixed=1)
    assert isinstance(both_ways(decoding, [FakeRecord(event())])[0], Prediction)
    assert [each.ref for each in decoding.wanted(fetched([FakeRecord(b"")]))] == [1]
    assert list(decoding.wanted(fetched([]))) == []


def test_settings_that_cannot_be_used_say_so() -> None:
    spec = DecoderSpec("t", "prediction", TopicMapping())
    with pytest.raises(FormatMisused, match=r"schema_registry\.url, or from schema_file: neither is set"):
        KINDS["avro"].build(spec, FormatOptions())
    with pytest.raises(FormatMisused, match="schema_file: is no Avro schema"):
        KINDS["avro"].build(spec, FormatOptions(schema_text="{"))
    with pytest.raises(FormatMisused, match="schema_file: does not compile"):
        KINDS["protobuf"].build(spec, FormatOptions(schema_text="message"))


@pytest.mark.parametrize(("kind", "package"), [("avro", "fastavro"), ("protobuf", "grpc_tools")])
def test_a_missing_package_says_how_to_install_it(
    kind: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = __import__(f"streamwatch.edge.decoders.formats.{kind}", fromlist=["find_spec"])
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == package else object())
    with pytest.raises(FormatMisused, match=rf"pip install 'streamwatchd\[{kind}\]'"):
        KINDS[kind].build(DecoderSpec("t", "prediction", TopicMapping()), FormatOptions(READERS))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["avro", "protobuf", "json_schema"])
def test_mutated_records_never_raise_and_decode_alike_alone_and_together(kind: str) -> None:
    """A thousand and more in each tier; `test_schema_fuzz_long` does 100,000."""
    mutate(kind, examples(20), seed=1)


GOOD = {
    "avro": framed(1, event(scores={"fraud": 0.25, "legit": 0.75})),
    "protobuf": framed(
        2,
        b"\0"
        + field(1, 2, b"id")
        + field(2, 2, b"m")
        + field(3, 2, b"c")
        + field(5, 2, field(1, 2, b"c") + field(2, 1, bytes(8))),
    ),
    "json_schema": framed(3, b'{"id": "a", "model": "m", "prediction": "c", "scores": {"c": 1.0}}'),
}


def mutate(kind: str, rounds: int, seed: int) -> int:
    """Decode mutated records in batches of 50, both ways; the number that were valid."""
    decoding, chance, valid = decoder(kind), random.Random(seed), 0
    for _ in range(rounds):
        records = []
        for _ in range(50):
            value = bytearray(GOOD[kind])
            for _ in range(chance.choice((0, 1, 1, 2, 8))):
                at = chance.randrange(len(value) + 1)
                match chance.randrange(4):
                    case 0 if at < len(value):
                        value[at] ^= 1 << chance.randrange(8)
                    case 1:
                        value[at:at] = chance.randbytes(chance.choice((1, 4, 300)))
                    case 2:
                        del value[at : at + chance.choice((1, 4))]
                    case _:
                        value[at : at + 1] = bytes([chance.choice((0, 1, 127, 128, 255))])
            headers = (
                ((HEADER, chance.randbytes(chance.choice((0, 5, 17)))),) if chance.random() < 0.1 else ()
            )
            records.append(FakeRecord(bytes(value), headers=headers))
        valid += sum(isinstance(each, Prediction) for each in both_ways(decoding, records))
    return valid


@pytest.mark.parametrize(
    ("kind", "compiled"),
    [("avro", transcode_avro), ("protobuf", transcode_protobuf), ("json_schema", are_without_header)],
)
def test_what_a_format_compiles_beforehand_is_what_its_records_call(kind: str, compiled: Any) -> None:
    warm_up = KINDS[kind].warm_up
    assert warm_up is not None
    warm_up()
    before = list(compiled.signatures)
    headed = FakeRecord(GOOD[kind], headers=(("trace", b"1"),))
    source = fetched([FakeRecord(GOOD[kind])] * 2 + [headed])
    records = source.over(source.data.copy(), source.rows)  # as the source has them, data may be written to
    assert all(isinstance(each, Prediction) for each in decoder(kind).decode_batch(records).events())
    assert list(compiled.signatures) == before


@pytest.mark.parametrize("module", [avro, protobuf])
def test_a_format_that_reads_names_of_schemas_in_headers_compiles_that_search_beforehand(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(module, "compile_header_scan", lambda: compiled.append("headers"))
    assert module.KIND.warm_up is not None
    module.KIND.warm_up()
    assert compiled == ["headers"]
