"""Ids as keys of the state: within their namespace, digests on disk."""

from __future__ import annotations

import pytest
import xxhash

from streamwatch.core.records.events import Label, NullRecord, Prediction
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.keys import id_keys
from tests.edge.decoders.records import FakeRecord, of

PREDICTION = {"id": "1", "model": "m", "prediction": "a"}
LABEL = {"id": 1, "label": "a"}


def key(side, record, namespace, *, digest, mapping=None):
    decoder = JsonDecoder(
        DecoderSpec("t", side, mapping or TopicMapping(), id_keys(namespace, digest=digest))
    )
    (event,) = decoder.decode_all([record], [0])
    assert isinstance(event, Prediction | Label | NullRecord)
    return event.id


@pytest.mark.parametrize("digest", [True, False])
def test_equal_ids_share_a_key_within_one_namespace_and_never_across_two(digest):
    keys = {
        (space, side): key(side, of(content), space, digest=digest)
        for space in ("", "fraud", "churn")
        for side, content in (("prediction", PREDICTION), ("label", LABEL))
    }
    assert all(keys[space, "prediction"] == keys[space, "label"] for space in ("", "fraud", "churn"))
    assert len(set(keys.values())) == 3


def test_the_default_namespace_spells_ids_as_they_are():
    assert key("prediction", of(PREDICTION), "", digest=False) == "1"


def test_namespace_and_id_cannot_be_mistaken_for_another_pair():
    one = key("label", of(LABEL | {"id": "bc"}), "a", digest=False)
    other = key("label", of(LABEL | {"id": "c"}), "ab", digest=False)
    assert one != other


def test_the_digest_is_taken_over_namespace_and_id_together():
    expected = xxhash.xxh3_128_digest(b"fraud\x1f1").decode("latin-1")
    assert key("prediction", of(PREDICTION), "fraud", digest=True) == expected


def test_a_null_record_withdraws_within_its_namespace():
    mapping = TopicMapping(id="key")
    record = FakeRecord(None, key=b"1")
    withdrawn = key("prediction", record, "fraud", digest=False, mapping=mapping)
    assert withdrawn == key("prediction", of(PREDICTION), "fraud", digest=False)
