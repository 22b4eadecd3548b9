"""What records become, and for which reason they are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamwatch.core.events import Event, Invalid, Label, NullRecord, Prediction, Side, WrongFold
from streamwatch.core.fold_names import fold_of, model_of
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.judging import MAX_SCORES
from streamwatch.edge.decoders.mapping import KindRule, TopicMapping
from streamwatch.edge.decoders.names import MAX_REMEMBERED
from streamwatch.edge.decoders.reasons import REASONS
from streamwatch.edge.keys import id_keys
from streamwatch.folds import Scheme, roles
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.records import AT_MS, FakeRecord, of

FLAT = {"id": "a1", "model": "fraud-v3", "prediction": "ok", "timestamp": 1_700_000_000_000}
LABEL = {"id": "a1", "label": "ok"}


def decode(record: FakeRecord, side: Side = "prediction", mapping: TopicMapping | None = None) -> Event:
    """Twice with one decoder, alone and in columns: what it remembers must not change what follows."""
    decoder = JsonDecoder("predictions", side, mapping or TopicMapping())
    first = decoder.decode(record, AT_MS)
    assert decoder.decode(record, AT_MS) == first
    for _ in range(2):
        for event in decoder.decode_batch(fetched([record, record])).events():
            event.record_ms = first.record_ms
            if isinstance(event, Invalid):
                event.offset = record.offset
            assert event == first
    return first


def reason(record: FakeRecord, side: Side = "prediction", mapping: TopicMapping | None = None) -> str:
    event = decode(record, side, mapping)
    assert isinstance(event, Invalid), event
    assert (event.topic, event.partition, event.offset) == ("predictions", 3, 42)
    assert event.reason in REASONS
    return event.reason


def test_a_flat_prediction_needs_no_mapping():
    assert decode(of(FLAT)) == Prediction("a1", "fraud-v3", "ok", AT_MS, 1_700_000_000_000)


def test_a_flat_label_needs_no_mapping_and_no_model():
    assert decode(of(LABEL), "label") == Label("a1", "ok", AT_MS)
    assert decode(of(LABEL | {"model": "m"}), "label") == Label("a1", "ok", AT_MS, "m")


def test_scores_come_along():
    event = decode(of(FLAT | {"scores": {"ok": 0.75, "bad": 0.25}}))
    assert event == Prediction("a1", "fraud-v3", "ok", AT_MS, 1_700_000_000_000, {"ok": 0.75, "bad": 0.25})


BOOTSTRAP = Scheme("bootstrap", 10)


@pytest.mark.parametrize("fold", [0, 3, "3", -1, 0.5, True, []])
def test_a_prediction_of_one_fold_is_refused_without_a_scheme(fold: Any):
    assert reason(of(FLAT | {"fold": fold})) == "fold_without_scheme"
    assert reason(of({"id": "a", "part": fold} | FLAT), mapping=TopicMapping(fold="value.part")) == (
        "fold_without_scheme"
    )


@pytest.mark.parametrize("fold", [0, 9, "9", 3.0])
def test_a_fold_is_part_of_the_name_under_which_a_model_is_monitored(fold: Any):
    decoder = JsonDecoder("t", "prediction", TopicMapping(), folds=BOOTSTRAP)
    event = decoder.decode(of(FLAT | {"fold": fold}), 0)
    assert isinstance(event, Prediction)
    assert (model_of(event.model), fold_of(event.model)) == (FLAT["model"], int(float(fold)))


@pytest.mark.parametrize("fold", [10, -1, "03", "", "x", 0.5, True, [], {}, "1" * 5_000, "٣", 1e30])
def test_a_fold_that_the_scheme_does_not_have_is_invalid(fold: Any):
    decoder = JsonDecoder("t", "prediction", TopicMapping(), folds=BOOTSTRAP)
    event = decoder.decode(of(FLAT | {"fold": fold}), 0)
    assert isinstance(event, Invalid)
    assert event.reason == "invalid_fold"


@pytest.mark.parametrize("validation", ["cross-validation", "split-validation", "bootstrap"])
@pytest.mark.parametrize("digest", [False, True])
def test_a_fold_is_evaluated_where_it_tests_the_id_as_trainers_write_it(validation: Any, *, digest: bool):
    scheme = Scheme(validation, 5, prequential=False)
    keys = id_keys("churn", digest=digest)
    decoder = JsonDecoder("t", "prediction", TopicMapping(), keys, folds=scheme)
    for number in range(60):
        for fold in range(5):
            record = of({"id": number, "model": "m", "prediction": "x", "fold": fold})
            tests = roles(str(number), fold, scheme).tests
            assert type(decoder.decode(record, 0)) is (Prediction if tests else WrongFold)
            (at_once,) = decoder.decode_all([record], [7])
            assert at_once == decoder.decode(record, 7)


def test_a_fold_is_no_matter_where_it_is_null_not_looked_at_or_on_a_label():
    assert decode(of(FLAT | {"fold": None})) == decode(of(FLAT))
    assert decode(of(FLAT | {"fold": 3}), mapping=TopicMapping(fold=None)) == decode(of(FLAT))
    assert decode(of(LABEL | {"fold": 3}), "label") == decode(of(LABEL), "label")


def test_fields_nobody_mapped_may_be_anything():
    assert decode(of(FLAT | {"features": [[1, {"x": None}]], "label": [1]})) == decode(of(FLAT))


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("1", "1"),
        ("1.0", "1"),
        ("-1.0", "-1"),
        ("0.5", "0.5"),
        ("1e2", "100"),
        ("-0.0", "0"),
        ("true", "true"),
        ("false", "false"),
        ("12345678901234567890", "12345678901234567890"),
        ('"1.0"', "1.0"),
        ('"é😀"', "é😀"),
        ('"\\u00e9"', "é"),
        ('"\\ud83d\\ude00"', "😀"),
        ('" "', " "),
        ('"' + "é" * 64 + '"', "é" * 64),
    ],
)
def test_numbers_and_booleans_have_one_way_to_be_written(written: str, text: str):
    body = f'{{"id":{written},"model":{written},"prediction":{written}}}'.encode()
    assert decode(FakeRecord(body)) == Prediction(text, text, text, AT_MS)


def test_one_and_true_are_different_classes_whichever_came_first():
    decoder = JsonDecoder("predictions", "label", TopicMapping())
    for _ in range(2):
        for written, text in (
            (1, "1"),
            (True, "true"),
            (1.0, "1"),
            (0, "0"),
            (False, "false"),
            ("true", "true"),
        ):
            assert decoder.decode(of({"id": "a", "label": written}), AT_MS) == Label("a", text, AT_MS)


@pytest.mark.parametrize(
    "bad",
    [
        '""',
        '"a\\u0000"',
        '"a\\nb"',
        '"\\u007f"',
        '"\x7f"',
        '"\u0085"',
        '"' + "x" * 129 + '"',
        '"' + "é" * 65 + '"',
        "[]",
        "{}",
        "1e300",
        "1" + "0" * 128,
    ],
)
def test_names_are_short_text_without_control_characters(bad: str):
    def body(**fields: str) -> FakeRecord:
        contents = {"id": '"a"', "model": '"m"', "prediction": '"c"'} | fields
        return FakeRecord(("{" + ",".join(f'"{k}":{v}' for k, v in contents.items()) + "}").encode())

    assert reason(body(id=bad)) == "invalid_id"
    assert reason(body(model=bad)) == "invalid_model"
    assert reason(body(prediction=bad)) == "invalid_class"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b'{"id":NaN}', "invalid_json"),
        (b'{"id":1e999}', "invalid_json"),
        (b'{"id":"\\ud800"}', "invalid_json"),
        (b'{"a":' * 5_000, "invalid_json"),
        (b'{"id":"\xff"}', "invalid_utf8"),
        (b'{"id":"\xed\xa0\x80"}', "invalid_utf8"),
        ('{"id":"x"}'.encode("utf-16"), "invalid_utf8"),
        (b"[1]", "not_an_object"),
        (b'"a"', "not_an_object"),
        (b" null", "not_an_object"),
        (b"7", "not_an_object"),
        (b"\x00\x00\x00\x00\x2a\x02a", "schema_registry_framing"),
        (b'\x00\x00\x00\x00\x01{"id":"a"}', "schema_registry_framing"),
        (b"\x00\x01", "invalid_json"),
    ],
)
def test_what_is_no_json_object_says_what_it_is(value: bytes, expected: str):
    assert reason(FakeRecord(value)) == expected


@pytest.mark.parametrize(
    ("side", "content", "expected"),
    [
        ("prediction", FLAT | {"id": None}, "missing_id"),
        ("prediction", {"id": "a", "prediction": "x"}, "missing_model"),
        ("prediction", {"id": "a", "model": "m"}, "missing_prediction"),
        ("label", {"id": "a"}, "missing_label"),
        ("label", {"label": "a"}, "missing_id"),
        ("label", LABEL | {"model": ""}, "invalid_model"),
        ("label", LABEL | {"label": [1]}, "invalid_class"),
        ("prediction", FLAT | {"timestamp": "yesterday"}, "invalid_timestamp"),
        ("prediction", FLAT | {"timestamp": -1}, "invalid_timestamp"),
        ("prediction", FLAT | {"timestamp": True}, "invalid_timestamp"),
        ("prediction", FLAT | {"timestamp": 10**18}, "invalid_timestamp"),
        ("prediction", FLAT | {"timestamp": 10**400}, "invalid_timestamp"),
        ("prediction", FLAT | {"timestamp": -1e308}, "invalid_timestamp"),
        ("label", LABEL | {"timestamp": {}}, "invalid_timestamp"),
        ("prediction", FLAT | {"scores": [0.5]}, "invalid_scores"),
        ("prediction", FLAT | {"scores": {"ok": 1.5}}, "invalid_scores"),
        ("prediction", FLAT | {"scores": {"ok": "high"}}, "invalid_scores"),
        ("prediction", FLAT | {"scores": {"": 0.5}}, "invalid_scores"),
    ],
)
def test_each_field_has_its_reason(side: Side, content: Any, expected: str):
    assert reason(of(content), side) == expected


@pytest.mark.parametrize(
    ("unit", "written", "record_ms"),
    [
        ("ms", 1_700_000_000_000, 1_700_000_000_000),
        ("ms", 1_700_000_000_000.7, 1_700_000_000_000),
        ("s", 1_700_000_000, 1_700_000_000_000),
        ("s", 1_700_000_000.25, 1_700_000_000_250),
        ("us", 1_700_000_000_123_456, 1_700_000_000_123),
        ("ns", 1_700_000_000_123_456_789, 1_700_000_000_123),
        ("iso8601", "2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("iso8601", "2023-11-14T23:13:20.5+01:00", 1_700_000_000_500),
        ("iso8601", "2023-11-14T22:13:20", 1_700_000_000_000),
        ("s", "1700000000.25", 1_700_000_000_250),
        ("ms", "1700000000000", 1_700_000_000_000),
        ("ms", 0, 0),
    ],
)
def test_timestamps_come_in_five_units(unit: Any, written: Any, record_ms: int):
    event = decode(of(FLAT | {"timestamp": written}), mapping=TopicMapping(timestamp_unit=unit))
    assert isinstance(event, Prediction)
    assert event.timestamp_ms == record_ms


def test_every_millisecond_of_a_second_in_iso8601_is_that_millisecond():
    mapping = TopicMapping(timestamp_unit="iso8601")
    for milliseconds in range(1_000):
        written = f"2004-02-29T12:00:00.{milliseconds:03}Z"
        event = decode(of(FLAT | {"timestamp": written}), mapping=mapping)
        assert isinstance(event, Prediction)
        assert event.timestamp_ms == 1_078_056_000_000 + milliseconds


@pytest.mark.parametrize("unit", ["ms", "s", "us", "ns"])
@pytest.mark.parametrize("written", [10**400, 1e308, -1e308, "1e308", "1e-308", "9" * 25])
def test_numbers_far_out_of_range_are_invalid_timestamps_or_1970(unit: Any, written: Any):
    event = decode(of(FLAT | {"timestamp": written}), mapping=TopicMapping(timestamp_unit=unit))
    if written == "1e-308":
        assert isinstance(event, Prediction)
        assert event.timestamp_ms == 0
    else:
        assert isinstance(event, Invalid)
        assert event.reason == "invalid_timestamp"


def test_a_number_is_no_iso8601_timestamp():
    assert reason(of(FLAT), mapping=TopicMapping(timestamp_unit="iso8601")) == "invalid_timestamp"


def test_fields_may_live_in_key_header_topic_constant_and_below_objects():
    mapping = TopicMapping(
        id="key",
        model="=fraud-v3",
        prediction="value.out.class name",
        timestamp="header:at",
        scores="value.meta.deep.p",
    )
    record = of(
        {"out": {"class name": "ok"}, "meta": {"deep": {"p": {"ok": 1}}}},
        key=b"a1",
        headers=(("at", b"9"), ("at", b"1000")),
    )
    assert decode(record, mapping=mapping) == Prediction("a1", "fraud-v3", "ok", AT_MS, 1_000, {"ok": 1.0})
    assert decode(of(FLAT), mapping=TopicMapping(model="topic")) == Prediction(
        "a1", "predictions", "ok", AT_MS, FLAT["timestamp"]
    )


def test_an_absent_or_null_object_on_a_path_is_an_absent_field():
    mapping = TopicMapping(timestamp="value.meta.at", scores=None, fold=None)
    for meta in ({}, {"meta": None}, {"meta": {}}, {"meta": {"at": None}}, {"meta": 7}, {"meta": [1]}):
        assert decode(of({"id": "a", "model": "m", "prediction": "c"} | meta), mapping=mapping) == Prediction(
            "a", "m", "c", AT_MS
        )


def test_paths_may_overlap():
    mapping = TopicMapping(prediction="value.scores.best", id="value.id")
    record = of({"id": "a", "model": "m", "scores": {"best": 0.5}})
    assert decode(record, mapping=mapping) == Prediction("a", "m", "0.5", AT_MS, None, {"best": 0.5})
    assert decode(of(FLAT), mapping=TopicMapping(model="value.id")) == Prediction(
        "a1", "a1", "ok", AT_MS, FLAT["timestamp"]
    )


def test_keys_and_headers_are_text():
    mapping = TopicMapping(id="key", model="header:m")
    assert reason(of(FLAT, key=b"\xff"), mapping=mapping) == "invalid_id"
    assert reason(of(FLAT, headers=(("m", b"x"),)), mapping=mapping) == "missing_id"
    assert reason(of(FLAT, key=b"a"), mapping=mapping) == "missing_model"
    assert reason(of(FLAT, key=b"\x00\x00\x00\x00\x07a"), mapping=mapping) == "schema_registry_framing"


def test_classes_have_aliases_scores_included():
    mapping = TopicMapping(classes={"true": "fraud", "1": "fraud", "false": "fine"})
    event = decode(
        of(FLAT | {"prediction": True, "scores": {"true": 0.25, "1": 0.5, "false": 0.25}}), mapping=mapping
    )
    assert event == Prediction(
        "a1", "fraud-v3", "fraud", AT_MS, FLAT["timestamp"], {"fraud": 0.75, "fine": 0.25}
    )


def test_a_rule_tells_the_kinds_of_one_topic_apart():
    mapping = TopicMapping(kind=KindRule("value.type", "p", "l"))
    assert decode(of(FLAT | {"type": "p"}), "both", mapping) == decode(of(FLAT))
    assert decode(of(LABEL | {"type": "l"}), "both", mapping) == Label("a1", "ok", AT_MS)
    for kind in ({"type": "x"}, {"type": None}, {}, {"type": []}):
        assert reason(of(FLAT | kind), "both", mapping) == "unknown_kind"


def test_a_null_value_withdraws_on_prediction_topics_only():
    null = FakeRecord(None, key=b"a1")
    assert decode(null) == NullRecord("predictions", None, None, AT_MS, withdraws=True)
    assert decode(null, mapping=TopicMapping(id="key", model="=m")) == NullRecord(
        "predictions", "a1", "m", AT_MS, withdraws=True
    )
    assert decode(null, "label", TopicMapping(id="key")) == NullRecord(
        "predictions", "a1", None, AT_MS, withdraws=False
    )
    assert reason(FakeRecord(None, key=b"\n"), mapping=TopicMapping(id="key")) == "invalid_id"


def test_on_a_topic_of_both_kinds_a_null_value_withdraws_where_a_header_says_prediction():
    mapping = TopicMapping(id="key", kind=KindRule("header:kind"))
    for kind, withdraws in ((b"prediction", True), (b"label", False), (b"?", False)):
        event = decode(FakeRecord(None, key=b"a", headers=(("kind", kind),)), "both", mapping)
        assert event == NullRecord("predictions", "a", None, AT_MS, withdraws=withdraws)


def test_a_flood_of_names_does_not_grow_what_is_remembered():
    decoder = JsonDecoder("predictions", "prediction", TopicMapping())
    for i in range(MAX_REMEMBERED + 10):
        event = decoder.decode(of({"id": "a", "model": f"m{i}", "prediction": i}), AT_MS)
        assert event == Prediction("a", f"m{i}", str(i), AT_MS)
    remembered = [
        len(table)
        for names in (decoder._judge.models, decoder._judge.classes)
        for table in names._tables.values()
    ]
    assert max(remembered) <= MAX_REMEMBERED


@pytest.mark.parametrize(
    ("mapping", "complaint"),
    [
        (TopicMapping(id="id"), "id: expected value.some.field, key, header:name, topic or a constant"),
        (TopicMapping(model="value..a"), "model: expected"),
        (TopicMapping(scores="header:"), "scores: expected"),
        (TopicMapping(model="=" + "x" * 200), "model: a constant must be 1 to 128 bytes"),
        (TopicMapping(classes={"1": ""}), "a class must be 1 to 128 bytes"),
    ],
)
def test_a_wrong_mapping_says_what_was_expected(mapping: TopicMapping, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        JsonDecoder("predictions", "prediction", mapping)
    with pytest.raises(ValueError, match="kind rule"):
        JsonDecoder("predictions", "both", TopicMapping())


def test_reasons_are_a_closed_documented_set():
    assert set(REASONS) >= {"schema_registry_framing", "invalid_utf8", "invalid_json", "not_an_object"}
    assert all(json.dumps(text) for text in REASONS.values())


def test_more_scores_than_are_looked_at_make_a_record_invalid():
    for count, reason in ((MAX_SCORES, ""), (MAX_SCORES + 1, "invalid_scores")):
        scores = {str(i): 0.0 for i in range(count)}
        event = decode(of({"id": "a", "model": "m", "prediction": "x", "scores": scores}))
        assert getattr(event, "reason", "") == reason


@pytest.mark.parametrize(
    "fault", ["header_encoding", "record_structure", "too_many_headers", "record_too_large"]
)
@pytest.mark.parametrize("side", ["prediction", "label"])
def test_a_record_that_could_not_be_read_is_invalid_for_that_reason(fault: str, side: Side):
    unread = FakeRecord(None, fault=fault)
    assert decode(unread, side) == Invalid(unread.topic, unread.partition, unread.offset, fault)
    assert fault in REASONS


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"model": "m", "prediction": "a"}, "missing_id"),
        ({"id": "1", "model": "m"}, "missing_prediction"),
        ({"id": "1", "model": "m", "prediction": "a", "scores": {"a": 2}}, "invalid_scores"),
    ],
)
def test_an_invalid_record_names_its_model_where_that_can_be_read(value: dict[str, Any], reason: str):
    event = decode(FakeRecord(json.dumps(value).encode()), "prediction")
    assert isinstance(event, Invalid)
    assert (event.reason, event.model) == (reason, "m")


def test_an_invalid_record_whose_model_cannot_be_read_names_none():
    for value in (b"{", b"[]", b'{"id": "1", "prediction": "a"}', b'{"model": "\\u0000", "id": "1"}'):
        event = decode(FakeRecord(value), "prediction")
        assert isinstance(event, Invalid)
        assert event.model is None


def test_a_constant_or_a_header_names_the_model_of_a_value_that_cannot_be_read():
    record = FakeRecord(b"{", headers=(("model-version", b"v3"),))
    for location, model in (("=v3", "v3"), ("header:model-version", "v3"), ("header:other", None)):
        event = decode(record, "prediction", TopicMapping(model=location))
        assert isinstance(event, Invalid)
        assert (event.reason, event.model) == ("invalid_json", model)
