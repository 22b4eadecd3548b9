"""Fields made of several paths: one text, which different contents never share, by every way of reading."""

from __future__ import annotations

import random
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.records.batch import OBJECT
from streamwatch.core.records.events import EventGroup, Invalid, Label, NullRecord, Prediction, Side
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.edge.decoders.envelopes import KINDS
from streamwatch.edge.decoders.fields import fixed_text, joined_text
from streamwatch.edge.decoders.formats.json import JsonDecoder, build, decoded_of, read_json
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import REASONS, KindRule, TopicMapping
from streamwatch.edge.decoders.trees import TreeDecoder, sided
from streamwatch.edge.keys import id_keys
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.mutations import mutated
from tests.edge.decoders.records import AT_MS, FakeRecord, of
from tests.tiers import by_tier

NAMED = TopicMapping(model=("value.model.name", "value.model.version"))
OPTIONAL = TopicMapping(model=("value.model.name", "value.model.version?"))
RECORDS = by_tier(fast=3_000, rotating=7_500, default=30_000, everything=300_000)


def scanned(mapping: TopicMapping, side: Side = "prediction", **options: Any) -> JsonDecoder:
    built = build(DecoderSpec("predictions", side, mapping, **options), FormatOptions())
    assert isinstance(built, JsonDecoder)
    return built


def trees(mapping: TopicMapping, side: Side = "prediction", **options: Any) -> TreeDecoder:
    return TreeDecoder("predictions", sided(side, mapping), read_json, **options)


def record_of(model: object, **more: object) -> FakeRecord:
    return of({"id": 1, "model": model, "prediction": "x", "label": "y"} | more)


def model_or_reason(mapping: TopicMapping, model: object, side: Side = "prediction") -> str | None:
    """Model of a record, or the reason against it, the same from trees and twice from the scanner."""
    record = record_of(model)
    event = trees(mapping, side).decode(record, AT_MS)
    decoder = scanned(mapping, side)
    for _ in range(2):  # the first time names are learnt
        (again,) = decoder.decode_batch(fetched([record])).events()
        again.record_ms = getattr(event, "record_ms", None) if not isinstance(again, Invalid) else None
        assert isinstance(event, Invalid) or again == event
        assert not isinstance(event, Invalid) or (isinstance(again, Invalid) and again.reason == event.reason)
    assert isinstance(event, Prediction | Label | Invalid)
    return event.reason if isinstance(event, Invalid) else event.model


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"name": "fraud", "version": 7}, "fraud/7"),
        ({"name": "fraud", "version": "7"}, "fraud/7"),
        ({"name": "fraud", "version": 7.0}, "fraud/7"),
        ({"name": "fraud", "version": True}, "fraud/true"),
        ({"name": "a/b", "version": "c"}, "a%2Fb/c"),
        ({"name": "a", "version": "b/c"}, "a/b%2Fc"),
        ({"name": "a%2Fb", "version": "c"}, "a%252Fb/c"),
        ({"name": "fraud"}, "missing_model_part"),
        ({"name": "fraud", "version": None}, "missing_model_part"),
        ({"version": 7}, "missing_model_part"),
        ({}, "missing_model"),
        (None, "missing_model"),
        ("fraud", "missing_model"),
        ({"name": "", "version": 7}, "invalid_model"),
        ({"name": "fraud", "version": ""}, "invalid_model"),
        ({"name": "fraud", "version": {"major": 7}}, "invalid_model"),
        ({"name": "fraud", "version": [7]}, "invalid_model"),
        ({"name": "fr\naud", "version": 7}, "invalid_model"),
        ({"name": "x" * 126, "version": 7}, "x" * 126 + "/7"),
        ({"name": "x" * 127, "version": 7}, "invalid_model"),
        ({"name": "é" * 63, "version": 7}, "é" * 63 + "/7"),
        ({"name": "é" * 64, "version": 7}, "invalid_model"),
        ({"name": "/" * 42, "version": 7}, "%2F" * 42 + "/7"),
        ({"name": "/" * 43, "version": 7}, "invalid_model"),
    ],
)
def test_a_name_in_two_fields_is_one_text_of_at_most_128_bytes(model: object, expected: str) -> None:
    assert model_or_reason(NAMED, model) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"name": "fraud", "version": 7}, "fraud/7"),
        ({"name": "fraud"}, "fraud"),
        ({"name": "fraud", "version": None}, "fraud"),
        ({"name": "fraud", "version": ""}, "fraud"),
        ({"name": "fraud/7"}, "fraud%2F7"),
        ({"version": 7}, "missing_model_part"),
        ({"name": "", "version": 7}, "invalid_model"),
        ({}, "missing_model"),
    ],
)
def test_an_optional_part_may_be_absent_null_or_empty(model: object, expected: str) -> None:
    assert model_or_reason(OPTIONAL, model) == expected


def test_a_label_without_any_part_is_for_every_model_and_one_with_a_part_is_invalid() -> None:
    assert model_or_reason(NAMED, None, "label") is None
    assert model_or_reason(NAMED, {}, "label") is None
    assert model_or_reason(NAMED, {"name": "fraud", "version": 7}, "label") == "fraud/7"
    assert model_or_reason(NAMED, {"name": "fraud"}, "label") == "missing_model_part"


def test_every_reason_that_a_missing_part_gives_is_one_of_the_closed_set() -> None:
    paths = ("value.a", "value.b")
    mapping = TopicMapping(id=paths, model=paths, prediction=paths, label=paths)
    some = {"id": 1, "model": "m", "prediction": "x", "label": "y", "a": 1}
    for side, slots in (("prediction", ("id", "model", "prediction")), ("label", ("id", "model", "label"))):
        for slot in slots:
            single = TopicMapping(**{slot: getattr(mapping, slot)})
            event = trees(single, side).decode(of(some), AT_MS)
            assert isinstance(event, Invalid)
            assert event.reason == f"missing_{slot}_part"
            assert event.reason in REASONS


CONTENT = st.none() | st.text(st.sampled_from("ab/%2F5"), min_size=1, max_size=6)


def require_readable(contents: list[str | None], optional: list[bool]) -> None:
    """Require that contents can be read from their text, or that there is none."""
    text = joined_text(contents, optional)
    if all(content is None for content in contents):
        assert text is None
    elif any(c is None and not may_miss for c, may_miss in zip(contents, optional, strict=True)):
        assert not isinstance(text, str)
    else:
        assert isinstance(text, str)
        read = [unquote(part) or None for part in text.split("/")]
        assert read + [None] * (3 - len(read)) == contents


@given(st.lists(CONTENT, min_size=3, max_size=3), st.lists(st.booleans(), min_size=3, max_size=3))
def test_the_contents_can_be_read_from_the_text_so_different_ones_never_share_it(
    contents: list[str | None], optional: list[bool]
) -> None:
    require_readable(contents, optional)


MANY = 500
"""Contents drawn from one seed: hypothesis takes far longer to draw them than they take to test."""


@settings(max_examples=by_tier(fast=100, rotating=1_000, default=25_000, everything=50_000) // MANY + 1)
@given(st.integers(0, 2**64))
def test_contents_drawn_by_the_thousand_can_be_read_from_their_texts(seed: int) -> None:
    chance = random.Random(seed)
    kinds: set[type | None] = set()
    for _ in range(MANY):
        absent = chance.choice((0.0, 0.2, 0.5))
        contents = [
            None if chance.random() < absent else "".join(chance.choices("ab/%2F5", k=chance.randint(1, 6)))
            for _ in range(3)
        ]
        optional = [chance.random() < 0.5 for _ in range(3)]
        require_readable(contents, optional)
        kinds.add(type(joined_text(contents, optional)))
    assert len(kinds) == 3, "a text, nothing, and what is said of a part that is missing"


def test_the_text_of_constants_is_known_before_any_record() -> None:
    assert fixed_text(("=fraud", "=v/3")) == "fraud/v%2F3"
    assert fixed_text("=fraud") == "fraud"
    assert fixed_text("value.model") is fixed_text(("=fraud", "value.version")) is fixed_text(None) is None


@pytest.mark.parametrize(
    "paths",
    [
        ("=fraud", "value.version"),
        ("topic", "value.version"),
        ("header:name", "value.version"),
        ("key", "value.version"),
        ("header:name", "header:version?"),
    ],
)
def test_parts_may_be_constants_headers_keys_and_the_topic(paths: tuple[str, ...]) -> None:
    mapping = TopicMapping(model=paths)
    record = of(
        {"id": 1, "version": 7, "prediction": "x"},
        key=b"predictions",
        headers=(("name", b"fraud"), ("version", b"7")),
    )
    decoder = scanned(mapping)
    decoder.decode_batch(fetched([record]))
    batch = decoder.decode_batch(fetched([record]))
    assert not batch.objects, "a name met before is read by the compiled loop"
    (event,) = batch.events()
    assert isinstance(event, Prediction)
    assert event.model in {"fraud/7", "predictions/7"}
    (alone,) = trees(mapping).decode_all([record], [event.record_ms])
    assert alone == event


def test_an_id_of_two_fields_is_read_by_the_compiled_loop_unless_a_part_is_to_be_escaped() -> None:
    mapping = TopicMapping(id=("value.shop", "value.order"))
    contents = [("s1", 7), ("s/1", 7), ("s%1", 7), ("é", 7), ("s1", None), (None, None), ("x" * 126, 7)]
    records = [of({"shop": a, "order": b, "model": "m", "prediction": "x"}) for a, b in contents]
    decoder = scanned(mapping)
    decoder.decode_batch(fetched(records))
    batch = decoder.decode_batch(fetched(records))
    assert batch.rows["side"][0] != OBJECT
    found = [event.reason if isinstance(event, Invalid) else event.id for event in batch.events()]
    expected = ["s1/7", "s%2F1/7", "s%251/7", "é/7", "missing_id_part", "missing_id", "x" * 126 + "/7"]
    assert found == expected


MAPPINGS: dict[str, tuple[Side, TopicMapping]] = {
    "model": ("prediction", TopicMapping(model=("value.model", "value.other"))),
    "optional": ("prediction", TopicMapping(model=("value.model", "value.kind?", "value.a.b.z?"))),
    "labels": ("label", TopicMapping(model=("value.model?", "header:kind?"))),
    "both": ("both", TopicMapping(model=("value.model", "value.other?"), kind=KindRule("value.kind"))),
    "id": ("prediction", TopicMapping(id=("value.id", "value.model"), segments={"s": "value.other"})),
    "key": ("label", TopicMapping(id=("key", "value.id"), model=None)),
}


@pytest.mark.parametrize("name", MAPPINGS)
@pytest.mark.parametrize("space", ["", "space"])
def test_mutated_records_give_the_same_events_in_columns_and_alone(name: str, space: str) -> None:
    side, mapping = MAPPINGS[name]
    keys = id_keys(space, digest=False)
    decoder = scanned(mapping, side, keys=keys, vocabulary=Vocabulary(300))
    chance = random.Random(name + space)
    plainly = total = 0
    while total < RECORDS // len(MAPPINGS) // 2:
        oddity = chance.choice((0.0, 0.15, 0.5))
        found = fetched([mutated(chance, total + i, oddity) for i in range(60)])
        batch = decoder.decode_batch(found)
        total += len(found)
        for row, event, record in zip(batch.rows, decoded_of(batch), found, strict=True):
            assert event == decoder.decode(record, int(row["record_ms"]))
        plainly += int((batch.rows["side"] < OBJECT).sum())
    assert plainly > total // 30, "the compiled loop reads some of them"


def test_elements_may_name_a_part_of_their_id_model_and_class() -> None:
    mapping = TopicMapping(
        id=("value.id", "value.rows[].at"),
        model=("value.model", "value.rows[].version?"),
        prediction=("value.rows[].colour", "value.rows[].size"),
    )
    rows = [
        {"at": 1, "version": 7, "colour": "red", "size": "l"},
        {"at": 2, "colour": "red", "size": "s"},
        {"at": 3, "colour": "red"},
        {"colour": "red", "size": "s"},
    ]
    found = trees(mapping).decode(of({"id": "r", "model": "fraud", "rows": rows}), AT_MS)
    assert isinstance(found, EventGroup)
    shown = [
        event.reason if isinstance(event, Invalid) else (event.id, event.model, event.predicted_class)
        for event in found.events
        if isinstance(event, Prediction | Invalid)
    ]
    assert shown == [
        ("r/1", "fraud/7", "red/l"),
        ("r/2", "fraud", "red/s"),
        "missing_prediction_part",
        "missing_id_part",
    ]


def test_an_id_of_parts_beside_the_array_is_followed_by_the_number_of_the_element() -> None:
    mapping = TopicMapping(id=("value.shop", "value.order"), prediction="value.rows[]")
    found = trees(mapping).decode(of({"shop": "a", "order": 1, "model": "m", "rows": ["x", "y"]}), AT_MS)
    assert isinstance(found, EventGroup)
    assert [event.id for event in found.events if isinstance(event, Prediction)] == ["a/1#0", "a/1#1"]


def test_classes_of_several_fields_have_aliases_of_the_whole_text() -> None:
    mapping = TopicMapping(prediction=("value.a", "value.b"), classes={"red/l": "big"})
    event = trees(mapping).decode(of({"id": 1, "model": "m", "a": "red", "b": "l"}), AT_MS)
    assert isinstance(event, Prediction)
    assert event.predicted_class == "big"


def test_a_null_value_withdraws_the_id_of_key_and_header() -> None:
    mapping = TopicMapping(id=("key", "header:part"), model=("header:name", "header:version"))
    headers = (("part", b"2"), ("name", b"fraud"), ("version", b"7"))
    for decoder in (trees(mapping), scanned(mapping)):
        event = decoder.decode(FakeRecord(None, b"1", headers), AT_MS)
        assert event == NullRecord("predictions", "1/2", "fraud/7", AT_MS, withdraws=True)
        refused = decoder.decode(FakeRecord(None, b"1", headers[1:]), AT_MS)
        assert isinstance(refused, Invalid)
        assert (refused.reason, refused.model) == ("missing_id_part", "fraud/7")


def test_the_version_of_a_kserve_model_is_part_of_its_name_where_it_is_given() -> None:
    answer = {"model_name": "fraud", "id": "r", "outputs": [{"name": "y", "shape": [1], "data": ["a"]}]}
    kind = KINDS["kserve_v2"]
    model = kind.defaults["model"]
    assert isinstance(model, tuple)
    decoder = trees(TopicMapping(model=model, prediction="value.output[]"), envelope=kind)
    for version, expected in (
        ({}, "fraud"),
        ({"model_version": ""}, "fraud"),
        ({"model_version": "3"}, "fraud/3"),
    ):
        event = decoder.decode(of(answer | version), AT_MS)
        assert isinstance(event, Prediction)
        assert event.model == expected
