"""Every envelope is one file with its KIND, looked up by name; a forgotten one is an error."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest

from streamwatch.assembly.topics import build_topics, mappings_of
from streamwatch.edge.decoders import envelopes
from streamwatch.edge.decoders.envelopes import KINDS, EnvelopeKind, UnwrappedRecord
from streamwatch.edge.decoders.mapping import REASONS, TopicMapping
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.topics import ENVELOPES, TopicSection
from tests.edge.decoders.records import FakeRecord

MODULES = [
    importlib.import_module(f"{envelopes.__name__}.{found.name}")
    for found in pkgutil.iter_modules(envelopes.__path__)
]
ARGUMENTS: dict[str, Any] = {
    "kafka": {"bootstrap_servers": "localhost:9"},
    "topics": {"predictions": ["p"], "labels": ["l"]},
}


def test_every_file_that_knows_an_envelope_exports_its_kind_and_every_kind_is_found() -> None:
    kinds = [module for module in MODULES if hasattr(module, "KIND")]
    assert {module.KIND.name: module.KIND for module in kinds} == dict(KINDS)
    assert {module.__name__.rpartition(".")[2] for module in kinds} == set(KINDS)
    assert all(isinstance(module.KIND, EnvelopeKind) for module in kinds)
    assert all(f"``{name}``" in (envelopes.__doc__ or "") for name in KINDS)


def test_settings_offer_exactly_the_envelopes_there_are() -> None:
    assert set(ENVELOPES) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_an_envelope_refuses_what_it_is_not_with_a_known_reason(kind: EnvelopeKind) -> None:
    for tree in ({}, [], {"id": 1, "prediction": "a"}, {"data": None}, {"payload": 1, "schema": 2}):
        assert kind.open(tree, FakeRecord(b"")) == "not_in_envelope", tree
    assert "not_in_envelope" in REASONS


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_the_paths_of_an_envelope_are_those_of_a_mapping_that_says_nothing(kind: EnvelopeKind) -> None:
    topics = {"predictions": {"name": "p", "envelope": kind.name}, "labels": "l"}
    [sided] = mappings_of(Settings(**ARGUMENTS | {"topics": topics}).topics)["p"]
    shown = {name: getattr(sided.mapping, name) for name in kind.defaults}
    assert shown == dict(kind.defaults)
    assert set(kind.defaults) <= set(TopicMapping.__dataclass_fields__)
    own: dict[str, Any] = {"id": "key", "prediction": "=a"}
    topics["predictions"] = {"name": "p", "envelope": kind.name, "mapping": own}
    [sided] = mappings_of(Settings(**ARGUMENTS | {"topics": topics}).topics)["p"]
    assert (sided.mapping.id, sided.mapping.prediction) == ("key", "=a")


def test_an_envelope_that_settings_know_and_nobody_opens_is_an_error_and_no_other_envelope() -> None:
    plain = Settings(**ARGUMENTS)
    unknown = TopicSection(name="p").model_copy(update={"envelope": "carrier_pigeon"})
    topics = plain.topics.model_copy(update={"predictions": (unknown,)})
    with pytest.raises(SettingsError, match=r"envelope: expected one of cloudevents.*carrier_pigeon"):
        build_topics(plain.model_copy(update={"topics": topics}))


def test_what_is_opened_says_whether_it_was_deleted() -> None:
    change = {"op": "d", "before": {"id": 1}, "after": None}
    opened = KINDS["debezium"].open(change, FakeRecord(b""))
    assert isinstance(opened, UnwrappedRecord)
    assert opened.deleted
