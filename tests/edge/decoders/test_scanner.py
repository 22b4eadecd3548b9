"""The compiled scanner gives what the reader for one record gives, for every record that can be written."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xxhash

from streamwatch.core.jit import entry
from streamwatch.core.records.batch import LABEL, OBJECT, PREDICTION, RecordBatch
from streamwatch.core.records.events import Event, Invalid, Label, Prediction, Side, WrongFold
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.edge.decoders.fields import timestamp_ms
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats import json as json_values
from streamwatch.edge.decoders.formats.json import FIRST_LEARNT, JsonDecoder
from streamwatch.edge.decoders.mapping import KindRule, TopicMapping
from streamwatch.edge.decoders.scanner.contents import iso_8601_ms
from streamwatch.edge.keys import IdKeys, id_keys
from streamwatch.folds import Scheme
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.mutations import mutated
from tests.edge.decoders.records import FakeRecord, of
from tests.tiers import by_tier

RECORDS = by_tier(fast=6_000, rotating=27_000, default=108_000, everything=1_200_000)
"""Mutated records, over all mappings."""
PER_BATCH = 60
MAPPINGS: dict[str, tuple[Side, TopicMapping, IdKeys | None]] = {
    "predictions": ("prediction", TopicMapping(), None),
    "labels": ("label", TopicMapping(), id_keys("", digest=True)),
    "seconds": (
        "label",
        TopicMapping(timestamp_unit="s", classes={"yes": "fraud", "1": "fraud"}),
        id_keys("ns", digest=False),
    ),
    "nanoseconds": (
        "prediction",
        TopicMapping(timestamp_unit="ns", model="=m", scores=None, fold=None),
        id_keys("ns", digest=True),
    ),
    "microseconds": ("prediction", TopicMapping(timestamp_unit="us", model="topic"), None),
    "ISO 8601": ("prediction", TopicMapping(timestamp_unit="iso8601"), None),
    "ISO 8601 in a header": (
        "label",
        TopicMapping(id="key", timestamp="header:at", timestamp_unit="iso8601"),
        id_keys("", digest=True),
    ),
    "both": ("both", TopicMapping(kind=KindRule("value.kind")), None),
    "both, one class": (
        "both",
        TopicMapping(prediction="value.label", kind=KindRule("header:kind", "p", "l")),
        id_keys("", digest=True),
    ),
    "nested": (
        "prediction",
        TopicMapping(
            id="value.a.id", model="value.a.b.model", prediction="value.prediction", scores="value.a.s"
        ),
        None,
    ),
    "outside": ("label", TopicMapping(id="key", label="header:m", model=None, timestamp="header:at"), None),
}
UNREAD = (
    ("prediction", TopicMapping(id="value.a.b", scores="value.a")),
    ("label", TopicMapping(id="topic")),
)
"""Mappings that the scanner leaves to the reader for one record."""


def together(decoder: JsonDecoder, records: Sequence[FakeRecord]) -> tuple[RecordBatch, list[Event]]:
    """The batch that a decoder makes of records as they were fetched, and one by one its events."""
    found = fetched(records)
    batch = decoder.decode_batch(found)
    alone = [decoder.decode(record, record.timestamp) for record in found]
    return batch, alone


def iso_texts(chance: random.Random) -> Iterator[str]:
    """Times as they are written, on days that no calendar has, too, and with other characters in them."""
    years = (1969, 1970, 1999, 2000, 2023, 2024, 2100, 2399, 9999)
    offsets = ("", "Z", "z", "+00:00", "-05:30", "+0545", "+14", "-23:59", "+24:00", "+1:00", "-00:01")
    for _ in range(60_000):
        year = chance.choice((*years, chance.randrange(1, 9999)))
        month, day = chance.randrange(14), chance.randrange(33)
        hour, minute, second = chance.randrange(25), chance.randrange(61), chance.randrange(61)
        decimals = "".join(chance.choices("0123456789", k=chance.choice((0, 0, 1, 2, 3, 3, 6, 7, 9, 10))))
        fraction = chance.choice("..,") + decimals if decimals else ""
        date = f"{year:04}-{month:02}-{day:02}{chance.choice('TTT tx')}"
        text = f"{date}{hour:02}:{minute:02}:{second:02}{fraction}{chance.choice(offsets)}"
        if chance.random() < 0.2:
            path = chance.randrange(len(text))
            text = text[:path] + chance.choice("0:-+Z. ,") + text[path + chance.randrange(2) :]
        yield text


def test_a_time_in_iso_8601_is_what_python_reads_or_left_to_it() -> None:
    read = 0
    for text in iso_texts(random.Random(8601)):
        data = np.frombuffer(b"  " + text.encode() + bytes(64), np.uint8)
        found = _iso_8601_ms(data, 2, 2 + len(text))
        expected = timestamp_ms(text, "iso8601")
        assert found in {-1, expected}, (text, found, expected)
        read += found >= 0
    assert read > 8_000


@pytest.mark.parametrize(
    "text",
    [
        "1970-01-01T00:00:00Z",
        "2024-02-29 23:59:59.999999+01:00",
        "2000-02-29T12:00:00,5",
        "9999-12-31T23:59:59.999Z",
        "2026-11-26T10:40:28-0930",
        "2026-03-01T00:00:00+14",
    ],
)
def test_common_forms_of_iso_8601_are_read_compiled(text: str) -> None:
    data = np.frombuffer(text.encode() + bytes(64), np.uint8)
    assert _iso_8601_ms(data, 0, len(text)) == timestamp_ms(text, "iso8601")


@entry
def _iso_8601_ms(data: Any, start: int, stop: int) -> int:
    return iso_8601_ms(data, start, stop)


def test_of_many_records_with_new_names_a_few_become_objects_and_the_rest_columns() -> None:
    decoder = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping(), None))
    records = [
        of({"id": str(i), "model": f"m{i % 3}", "prediction": "ab"[i % 2], "timestamp": i})
        for i in range(3_000)
    ]
    batch, alone = together(decoder, records)
    assert len(batch.objects) == FIRST_LEARNT
    events = batch.events()
    for event, expected, row in zip(events, alone, batch.rows, strict=True):
        assert isinstance(expected, Prediction)
        expected.record_ms = int(row["record_ms"])
        assert event == expected


@pytest.mark.parametrize("name", MAPPINGS)
def test_mutated_records_mean_the_same_read_together_and_read_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    side, mapping, keys = MAPPINGS[name]
    decoder = JsonDecoder(DecoderSpec("predictions", side, mapping, keys))
    chance = random.Random(name)
    ordinary = total = valid = 0
    while total < RECORDS // len(MAPPINGS):
        oddity = chance.choice((0.0, 0.15, 0.5, 0.7))
        monkeypatch.setattr(json_values, "FIRST_LEARNT", chance.choice((3, 512)))
        records = [mutated(chance, total + i, oddity, mapping.timestamp_unit) for i in range(PER_BATCH)]
        batch, alone = together(decoder, records)
        events = batch.events()
        for i, (event, expected) in enumerate(zip(events, alone, strict=True)):
            if not isinstance(expected, Invalid):
                expected.record_ms = int(batch.rows["record_ms"][i])
            else:
                event.record_ms = expected.record_ms
            assert event == expected, (records[i], event, expected)
        total += len(records)
        ordinary += int((batch.rows["side"] != OBJECT).sum())
        valid += sum(not isinstance(event, Invalid) for event in alone)
    assert ordinary > total // 4, "the scanner leaves nearly everything to others"
    assert valid > total // 3


@pytest.mark.parametrize(
    "keys", [None, id_keys("", digest=True), id_keys("fraud", digest=False), id_keys("fraud", digest=True)]
)
def test_rows_carry_the_digest_of_the_key_whether_or_not_its_text_is_kept(keys: IdKeys | None) -> None:
    decoder = JsonDecoder(DecoderSpec("t", "label", TopicMapping(), keys))
    ids = [
        "".join(chr(33 + (7 * i + j) % 90) for j in range(i)).replace('"', "-").replace("\\", "-")
        for i in range(1, 123)
    ]
    records = [of({"id": id_, "label": "a"}) for id_ in ids]
    decoder.decode_batch(fetched(records))  # the class is learnt
    batch = decoder.decode_batch(fetched(records))
    assert not batch.objects
    prefix = "" if keys is None else keys.prefix
    for id_, row in zip(ids, batch.rows, strict=True):
        whole = int(row["id_high"]) << 64 | int(row["id_low"])
        assert whole == xxhash.xxh3_128_intdigest((prefix + id_).encode())
    given: Callable[[Sequence[str]], Sequence[str]] = keys or list
    assert [event.id for event in batch.events()] == list(given(ids))  # type: ignore[union-attr]


@pytest.mark.parametrize(("side", "mapping"), UNREAD)
def test_mappings_that_the_scanner_cannot_read_are_read_one_by_one(side: Side, mapping: TopicMapping) -> None:
    decoder = JsonDecoder(DecoderSpec("predictions", side, mapping))
    records = [mutated(random.Random(n), n, 0.2) for n in range(200)]
    batch, alone = together(decoder, records)
    assert batch.rows["side"].tolist() == [OBJECT] * 200
    for event, expected in zip(batch.events(), alone, strict=True):
        expected.record_ms = event.record_ms
        assert event == expected


@pytest.mark.parametrize("path", ["value.fold", "value.a.fold", "header:fold", "key"])
@pytest.mark.parametrize(
    "scheme", [None, Scheme("cross-validation", 3, prequential=False), Scheme("bootstrap", 3)]
)
def test_a_record_with_a_fold_is_a_row_where_each_fold_predicts_every_id_and_others_go_to_the_trees(
    path: str, scheme: Scheme | None
) -> None:
    decoder = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping(fold=path), folds=scheme))

    def record(n: int, fold: object) -> FakeRecord:
        content: dict[str, object] = {"id": f"{n}", "model": "m", "prediction": "x"}
        key, headers = None, ()
        if path == "value.fold":
            content["fold"] = fold
        elif path == "value.a.fold":
            content = {"a": {"fold": fold}} | content
        elif fold is not None:
            text = str(fold).encode()
            key, headers = (text, ()) if path == "key" else (None, (("fold", text),))
        return FakeRecord(json.dumps(content).encode(), key=key, headers=headers)

    folds = [None, 0, "1", 2, None, 3, 1.0, True, "x", None] * 6
    records = [record(n, fold) for n, fold in enumerate(folds)]
    together(decoder, records)  # the names are learnt
    batch, alone = together(decoder, records)
    rows: list[object] = [None]
    if scheme is not None and scheme.prequential:
        rows += [0, "1", 2, *([1.0] if path.startswith("value") else [])]
    is_row = [any(fold is row for row in rows) for fold in folds]
    assert [side != OBJECT for side in batch.rows["side"].tolist()] == is_row
    kinds: set[type] = set()
    for event, expected in zip(batch.events(), alone, strict=True):
        event.record_ms = expected.record_ms
        assert event == expected
        kinds.add(type(event))
    assert kinds == {Prediction, Invalid} | ({WrongFold} if scheme and not scheme.prequential else set())


@pytest.mark.parametrize(
    "fields",
    [
        {"id": "ü-1"},
        {"id": "é" * 64},
        {"prediction": "ja, 真"},
        {"prediction": 'a "class"'},
        {"model": "модель"},
        {"comment": 'Grüße, "Welt" \U0001f600\n\x7f\x85'},
        {"features": {"größe": [1, {"\n": "\t\\\\"}]}},
        {"ключ": None},
    ],
)
@pytest.mark.parametrize("ascii", [False, True])
def test_text_in_any_language_is_read_compiled_and_with_escapes_where_it_is_no_id_or_name_of_a_field(
    fields: dict[str, Any],
    ascii: bool,  # noqa: A002, FBT001 - as json has it
) -> None:
    content = {"id": "a", "model": "m", "prediction": "yes"} | fields
    value = json.dumps(content, ensure_ascii=ascii).replace("\\ud83d\\ude00", "").encode()
    decoder = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping()))
    records = [FakeRecord(value)] * 3
    for _ in range(2):
        batch, alone = together(decoder, records)
    is_row = not ascii or (content["id"] + "".join(content)).isascii()
    assert (batch.rows["side"] == OBJECT).tolist() == [not is_row] * 3
    assert isinstance(alone[0], Prediction)
    assert [getattr(each, "id", None) for each in batch.events()] == [content["id"]] * 3
    assert [getattr(each, "predicted_class", None) for each in batch.events()] == [content["prediction"]] * 3


@pytest.mark.parametrize("written", ["x\x85", "x\x7f", "\\u0061", "\\ud83d\\ude00"])
def test_ids_with_controls_or_escapes_are_left_to_others(written: str) -> None:
    decoder = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping()))
    value = f'{{"id": "{written}", "model": "m", "prediction": "yes"}}'.encode()
    for _ in range(2):
        batch, _ = together(decoder, [FakeRecord(value)])
    assert batch.rows["side"].tolist() == [OBJECT]


def test_names_beyond_the_vocabulary_are_objects_and_those_within_stay_numbers() -> None:
    vocabulary = Vocabulary(most=3)
    decoder = JsonDecoder(DecoderSpec("t", "prediction", TopicMapping(), None, vocabulary))
    records = [of({"id": "a", "model": f"m{n}", "prediction": "x"}) for n in range(6)]
    decoder.decode_batch(fetched(records))
    batch = decoder.decode_batch(fetched(records))
    assert batch.rows["side"].tolist() == [PREDICTION] * 3 + [OBJECT] * 3
    assert [event.model for event in batch.events()] == [f"m{n}" for n in range(6)]  # type: ignore[union-attr]
    assert list(vocabulary.models.names) == ["m0", "m1", "m2"]


def test_released_numbers_go_to_later_names_and_constants_keep_theirs() -> None:
    vocabulary = Vocabulary(most=3)
    decoder = JsonDecoder(DecoderSpec("t", "prediction", TopicMapping(prediction="=x"), None, vocabulary))
    for start in range(0, 9, 3):
        records = [of({"id": "a", "model": f"m{n}"}) for n in range(start, start + 3)]
        for _ in range(2):
            batch = decoder.decode_batch(fetched(records))
        assert batch.rows["side"].tolist() == [PREDICTION] * 3
        assert [(event.model, event.predicted_class) for event in batch.events()] == [  # type: ignore[union-attr]
            (f"m{n}", "x") for n in range(start, start + 3)
        ]
        vocabulary.release_all_but(batch.rows[:0])


def test_decoders_of_one_vocabulary_number_a_name_alike() -> None:
    vocabulary = Vocabulary()
    predictions = JsonDecoder(DecoderSpec("p", "prediction", TopicMapping(), None, vocabulary))
    labels = JsonDecoder(DecoderSpec("l", "label", TopicMapping(classes={"1": "fraud"}), None, vocabulary))
    prediction = [of({"id": "a", "model": "m", "prediction": "fraud"})]
    label = [of({"id": "a", "model": "m", "label": 1}), of({"id": "b", "label": 1})]
    for _ in range(2):
        first, second = predictions.decode_batch(fetched(prediction)), labels.decode_batch(fetched(label))
    assert first.rows["side"].tolist() == [PREDICTION]
    assert second.rows["side"].tolist() == [LABEL, LABEL]
    assert [*first.rows["model"].tolist(), -1] == second.rows["model"].tolist()
    assert set(first.rows["class"]) == set(second.rows["class"])


def test_ten_thousand_models_are_all_known_by_number() -> None:
    decoder = JsonDecoder(DecoderSpec("t", "prediction", TopicMapping()))
    records = [of({"id": f"{n}", "model": f"model-{n}", "prediction": n % 7}) for n in range(10_000)]
    found = fetched(records)
    decoder.decode_batch(found)
    batch = decoder.decode_batch(found)
    assert not batch.objects
    assert [event.model for event in batch.events()] == [f"model-{n}" for n in range(10_000)]  # type: ignore[union-attr]


def test_ordinary_records_of_alternating_shapes_and_lengths_are_all_rows() -> None:
    decoder = JsonDecoder(DecoderSpec("t", "prediction", TopicMapping()))
    contents = [
        {"id": "x" * (1 + n % 128), "model": "m", "prediction": n % 5}
        | ({"timestamp": 5 * n} if n % 3 else {})
        | ({"features": [n / 7, {"deep": [[n]]}], "text": "y" * (n % 300)} if n % 2 else {})
        for n in range(1_000)
    ]
    records = [FakeRecord(json.dumps(c, separators=(",", ": ")).encode()) for c in contents]
    decoder.decode_batch(fetched(records))
    batch = decoder.decode_batch(fetched(records))
    assert not batch.objects
    assert batch.events() == [
        Prediction(c["id"], "m", str(c["prediction"]), replace(records[0]).timestamp + i, c.get("timestamp"))  # type: ignore[arg-type]
        for i, c in enumerate(contents)
    ]


def test_a_label_names_no_model_or_one_and_null_counts_as_absent() -> None:
    decoder = JsonDecoder(DecoderSpec("t", "label", TopicMapping()))
    values = [
        b'{"id":"a","label":"x"}',
        b'{"id":"a","label":"x","model":null,"timestamp":null}',
        b'{"id":7,"label":"x","model":"m"}',
    ]
    records = [FakeRecord(value) for value in values]
    for _ in range(2):
        batch = decoder.decode_batch(fetched(records))
    assert not batch.objects
    at = int(batch.rows["record_ms"][0])
    assert batch.events() == [Label("a", "x", at), Label("a", "x", at + 1), Label("7", "x", at + 2, "m")]
