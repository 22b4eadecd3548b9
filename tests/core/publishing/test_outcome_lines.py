"""Lines of outcomes: what a document holds, whatever the outcomes are made of."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
import xxhash

from streamwatch.core.publishing.documents import OutcomeDocument
from streamwatch.core.publishing.kept import KeptOutcomes
from streamwatch.core.publishing.outcome_lines import IdTexts, OutcomeLines, keys_of
from streamwatch.core.records.batch import batch_of
from streamwatch.core.records.events import SAMPLING, Label, Outcome, Prediction, sampling_of, segments_text
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch

MODELS = ("fraud", 'quoted "v\\2"', "folds\x1f3", "größer")
CLASSES = ("a", "b", 'c,"d"')
SEGMENTS = (segments_text({"region": "eu", "tier": 'g"old'}), segments_text({"region": "us"}))
IDS = ("17", 'x"y', "shop\x1fé", "z")


def digests(keys: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    both = [xxhash.xxh3_128_intdigest(key.encode()) for key in keys]
    return (
        np.array([each >> 64 for each in both], np.uint64),
        np.array([each & (2**64 - 1) for each in both], np.uint64),
    )


def outcomes() -> OutcomeBatch:
    """One of every kind."""
    records = np.zeros(4, OUTCOME)
    records["high"], records["low"] = digests(IDS)
    records["model"] = (0, 1, 2, 3)
    records["true_class"], records["predicted_class"] = (0, 1, 2, 0), (0, 2, 2, 1)
    records["label_at_prediction"] = (-1, 0, 1, 2)
    records["event_ms"], records["delay_ms"] = (10, 20, 30, 40), (0, 5, 7, 40)
    records["resolved_ms"], records["waited_ms"] = (11, 21, 31, 41), (1, 6, 8, 41)
    records["assumed"], records["last_class"] = (0, 0, 0, 1), (0, 1, 0, 3)
    records["scores"] = (-1, SEGMENTS_FROM, SEGMENTS_FROM + 1, -1)
    records["carried"][:, SAMPLING] = [
        sampling_of(p, r) for p, r in ((None, None), (0.25, True), (1.0, None), (0.5, False))
    ]
    return OutcomeBatch(records, MODELS, CLASSES, segments=SEGMENTS)


def lines_of(ids: Callable[[], IdTexts] | None, first: int = 1) -> list[bytes]:
    """The lines of these outcomes."""
    kept = KeptOutcomes.of(outcomes(), keys_of(outcomes(), ids))
    written = OutcomeLines("life").of(kept, first)
    lines = written.text.tobytes().split(b"\n")
    assert lines.pop() == b""
    assert written.ends.tolist() == np.cumsum([len(line) + 1 for line in lines]).tolist()
    return lines


def ids() -> IdTexts:
    """Of records: labels and a prediction, in another order and among others."""
    events = [
        Label("other", "a", 1),
        Label(IDS[2], "c", 1),
        Prediction(IDS[0], "fraud", "a", 1),
        Label(IDS[1], "b", 1),
        Label(IDS[3], "a", 1),
    ]
    return IdTexts(batch_of(events, np.arange(len(events))))


def expected(outcome: Outcome, number: int, key: str) -> dict[str, object]:
    """The document of an outcome, field by field."""
    namespace, _, id_ = key.rpartition("\x1f")
    model, _, fold = outcome.model.partition("\x1f")
    return {
        "schema_version": 1,
        "life": "life",
        "number": number,
        "model": model,
        "fold": int(fold) if fold else None,
        "namespace": None if outcome.assumed else namespace,
        "id": None if outcome.assumed else id_,
        "id_digest": xxhash.xxh3_128_hexdigest(key.encode()),
        "prediction": outcome.predicted_class,
        "last_prediction": outcome.last_class,
        "label": outcome.true_class,
        "right": outcome.predicted_class == outcome.true_class,
        "assumed": outcome.assumed,
        "last_known_label": outcome.label_at_prediction,
        "prediction_timestamp_ms": outcome.event_ms - outcome.delay_ms,
        "label_timestamp_ms": outcome.event_ms,
        "delay_ms": outcome.delay_ms,
        "resolved_timestamp_ms": outcome.resolved_ms,
        "waited_ms": outcome.waited_ms,
        "segments": outcome.segments,
        "label_probability": outcome.label_probability,
        "label_requested": outcome.label_requested,
    }


def test_a_line_holds_what_the_outcome_holds() -> None:
    batch = outcomes()
    lines = lines_of(ids, 8)
    assert [json.loads(line) for line in lines] == [
        expected(outcome, number, key)
        for number, (outcome, key) in enumerate(zip(batch, IDS, strict=True), 8)
    ]


def test_a_line_is_a_document_of_the_schema() -> None:
    for line in lines_of(ids):
        document = msgspec.json.decode(line, type=OutcomeDocument, strict=True)
        assert json.loads(msgspec.json.encode(document)) == json.loads(line)


def test_without_records_at_hand_ids_are_null() -> None:
    lines = lines_of(None)
    assert {json.loads(line)["id"] for line in lines} == {None}


def test_an_outcome_whose_record_is_not_at_hand_is_an_error() -> None:
    with pytest.raises(KeyError, match="no record of the stretch has the digest"):
        lines_of(lambda: IdTexts(batch_of([Label("x", "a", 1)], np.arange(1))))
