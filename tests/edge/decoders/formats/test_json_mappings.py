"""Where the fields of records are: mappings, aliases, rules that tell kinds apart, null values."""

from __future__ import annotations

import pytest

from streamwatch.core.records.events import Label, NullRecord, Prediction
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.mapping import KindRule, TopicMapping
from tests.edge.decoders.formats.json_records import FLAT, LABEL, decode, reason
from tests.edge.decoders.records import AT_MS, FakeRecord, of


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


def test_a_rule_distinguishes_the_kinds_of_one_topic():
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


@pytest.mark.parametrize(
    ("mapping", "complaint"),
    [
        (
            TopicMapping(id="id"),
            "id: expected value.some.field, value, key, header:name, topic or a constant",
        ),
        (TopicMapping(model="value..a"), "model: expected"),
        (TopicMapping(scores="header:"), "scores: expected"),
        (TopicMapping(model="=" + "x" * 200), "model: a constant must be 1 to 128 bytes"),
        (TopicMapping(classes={"1": ""}), "a class must be 1 to 128 bytes"),
    ],
)
def test_a_wrong_mapping_says_what_was_expected(mapping: TopicMapping, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        JsonDecoder(DecoderSpec("predictions", "prediction", mapping))
    with pytest.raises(ValueError, match="kind rule"):
        JsonDecoder(DecoderSpec("predictions", "both", TopicMapping()))
