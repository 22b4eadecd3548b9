"""What flat records of JSON become, and what their values are: names, classes, timestamps."""

from __future__ import annotations

from typing import Any

import pytest

from streamwatch.core.records.events import Invalid, Label, Prediction
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.judging import MAX_REMEMBERED
from streamwatch.edge.decoders.mapping import TopicMapping
from tests.edge.decoders.formats.json_records import FLAT, LABEL, decode, reason
from tests.edge.decoders.records import AT_MS, FakeRecord, of


def test_a_flat_prediction_needs_no_mapping():
    assert decode(of(FLAT)) == Prediction("a1", "fraud-v3", "ok", AT_MS, 1_700_000_000_000)


def test_a_flat_label_needs_no_mapping_and_no_model():
    assert decode(of(LABEL), "label") == Label("a1", "ok", AT_MS)
    assert decode(of(LABEL | {"model": "m"}), "label") == Label("a1", "ok", AT_MS, "m")


def test_scores_come_along():
    event = decode(of(FLAT | {"scores": {"ok": 0.75, "bad": 0.25}}))
    assert event == Prediction("a1", "fraud-v3", "ok", AT_MS, 1_700_000_000_000, {"ok": 0.75, "bad": 0.25})


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
        ('" a "', " a "),
        ('"\\u200fא\\u200e"', "\u200fא\u200e"),
        ('"' + "é" * 64 + '"', "é" * 64),
    ],
)
def test_numbers_and_booleans_have_one_way_to_be_written(written: str, text: str):
    body = f'{{"id":{written},"model":{written},"prediction":{written}}}'.encode()
    assert decode(FakeRecord(body)) == Prediction(text, text, text, AT_MS)


@pytest.mark.parametrize(
    "unseen",
    [
        " ",
        "   ",
        "\u00a0",
        "\u200b",
        "\u200e\u200f",
        "\u202e",
        "\u2066\u2069",
        "\u00ad",
        "\ufeff",
        "\u3000",
        "\u2028",
        "\u0301",
        "\ufe0f",
        "\U000e0041",
        "\u3164",
        "\u2800",
        "__other__",
    ],
)
def test_a_name_that_shows_nothing_or_is_that_of_all_others_is_invalid(unseen: str):
    for _ in range(2):
        assert reason(of(FLAT | {"model": unseen})) == "invalid_model"
        assert reason(of(FLAT | {"prediction": unseen})) == "invalid_class"
    assert reason(of(LABEL | {"label": unseen}), "label") == "invalid_class"
    with pytest.raises(ValueError, match="visible text"):
        JsonDecoder(DecoderSpec("t", "prediction", TopicMapping(classes={"1": unseen})))
    with pytest.raises(ValueError, match="visible text"):
        JsonDecoder(DecoderSpec("t", "prediction", TopicMapping(model=f"={unseen}")))


def test_one_and_true_are_different_classes_whichever_came_first():
    decoder = JsonDecoder(DecoderSpec("predictions", "label", TopicMapping()))
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


@pytest.mark.slow
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


def test_a_flood_of_names_does_not_grow_what_is_remembered():
    decoder = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping()))
    for i in range(MAX_REMEMBERED + 10):
        event = decoder.decode(of({"id": "a", "model": f"m{i}", "prediction": i}), AT_MS)
        assert event == Prediction("a", f"m{i}", str(i), AT_MS)
    remembered = [
        len(table)
        for part in decoder._trees._parts
        for names in (part.judge.models, part.judge.classes)
        for table in names._tables.values()
    ]
    assert max(remembered) <= MAX_REMEMBERED
