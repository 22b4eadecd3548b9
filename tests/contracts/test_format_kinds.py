"""Every format is one file with its KIND, looked up by name; a forgotten one is an error."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest

from streamwatch.assembly.topics import build_topics
from streamwatch.edge.decoders import formats
from streamwatch.edge.decoders.formats import KINDS, DecoderSpec, FormatKind, FormatOptions
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.topics import FORMATS, OWN_KEYS, FormatSection, TopicSection

MODULES = [
    importlib.import_module(f"{formats.__name__}.{found.name}")
    for found in pkgutil.iter_modules(formats.__path__)
]


def test_every_file_that_knows_a_format_exports_its_kind_and_every_kind_is_found() -> None:
    kinds = [module for module in MODULES if hasattr(module, "KIND")]
    assert {module.KIND.name: module.KIND for module in kinds} == dict(KINDS)
    assert {module.__name__.rpartition(".")[2] for module in kinds} == set(KINDS)
    assert all(isinstance(module.KIND, FormatKind) for module in kinds)


class NoReaders:
    """A registry that nobody asks."""

    def reader(self, wanted: object) -> str:
        raise AssertionError(wanted)


def test_settings_offer_exactly_the_formats_there_are_with_the_keys_that_each_takes() -> None:
    assert set(FORMATS) == set(KINDS)
    assert {kind.name: kind.settings for kind in KINDS.values()} == OWN_KEYS
    assert {key for kind in KINDS.values() for key in kind.settings} <= FormatSection.model_fields.keys()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_a_format_builds_a_decoder_of_no_records(kind: FormatKind) -> None:
    decoder = kind.build(DecoderSpec("t", "prediction", TopicMapping()), FormatOptions(NoReaders()))
    assert decoder.decode_all([], []) == []


def test_a_format_that_settings_know_and_nobody_builds_is_an_error_and_no_other_format() -> None:
    arguments: dict[str, Any] = {
        "kafka": {"bootstrap_servers": "localhost:9"},
        "topics": {"predictions": ["p"], "labels": ["l"]},
    }
    plain = Settings(**arguments)
    pigeon = FormatSection().model_copy(update={"type": "carrier_pigeon"})
    unbuilt = TopicSection(name="p").model_copy(update={"format": pigeon})
    topics = plain.topics.model_copy(update={"predictions": (unbuilt,)})
    with pytest.raises(SettingsError, match=r"topics: format of p: expected one of json.*carrier_pigeon"):
        build_topics(plain.model_copy(update={"topics": topics}))
