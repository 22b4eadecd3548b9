"""Decoding of single records of JSON, and the records that tests begin with."""

from __future__ import annotations

from streamwatch.core.records.events import Event, Invalid, Side
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.mapping import REASONS, TopicMapping
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.records import AT_MS, FakeRecord

FLAT = {"id": "a1", "model": "fraud-v3", "prediction": "ok", "timestamp": 1_700_000_000_000}
LABEL = {"id": "a1", "label": "ok"}


def decode(record: FakeRecord, side: Side = "prediction", mapping: TopicMapping | None = None) -> Event:
    """Twice with one decoder, alone and in columns: what it remembers must not change what follows."""
    decoder = JsonDecoder(DecoderSpec("predictions", side, mapping or TopicMapping()))
    first = decoder.decode(record, AT_MS)
    assert decoder.decode(record, AT_MS) == first
    for _ in range(2):
        for event in decoder.decode_batch(fetched([record, record])).events():
            event.record_ms = first.record_ms
            if isinstance(event, Invalid):
                event.offset = record.offset
            assert event == first
    return first


def reason(record: FakeRecord, side: Side = "prediction", mapping: TopicMapping | None = None) -> str:
    event = decode(record, side, mapping)
    assert isinstance(event, Invalid), event
    assert (event.topic, event.partition, event.offset) == ("predictions", 3, 42)
    assert event.reason in REASONS
    return event.reason
