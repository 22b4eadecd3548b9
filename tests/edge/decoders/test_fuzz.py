"""No input raises, and what is accepted is what a slow reader in plain Python accepts."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.records.events import Event, Invalid, Label, NullRecord, Prediction, Side
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats import json as json_values
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.mapping import REASONS, KindRule, TopicMapping
from tests.edge.decoders.records import AT_MS, FakeRecord
from tests.tiers import examples

MAPPINGS: list[tuple[Side, TopicMapping]] = [
    ("prediction", TopicMapping()),
    ("label", TopicMapping()),
    ("both", TopicMapping(kind=KindRule("value.prediction"))),
    ("both", TopicMapping(id="key", model="header:m", kind=KindRule("header:kind"))),
    (
        "prediction",
        TopicMapping(id="value.a.b", prediction="value.a.c", scores="value.a", timestamp_unit="iso8601"),
    ),
    ("prediction", TopicMapping(id="value.id.x", model="=m", prediction="value.model.prediction.label")),
    ("label", TopicMapping(id="topic", label="header:m", timestamp="key", timestamp_unit="s")),
]
NAMES = st.sampled_from(
    ["id", "model", "prediction", "label", "timestamp", "scores", "fold", "a", "b", "c", "x"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text(alphabet="ab1é\x7f\n\\")
    | st.sampled_from(["prediction", "label", 10**200, 1e300, "x" * 129])
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6)
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=9)
BYTES = st.none() | st.binary(max_size=20) | st.sampled_from([b"prediction", b"label", b"a"])


def check(event: Event) -> None:
    assert isinstance(event, Prediction | Label | NullRecord | Invalid)
    if isinstance(event, Invalid):
        assert event.reason in REASONS
        return
    names = [event.id]
    if isinstance(event, Prediction):
        names += [event.model, event.predicted_class, *(event.scores or {})]
    elif isinstance(event, Label):
        names += [event.true_class] + ([] if event.model is None else [event.model])
    for name in names:
        if name is not None:
            assert 1 <= len(name.encode()) <= 128
            assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in name)
    stamp = getattr(event, "timestamp_ms", None)
    assert stamp is None or 0 <= stamp < 253_402_300_800_000


@settings(max_examples=examples(3))
@given(
    st.sampled_from(MAPPINGS),
    st.binary(max_size=60) | JSON.map(lambda v: json.dumps(v).encode()),
    BYTES,
    BYTES,
)
def test_no_bytes_raise(
    mapping: tuple[Side, TopicMapping], value: bytes, key: bytes | None, header: bytes | None
):
    headers = () if header is None else (("m", header), ("kind", header))
    decoder = JsonDecoder(DecoderSpec("predictions", *mapping))
    first = decoder.decode(FakeRecord(value, key, headers), AT_MS)
    check(first)
    check(decoder.decode(FakeRecord(None, key, headers), AT_MS))
    assert decoder.decode(FakeRecord(value, key, headers), AT_MS) == first


@settings(max_examples=examples(0.4))
@given(st.lists(OBJECTS, min_size=1, max_size=4))
def test_a_decoder_that_has_seen_much_decides_as_a_fresh_one(contents: list[dict[str, Any]]):
    for side, mapping in MAPPINGS:
        seasoned = JsonDecoder(DecoderSpec("predictions", side, mapping))
        for content in contents:
            record = FakeRecord(json.dumps(content).encode(), b"a", (("kind", b"label"),))
            event = seasoned.decode(record, AT_MS)
            check(event)
            assert event == JsonDecoder(DecoderSpec("predictions", side, mapping)).decode(record, AT_MS)


ORDINARY = st.fixed_dictionaries(
    {
        "id": st.uuids().map(str),
        "model": st.sampled_from(["m", "n"]),
        "prediction": st.sampled_from(["a", 1]),
    },
    optional={
        "label": st.sampled_from(["a", 1, True, 1.0]),
        "timestamp": st.sampled_from([0, 1_700_000_000_000, None, 1.5, 10**15]),
        "scores": st.none() | st.just({"a": 0.5}),
    },
)


@settings(max_examples=examples(1.5))
@given(
    st.sampled_from(MAPPINGS[:3] + MAPPINGS[-2:]),
    st.lists(
        st.one_of(*[ORDINARY] * 9, OBJECTS).map(lambda v: json.dumps(v).encode()) | st.none(), max_size=9
    ),
    st.integers(1, 9),
)
def test_records_decoded_together_are_as_decoded_alone(
    mapping: tuple[Side, TopicMapping], values: list[bytes | None], repetitions: int
):
    records = [FakeRecord(value, offset=n) for n, value in enumerate(values * repetitions)]
    stamps = [AT_MS + n for n in range(len(records))]
    together = JsonDecoder(DecoderSpec("predictions", *mapping))
    for _ in range(2):  # then with every name met before
        with pytest.MonkeyPatch.context() as changed:
            changed.setattr(json_values, "FEWEST_AT_ONCE", 1)
            changed.setattr(json_values, "FIRST_LEARNT", 1)
            changed.setattr(json_values, "COPIED_BYTES", 3_000)  # some copies, of a few records each
            events = together.decode_all(records, stamps)
        assert list(events) == list(
            map(JsonDecoder(DecoderSpec("predictions", *mapping)).decode, records, stamps)
        )


def plain_text(raw: Any) -> str | None:
    """The rule for names, written as simply as possible."""
    if isinstance(raw, bool):
        raw = json.dumps(raw)
    elif isinstance(raw, float) and raw == int(raw):
        raw = str(int(raw))
    elif isinstance(raw, int | float):
        raw = str(raw)
    if not isinstance(raw, str) or any(unicodedata.category(c) in ("Cc", "Cs") for c in raw):
        return None
    return raw if 1 <= len(raw.encode()) <= 128 else None


@settings(max_examples=examples(3))
@given(
    st.fixed_dictionaries(
        {}, optional={"id": SCALARS, "model": SCALARS, "label": SCALARS, "prediction": SCALARS}
    )
)
def test_names_are_judged_as_by_a_slow_reader(content: dict[str, Any]):
    id_, model, label, shown = (plain_text(content.get(k)) for k in ("id", "model", "label", "prediction"))
    value = json.dumps(content).encode()
    if b"\\ud" in value and not _pairs_up(value):
        return
    prediction = JsonDecoder(DecoderSpec("t", "prediction", TopicMapping())).decode(FakeRecord(value), AT_MS)
    if id_ is not None and model is not None and shown is not None:
        assert prediction == Prediction(id_, model, shown, AT_MS)
    else:
        assert isinstance(prediction, Invalid)
    true_class = JsonDecoder(DecoderSpec("t", "label", TopicMapping())).decode(FakeRecord(value), AT_MS)
    if id_ is not None and label is not None and (model is not None or content.get("model") is None):
        assert true_class == Label(id_, label, AT_MS, model)
    else:
        assert isinstance(true_class, Invalid)


def _pairs_up(value: bytes) -> bool:
    try:
        str(json.loads(value)).encode()
    except UnicodeEncodeError:
        return False
    return True
