"""Each field of an object as an event: models, or ids, that are the names of fields."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.ports import Decoder
from streamwatch.core.records.events import Decoded, Event, EventGroup, Invalid, Label, Prediction, Side
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.edge.decoders.formats.json import build, decoded_of
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import ClassOfScore, KeyOf, TopicMapping, parse_paths
from streamwatch.edge.keys import id_keys
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.mutations import SCALARS
from tests.edge.decoders.records import AT_MS, FakeRecord, of
from tests.tiers import by_tier

BY_MODEL = TopicMapping(model=KeyOf("value.stated"), prediction="value.stated.*")


def events(mapping: TopicMapping, content: Any, side: Side = "prediction") -> list[Event]:
    found: Decoded = build(DecoderSpec("predictions", side, mapping), FormatOptions()).decode(
        of(content), AT_MS
    )
    return list(found.events) if isinstance(found, EventGroup) else [found]


def reported(mapping: TopicMapping, content: Any, side: Side = "prediction") -> list[tuple[str | None, ...]]:
    return [
        (event.id, event.model, event.predicted_class)
        if isinstance(event, Prediction)
        else (event.id, event.model, event.true_class)
        if isinstance(event, Label)
        else (event.reason,)
        if isinstance(event, Invalid)
        else ()
        for event in events(mapping, content, side)
    ]


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"a": "x", "b": "y"}, [("1", "a", "x"), ("1", "b", "y")]),
        ({"a": 1, "b": True, "c": 2.0}, [("1", "a", "1"), ("1", "b", "true"), ("1", "c", "2")]),
        ({"a": "x", "b": None}, [("1", "a", "x"), ("missing_prediction",)]),
        ({"a": "x", "b": {}}, [("1", "a", "x"), ("invalid_class",)]),
        ({"": "x", "a": "x"}, [("1", "a", "x")]),
        ({"\x01": "x"}, [("invalid_model",)]),
        ({}, [("missing_elements",)]),
        (None, [("missing_elements",)]),
        (["x"], [("missing_elements",)]),
        ("x", [("missing_elements",)]),
    ],
)
def test_each_field_is_a_prediction_of_the_model_that_it_names(
    stated: Any, expected: list[tuple[str | None, ...]]
) -> None:
    assert reported(BY_MODEL, {"id": 1, "stated": stated}) == expected


def test_with_optional_a_field_without_a_class_is_left_out() -> None:
    optional = TopicMapping(model=KeyOf("value.stated"), prediction="value.stated.*", optional=True)
    assert reported(optional, {"id": 1, "stated": {"a": "x", "b": None}}) == [("1", "a", "x")]
    assert reported(optional, {"id": 1}) == []


def test_what_names_have_in_common_is_left_out_of_the_model() -> None:
    columns = TopicMapping(model=KeyOf("value.pred_*_v1"), prediction="value.pred_*_v1")
    content = {"id": 1, "pred_a_v1": "x", "pred_b_v1": "y", "pred__v1": "z", "pred_c": "z", "a_v1": "z"}
    assert reported(columns, content) == [("1", "a", "x"), ("1", "b", "y")]


def test_scores_thresholds_and_times_may_be_in_each_field_or_beside_the_object() -> None:
    mapping = TopicMapping(
        model=KeyOf("value.models"),
        prediction=ClassOfScore("value.models.*.p", "value.cutoff", "yes", "no", probability=True),
        timestamp="value.models.*.at",
    )
    content = {"id": 1, "cutoff": 0.5, "models": {"a": {"p": 0.75, "at": 5}, "b": {"p": 0.25, "at": 6}}}
    assert [
        (event.model, event.predicted_class, event.timestamp_ms, event.scores)
        for event in events(mapping, content)
        if isinstance(event, Prediction)
    ] == [("a", "yes", 5, {"yes": 0.75, "no": 0.25}), ("b", "no", 6, {"yes": 0.25, "no": 0.75})]


def test_labels_may_be_of_a_model_each_and_ids_the_names_of_fields() -> None:
    labels = TopicMapping(model=KeyOf("value.truth"), label="value.truth.*")
    assert reported(labels, {"id": 1, "truth": {"a": "x"}}, "label") == [("1", "a", "x")]
    ids = TopicMapping(id=KeyOf("value.truth"), model=None, label="value.truth.*")
    assert reported(ids, {"truth": {"a": "x", "b": "y"}}, "label") == [("a", None, "x"), ("b", None, "y")]


def test_a_model_may_be_a_field_in_each_of_the_fields() -> None:
    mapping = TopicMapping(model="value.models.*.name", prediction="value.models.*.class")
    content = {
        "id": 1,
        "models": {"main": {"name": "m7", "class": "x"}, "shadow": {"name": "m8", "class": "y"}},
    }
    assert reported(mapping, content) == [("1", "m7", "x"), ("1", "m8", "y")]


@pytest.mark.parametrize(
    ("mapping", "stated"),
    [
        (TopicMapping(model=KeyOf("value.a")), "prediction: expected a path in the fields"),
        (TopicMapping(prediction="value.a.*"), "model: expected {key_of: …} where each field"),
        (TopicMapping(model=KeyOf("value.a"), prediction="value.b.*"), "expected the fields of one object"),
        (
            TopicMapping(id="value.l[]", model=KeyOf("value.a"), prediction="value.a.*"),
            "expected the fields of one object",
        ),
    ],
)
def test_a_mapping_of_which_no_events_can_be_made_says_what_it_should_have(
    mapping: TopicMapping, stated: str
) -> None:
    with pytest.raises(ValueError, match=stated.replace("{", "\\{").replace("}", "\\}")):
        build(DecoderSpec("predictions", "prediction", mapping), FormatOptions())


@pytest.mark.parametrize("path", ["value.a.b.*.c", "key", "header:x", "value.a[]", "value.*.*", "topic"])
def test_key_of_asks_for_an_object(path: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_paths(KeyOf(path))


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z", "M"]), min_size=1, max_size=8)


@given(st.dictionaries(NAMES, st.sampled_from(["x", "y", 1, True]), min_size=1, max_size=6), st.integers())
def test_columns_are_what_objects_are(stated: dict[str, Any], number: int) -> None:
    record = of({"id": number, "stated": stated})
    decoder = build(DecoderSpec("predictions", "prediction", BY_MODEL), FormatOptions())
    for _ in range(2):  # the first time names are learnt
        batch = decoder.decode_batch(fetched([record]))
        assert decoded_of(batch) == [decoder.decode_all([record], batch.rows["record_ms"].tolist())[0]]
    assert [event.model for event in decoder_events(decoder, record)] == list(stated)


def decoder_events(decoder: Decoder, record: FakeRecord) -> list[Prediction]:
    found = decoder.decode_all([record], [AT_MS])[0]
    events_ = found.events if isinstance(found, EventGroup) else (found,)
    return [event for event in events_ if isinstance(event, Prediction)]


EACH_SCORED = TopicMapping(
    model=KeyOf("value.stated"),
    prediction=ClassOfScore("value.stated.*.p", "value.stated.*.cut", "yes", "no", probability=True),
    timestamp="value.stated.*.at",
    scores=None,
)
BESIDE = TopicMapping(
    model=KeyOf("value.stated"), prediction="value.stated.*", segments={"s": "value.s"}, scores=None
)
NAMED_INSIDE = TopicMapping(model="value.stated.*.name", prediction="value.stated.*.p", scores=None)
IDS = TopicMapping(id=KeyOf("value.stated"), model=None, label="value.stated.*")
MAPPINGS: dict[str, tuple[Side, TopicMapping]] = {
    "scalars": ("prediction", BESIDE),
    "objects": ("prediction", EACH_SCORED),
    "named inside": ("prediction", NAMED_INSIDE),
    "ids": ("label", IDS),
}
RECORDS = by_tier(fast=4_000, rotating=7_500, default=30_000, everything=300_000)


def written(chance: random.Random, n: int, *, objects: bool) -> FakeRecord:
    """A record with an object of models, which is odd in some way at times."""
    oddity = chance.choice((0.0, 0.05, 0.3))

    def scalar(*usual: str) -> str:
        return chance.choice(SCALARS if chance.random() < oddity else usual)

    def content() -> str:
        if not objects:
            return scalar('"yes"', '"no"', "1")
        inner = {"p": scalar("0.5", "0.25", "1"), "cut": scalar("0.5", "1e-1"), "at": scalar("17"),
                 "name": scalar('"m"', '"n"')}  # fmt: skip
        return "{" + ", ".join(f'"{name}": {stated}' for name, stated in inner.items()) + "}"

    names = chance.choices(["a", "b", "champion", "é", f"new{n}"], k=chance.choice((1, 2, 2, 2, 3, 70)))
    if chance.random() > oddity:
        names = list(dict.fromkeys(names))
    odd = ('""', '"\\u0061"', "1", '"\x01"')
    shown = [chance.choice(odd) if chance.random() < oddity / 4 else f'"{name}"' for name in names]
    stated = "{" + ", ".join(f"{name}: {content()}" for name in shown) + "}"
    fields = {
        "id": scalar(f'"i-{n}"', str(n)),
        "s": scalar('"x"'),
        "stated": scalar(stated) if oddity else stated,
    }
    order = list(fields) if chance.random() < 0.8 else list(reversed(fields))
    text = "{" + ", ".join(f'"{name}": {fields[name]}' for name in order) + "}"
    return FakeRecord(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("name", MAPPINGS)
@pytest.mark.parametrize("space", ["", "space"])
def test_records_give_the_same_events_in_columns_and_alone(name: str, space: str) -> None:
    side, mapping = MAPPINGS[name]
    keys = id_keys(space, digest=False)
    spec = DecoderSpec("predictions", side, mapping, keys, Vocabulary(300))
    decoder = build(spec, FormatOptions())
    chance = random.Random(name + space)
    plainly = total = 0
    while total < RECORDS // len(MAPPINGS):
        found = fetched(
            [written(chance, total + i, objects=name in {"objects", "named inside"}) for i in range(60)]
        )
        batch = decoder.decode_batch(found)
        total += len(found)
        for row, event, record in zip(batch.rows, decoded_of(batch), found, strict=True):
            (alone,) = decoder.decode_all([record], [int(row["record_ms"])])
            assert event == alone
        plainly += len(found) - len(set(batch.records_of_objects().tolist()))
    assert plainly > total / 4, "most records are read by the compiled loop"
