"""Ids that lose a prefix or suffix, and thresholds in records: the scanner's rows are what trees make."""

from __future__ import annotations

import random
from typing import Any

import pytest

from streamwatch.core.records.batch import OBJECT
from streamwatch.core.records.events import Invalid, Prediction
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.edge.decoders.formats.json import JsonDecoder, build, decoded_of
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import ClassOfScore, TopicMapping, Trimmed
from streamwatch.edge.keys import id_keys
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.mutations import SCALARS
from tests.edge.decoders.records import AT_MS, FakeRecord, of
from tests.tiers import by_tier

TRIMMED = TopicMapping(id=Trimmed("value.id", "txn-", "-eu"))
CUT = TopicMapping(
    id=Trimmed("value.id", "txn-"),
    prediction=ClassOfScore("value.p", "value.cut", "yes", "no", probability=True),
)
RECORDS = by_tier(fast=2_000, rotating=5_000, default=20_000, everything=200_000)


def decoder(mapping: TopicMapping) -> JsonDecoder:
    built = build(DecoderSpec("predictions", "prediction", mapping, vocabulary=Vocabulary()), FormatOptions())
    assert isinstance(built, JsonDecoder)
    return built


def id_of(shown: object, mapping: TopicMapping = TRIMMED) -> str:
    event = decoder(mapping).decode(of({"id": shown, "model": "m", "prediction": "x"}), AT_MS)
    assert isinstance(event, Prediction | Invalid)
    return event.id if isinstance(event, Prediction) else event.reason


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("txn-17-eu", "17"),
        ("txn-17", "17"),
        ("17-eu", "17"),
        ("17", "17"),
        (17, "17"),
        ("txn-txn-17", "txn-17"),
        ("txn--eu", "missing_id"),
        ("txn-", "missing_id"),
        ("TXN-17", "TXN-17"),
        ("txn-é", "é"),
        ("", "invalid_id"),
        ("txn-" + "x" * 125, "invalid_id"),
    ],
)
def test_an_id_loses_what_it_begins_or_ends_with(shown: object, expected: str) -> None:
    assert id_of(shown) == expected


def test_a_part_of_several_may_lose_a_prefix_and_is_escaped_like_any_other() -> None:
    mapping = TopicMapping(id=("value.shop", Trimmed("value.id", "no-")))
    event = decoder(mapping).decode(of({"shop": "a/b", "id": "no-7", "model": "m", "prediction": "x"}), AT_MS)
    assert isinstance(event, Prediction)
    assert event.id == "a%2Fb/7"


def test_a_single_text_that_loses_something_is_not_escaped() -> None:
    assert id_of("txn-a/b%") == "a/b%"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"p": 0.4, "cut": 0.4}, "yes"),
        ({"p": 0.4, "cut": 0.41}, "no"),
        ({"p": "0.4", "cut": "0.3"}, "yes"),
        ({"p": 0.4, "cut": 1}, "no"),
        ({"p": 0.4}, "missing_threshold"),
        ({"p": 0.4, "cut": None}, "missing_threshold"),
        ({"p": 0.4, "cut": "low"}, "invalid_threshold"),
        ({"p": 0.4, "cut": True}, "invalid_threshold"),
        ({"p": 2, "cut": 0.5}, "invalid_score"),
        ({"cut": 0.5}, "missing_prediction"),
    ],
)
def test_a_threshold_is_that_of_the_record(more: dict[str, Any], expected: str) -> None:
    event = decoder(CUT).decode(of({"id": 1, "model": "m"} | more), AT_MS)
    assert isinstance(event, Prediction | Invalid)
    assert (event.predicted_class if isinstance(event, Prediction) else event.reason) == expected


IDS = (
    '"txn-{n}"',
    '"txn-{n}-eu"',
    "{n}",
    '"{n}-eu"',
    '"txn-"',
    '"txn--eu"',
    '"tx"',
    '"-eu"',
    '"txn-é{n}"',
    '""',
)
NUMBERS = ("0.5", "0.25", "1", "0", "0.1", "1e-3", "0.9", "0.50", "5e-1")


def written(chance: random.Random, n: int) -> FakeRecord:
    """A record with an id, a score and a threshold, one of them odd at times."""
    oddity = chance.choice((0.0, 0.1, 0.5))
    contents = {
        "id": chance.choice(IDS).format(n=n), "model": '"m"', "prediction": '"x"',
        "p": chance.choice(NUMBERS), "cut": chance.choice(NUMBERS),
    }  # fmt: skip
    odd = {name: chance.choice(SCALARS) for name in ("id", "p", "cut") if chance.random() < oddity}
    fields = ", ".join(f'"{name}": {content}' for name, content in (contents | odd).items())
    return FakeRecord(f"{{{fields}}}".encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("mapping", [TRIMMED, CUT], ids=["trimmed", "threshold"])
@pytest.mark.parametrize("space", ["", "space"])
def test_records_give_the_same_events_in_columns_and_alone(mapping: TopicMapping, space: str) -> None:
    chance = random.Random(space)
    keys = id_keys(space, digest=False)
    spec = DecoderSpec("predictions", "prediction", mapping, keys, Vocabulary(300))
    scanned = build(spec, FormatOptions())
    plainly = total = 0
    while total < RECORDS:
        found = fetched([written(chance, total + i) for i in range(60)])
        batch = scanned.decode_batch(found)
        total += len(found)
        for row, event, record in zip(batch.rows, decoded_of(batch), found, strict=True):
            assert event == scanned.decode(record, int(row["record_ms"]))
            plainly += row["side"] != OBJECT
    assert plainly > total / 3
