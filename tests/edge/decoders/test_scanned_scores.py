"""Scores through the compiled scanner: what the reader of one record finds, and what Python makes of numbers.

`STREAMWATCH_TESTS=all python -m pytest tests/edge/decoders/test_scanned_scores.py` reads more than a
million mutated records with scores and times in ISO 8601.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from streamwatch.core.jit import entry
from streamwatch.core.records.batch import OBJECT, PREDICTION, SEVERAL
from streamwatch.core.records.events import EventGroup, Invalid, Prediction, Side
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.edge.decoders import fields, judging, trees
from streamwatch.edge.decoders.formats import json as json_values
from streamwatch.edge.decoders.formats.json import JsonDecoder, build, decoded_of
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import (
    ClassOfLargest,
    ClassOfScore,
    KindRule,
    ScoreArray,
    TopicMapping,
)
from streamwatch.edge.decoders.scanner import contents, shape, tokens
from streamwatch.edge.decoders.scanner.contents import MAX_SCORES
from streamwatch.edge.decoders.scanner.text import number_at
from streamwatch.edge.keys import id_keys
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.records import FakeRecord, of
from tests.edge.decoders.scored import scored
from tests.tiers import by_tier

RECORDS = by_tier(fast=4_000, rotating=6_000, default=24_000, everything=1_200_000)
"""Mutated records, over all mappings."""
NUMBERS = by_tier(fast=30_000, rotating=50_000, default=200_000, everything=3_000_000)
PER_BATCH = 60
MAPPINGS: dict[str, tuple[Side, TopicMapping]] = {
    "objects": ("prediction", TopicMapping()),
    "arrays": ("prediction", TopicMapping(scores=ScoreArray("value.list", ("yes", "no", "maybe")))),
    "aliases": ("prediction", TopicMapping(classes={"1": "yes", "maybe": "no"})),
    "times": ("prediction", TopicMapping(timestamp="value.at", timestamp_unit="iso8601")),
    "largest": ("prediction", TopicMapping(prediction=ClassOfLargest("value.scores"))),
    "largest of others": ("prediction", TopicMapping(prediction=ClassOfLargest("value.logits"))),
    "largest of an array": (
        "prediction",
        TopicMapping(
            prediction=ClassOfLargest("value.list", ("no", "yes", "maybe")),
            scores=ScoreArray("value.list", ("no", "yes", "maybe")),
            classes={"maybe": "perhaps"},
        ),
    ),
    "one array, two orders": (
        "prediction",
        TopicMapping(
            prediction=ClassOfLargest("value.list", ("no", "yes", "maybe")),
            scores=ScoreArray("value.list", ("yes", "no", "maybe")),
        ),
    ),
    "threshold": ("prediction", TopicMapping(prediction=ClassOfScore("value.score", 0.5, "yes", "no"))),
    "probability": (
        "prediction",
        TopicMapping(prediction=ClassOfScore("value.score", 0.25, "yes", "no", probability=True)),
    ),
    "labels": ("label", TopicMapping(label=ClassOfScore("value.score", 0.5, "yes", "no"))),
    "both": (
        "both",
        TopicMapping(
            prediction=ClassOfLargest("value.scores"),
            label=ClassOfScore("value.score", 0.5, "yes", "no"),
            kind=KindRule("value.kind"),
            segments={"kind": "value.kind"},
        ),
    ),
}
FEWEST_ROWS = {
    "one array, two orders": 0.0,
    "aliases": 0.1,
    "largest of others": 0.03,
    "probability": 0.08,
}
"""Share of the records that are rows at least, where it is not a fifth."""


def spec_of(side: Side, mapping: TopicMapping, vocabulary: Vocabulary | None = None) -> DecoderSpec:
    return DecoderSpec("predictions", side, mapping, vocabulary=vocabulary)


@pytest.mark.parametrize("name", MAPPINGS)
def test_mutated_records_mean_the_same_as_columns_and_read_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(*MAPPINGS[name])
    decoder = build(spec, FormatOptions())
    chance = random.Random(name)
    total = rows = with_scores = valid = 0
    while total < RECORDS // len(MAPPINGS):
        oddity = chance.choice((0.0, 0.15, 0.5))
        monkeypatch.setattr(json_values, "FIRST_LEARNT", chance.choice((3, 512)))
        records = fetched([scored(chance, total + i, oddity) for i in range(PER_BATCH)])
        batch = decoder.decode_batch(records)
        plain = np.flatnonzero(batch.rows["side"] != OBJECT)
        found = decoded_of(batch)
        some = [found[index] for index in plain.tolist()]
        with_scores += sum(isinstance(event, Prediction) and event.scores is not None for event in some)
        for record, event in zip(records, found, strict=True):
            expected = decoder.decode(record, record.timestamp)
            assert event == expected, (record.value, event, expected)
            if isinstance(event, Prediction) and event.scores is not None:
                assert isinstance(expected, Prediction)
                assert expected.scores is not None
                assert list(event.scores) == list(expected.scores)
                assert repr(event.scores) == repr(expected.scores), record.value
            valid += not isinstance(expected, Invalid)
        total += len(records)
        rows += len(plain)
    assert valid > total // 6
    assert rows >= FEWEST_ROWS.get(name, 0.15) * total
    if name in {"objects", "arrays", "times", "largest", "largest of an array", "probability", "both"}:
        assert with_scores > total // 20


def numbers(chance: random.Random) -> Iterator[str]:
    """Numbers as JSON has them, long ones and those between two doubles among them."""
    for _ in range(NUMBERS):
        match chance.randrange(8):
            case 0:
                yield repr(chance.random())
            case 1:
                yield repr(struct.unpack("<d", struct.pack("<Q", chance.getrandbits(64)))[0])
            case 2:
                yield f"{chance.random():.{chance.randrange(1, 20)}f}"
            case 3:
                yield f"{chance.getrandbits(chance.randrange(1, 64))}e{chance.randrange(-99, 100)}"
            case 4:  # halfway between two doubles
                middle = (chance.getrandbits(52) | 1 << 52) * 2 + 1
                yield chance.choice((f"{middle}", f"{middle // 10}.{middle % 10}", f"{middle / 4!r}"))
            case 5:
                yield f"0.{'0' * chance.randrange(6)}{chance.getrandbits(chance.randrange(1, 64))}"
            case 6:
                yield f"-{chance.getrandbits(40)}.{chance.randrange(1_000)}E-{chance.randrange(30)}"
            case _:
                yield "".join(chance.choices("0123456789.eE+-", k=chance.randrange(1, 12)))


def test_a_number_is_the_double_that_python_reads_or_left_to_it() -> None:
    read = 0
    for text in numbers(random.Random(2101)):
        end, value = _number_at(np.frombuffer(text.encode() + bytes(64), np.uint8), 0)
        try:
            expected = float(json.loads(text))
        except (ValueError, OverflowError):
            assert end != len(text), text
            continue
        if end == len(text):
            assert struct.pack("<d", value) == struct.pack("<d", expected), (text, value, expected)
            read += 1
        else:
            assert end == -1, (text, end)
    assert read > NUMBERS // 2


@pytest.mark.parametrize("text", ["0.30000000000000004", "9007199254740993", "1e23", "0.1", "5e-324"])
def test_numbers_that_are_hard_to_round(text: str) -> None:
    end, value = _number_at(np.frombuffer(text.encode() + bytes(64), np.uint8), 0)
    assert (end, value) == ((len(text), float(text)) if text != "5e-324" else (-1, 0.0))


@entry
def _number_at(data: Any, at: int) -> tuple[int, float]:
    return number_at(data, at)


def test_scores_of_rows_have_numbers_of_their_own_in_every_reading() -> None:
    decoder = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping()))
    records = [
        of(
            {"id": f"{n}", "model": f"m{n % 900}", "prediction": "a"}
            | ({"scores": {f"c{n % 5}": n / 4_000, "a": 1 - n / 4_000}} if n % 3 else {})
        )
        for n in range(3_000)
    ]
    batch = decoder.decode_batch(fetched(records))
    assert 0 < len(batch.objects) < len(records)
    assert len(batch.scores) == len(batch.scored_rows())
    for event, record in zip(batch.events(), fetched(records), strict=True):
        expected = decoder.decode(record, record.timestamp)
        assert event == expected


def test_more_scores_than_are_read_of_a_record_are_invalid_and_as_many_are_columns() -> None:
    decoder = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping()))
    for count in (MAX_SCORES, MAX_SCORES + 1):
        scores = {f"c{k}": 0.0 for k in range(count)}
        record = of({"id": "1", "model": "m", "prediction": "c1", "scores": scores})
        decoder.decode_batch(fetched([record]))  # the names are learnt
        batch = decoder.decode_batch(fetched([record]))
        if count == MAX_SCORES:
            assert batch.events()[0].scores == scores  # type: ignore[union-attr]
            assert not batch.objects
        else:
            assert isinstance(batch.objects[0], Invalid)


def test_the_largest_of_equal_scores_is_chosen_and_counted_by_the_reader_of_trees() -> None:
    decoder = build(
        spec_of("prediction", TopicMapping(prediction=ClassOfLargest("value.scores"))), FormatOptions()
    )
    tied = of({"id": "1", "model": "m", "scores": {"b": 0.5, "a": 0.5}})
    clear = of({"id": "1", "model": "m", "scores": {"b": 0.6, "a": 0.4}})
    decoder.decode_batch(fetched([tied, clear]))  # the names are learnt
    batch = decoder.decode_batch(fetched([tied, clear]))
    assert batch.rows["side"].tolist() == [SEVERAL, PREDICTION]
    group = decoded_of(batch)[0]
    assert isinstance(group, EventGroup)
    assert group.tied == 1
    assert batch.vocabulary.classes.names[batch.rows["class"][1]] == "b"


def test_classes_beyond_the_vocabulary_make_objects() -> None:
    decoder = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping(), None, Vocabulary(most=2)))
    records = [
        of({"id": "1", "model": "m", "prediction": "a", "scores": {"a": 0.5, name: 0.5}}) for name in "bc"
    ]
    decoder.decode_batch(fetched(records))  # the names are learnt
    batch = decoder.decode_batch(fetched(records))
    assert batch.rows["side"].tolist() == [PREDICTION, OBJECT]
    assert [event.scores for event in batch.events()] == [{"a": 0.5, "b": 0.5}, {"a": 0.5, "c": 0.5}]  # type: ignore[union-attr]


@pytest.mark.parametrize("digest", [False, True])
def test_records_in_any_batch_sizes_have_the_same_scores(digest: bool) -> None:  # noqa: FBT001
    decoder = JsonDecoder(
        DecoderSpec("predictions", "prediction", TopicMapping(), id_keys("", digest=digest))
    )
    records = [
        FakeRecord(b'{"id":"%d","model":"m","prediction":"a","scores":{"a":0.%d,"b":0.25}}' % (n, n))
        for n in range(1, 200)
    ]
    whole = decoder.decode_batch(fetched(records)).events()
    for size in (1, 7, 64):
        parts = [
            decoder.decode_batch(fetched(records[at : at + size])) for at in range(0, len(records), size)
        ]
        found = [event for part in parts for event in part.events()]
        assert [event.scores for event in found] == [event.scores for event in whole]  # type: ignore[union-attr]


def test_a_class_that_is_no_plain_text_is_not_taken_for_the_one_before() -> None:
    decoder = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping()))
    values = [
        b'{"id":"1","model":"m","prediction":"a","scores":{"a":0.5,"%s":0.5}}' % name
        for name in (b"bb", b"\xa9b", b"\\b", b"bb", b"cc")
    ]
    records = fetched([FakeRecord(value) for value in values])
    for _ in range(3):
        plain = decoder.decode_batch(records).rows["side"] != OBJECT
    assert plain.tolist() == [True, False, False, True, True]


def test_limits_that_compiled_code_repeats_are_those_of_the_general_decoder():
    assert contents.MAX_TIMESTAMP_MS == fields.MAX_TIMESTAMP_MS
    assert contents.MAX_SCORES == judging.MAX_SCORES
    assert contents.MAX_ID_BYTES == fields.MAX_TEXT_BYTES
    assert tokens.MAX_TOKEN_BYTES - len('""') == fields.MAX_TEXT_BYTES
    assert shape.MAX_ELEMENTS == trees.MAX_ELEMENTS
    for bound, beyond in ((contents._LEAST, -1.0), (contents._MOST, 2.0)):  # pyright: ignore[reportPrivateUsage]
        assert fields.probability(bound) is not None
        assert fields.probability(np.nextafter(bound, beyond)) is None
