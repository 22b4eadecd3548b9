"""Folds, and how labels are sampled, through the compiled scanner: what the reader of one record finds."""

from __future__ import annotations

import json
import random

import pytest

from streamwatch.core.records.batch import OBJECT
from streamwatch.core.records.events import Invalid, Prediction, Side, fold_of
from streamwatch.edge.decoders.formats.json import JsonDecoder, build, decoded_of
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import KindRule, ScoreArray, TopicMapping
from streamwatch.folds import Scheme
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.records import FakeRecord, of
from tests.edge.decoders.scored import NUMBERS, scores
from tests.tiers import by_tier

RECORDS = by_tier(fast=3_000, rotating=7_500, default=30_000, everything=400_000)
PREQUENTIAL = Scheme("bootstrap", 5)
SAMPLED = TopicMapping(
    label_probability="value.pi", label_requested="value.asked", min_label_probability=0.001
)
MAPPINGS: dict[str, tuple[Side, TopicMapping, Scheme | None]] = {
    "folds": ("prediction", TopicMapping(), PREQUENTIAL),
    "folds that do not test every id": (
        "prediction",
        TopicMapping(),
        Scheme("bootstrap", 5, prequential=False),
    ),
    "no scheme": ("prediction", TopicMapping(), None),
    "both": ("both", TopicMapping(kind=KindRule("value.kind")), PREQUENTIAL),
    "one model": ("prediction", TopicMapping(model="=m", fold="header:fold", scores=None), PREQUENTIAL),
    "model of two": ("prediction", TopicMapping(model=("value.model", "value.asked")), PREQUENTIAL),  # type: ignore[arg-type]
    "sampled": ("prediction", SAMPLED, None),
    "everything": (
        "prediction",
        TopicMapping(
            label_probability="value.pi",
            label_requested="header:asked",
            min_label_probability=0.001,
            scores=ScoreArray("value.s", ("a", "b")),
            segments={"country": "value.country"},
        ),
        PREQUENTIAL,
    ),
}
FOLDS = (*"01234", '"0"', '"4"', "3.0", "5", "-1", '"03"', '""', "null", "true", "[]", "{}", "1e0", '"x"')
REQUESTED = ("true", "false", "0", "1", '"true"', '"false"', '"1"', "null", "1.0", '"yes"', "2", '""', "[]")
RAW = (b"0", b"1", b"true", b"false", b"4", b"5", b"", b"1\0", b"true\0", b"\xff")


def record(chance: random.Random, number: int, oddity: float) -> FakeRecord:
    """A record that has some of the fields, some of them as they should not be."""

    def one(values: tuple[str, ...], ordinary: int) -> str:
        return chance.choice(values if chance.random() < oddity else values[:ordinary])

    content = {
        "id": json.dumps(f"{number}"),
        "model": json.dumps(chance.choice(("m", "n"))),
        "prediction": json.dumps(chance.choice("ab")),
        "label": '"a"',
        "kind": json.dumps(chance.choice(("prediction", "prediction", "label"))),
        "fold": one(FOLDS, 5),
        "pi": one(NUMBERS, 2) if chance.random() < oddity else chance.choice(("0.5", "1", "0.001", '"0.25"')),
        "asked": one(REQUESTED, 7),
        "s": scores(chance, oddity),
        "country": chance.choice(('"DE"', '"FR"')),
    }
    for name in ("fold", "pi", "asked", "s", "country"):
        if chance.random() < 0.25:
            del content[name]
    written = ", ".join(f'"{name}": {value}' for name, value in content.items())
    raw = [(name, chance.choice(RAW)) for name in ("fold", "asked") if chance.random() < 0.7]
    return FakeRecord(f"{{{written}}}".encode(), None, tuple(raw))


@pytest.mark.parametrize("name", MAPPINGS)
def test_records_with_folds_and_sampled_labels_are_what_each_is_read_alone(name: str) -> None:
    side, mapping, folds = MAPPINGS[name]
    decoder = build(DecoderSpec("predictions", side, mapping, folds=folds), FormatOptions())
    assert isinstance(decoder, JsonDecoder)
    chance = random.Random(name)
    total = folded = sampled = 0
    while total < RECORDS // len(MAPPINGS):
        oddity = chance.choice((0.0, 0.15, 0.5))
        found = fetched([record(chance, total + i, oddity) for i in range(60)])
        batch = decoder.decode_batch(found)
        total += len(found)
        for row, event, each in zip(batch.rows, decoded_of(batch), found, strict=True):
            assert event == decoder.decode(each, int(row["record_ms"]))
            if row["side"] < OBJECT and isinstance(event, Prediction):
                folded += fold_of(event.model) is not None
                sampled += event.label_probability is not None
    assert (folded > total // 20) == (folds is not None and folds.prequential)
    assert (sampled > total // 20) == (mapping.label_probability is not None)


def test_a_record_of_every_fold_is_columns_once_names_are_known() -> None:
    decoder = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping(), folds=PREQUENTIAL))
    plain = {"id": "1", "model": "m", "prediction": "x"}
    records = fetched([of(plain), *(of(plain | {"fold": fold}) for fold in (0, 4, "4", 9))])
    decoder.decode_batch(records)
    batch = decoder.decode_batch(records)
    *predictions, wrong = batch.events()
    assert [fold_of(event.model) for event in predictions if isinstance(event, Prediction)] == [None, 0, 4, 4]
    assert isinstance(wrong, Invalid)
    assert batch.objects == [wrong]
