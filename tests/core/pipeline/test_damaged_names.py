"""A start refuses a state in which a name was shortened to an empty text, and names the part."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.packed import CLASS, MODEL, TOPIC, key_of, parts_of
from streamwatch.core.pipeline.checkpoint import ESTIMATORS, PAIRS, PIPELINE, SETTINGS, ModelCheckpoint
from streamwatch.core.pipeline.journal import JournalPosition
from streamwatch.core.pipeline.sections import BEGINNINGS
from tests.core.pipeline.test_checkpoint import Life

REACHED = JournalPosition(1)


def emptied(body: bytes, name: str) -> bytes:
    """The same msgpack value with this text, wherever it is, shortened to an empty one."""

    def without(tree):
        if isinstance(tree, dict):
            return {without(key): without(value) for key, value in tree.items()}
        if isinstance(tree, list):
            return [without(each) for each in tree]
        return "" if tree == name else tree

    changed = msgspec.msgpack.encode(without(msgspec.msgpack.decode(body)))
    assert changed != body
    return changed


def start(life, **parts):
    """A start from what was committed, with some parts replaced."""
    saved = replace(life.model_store.saved(), **parts)
    other = Life()
    other.checkpoint.restore(saved)


@pytest.mark.parametrize("kind", [MODEL, CLASS, TOPIC])
def test_a_name_that_the_join_numbers(life, kind):
    columns = dict(life.model_store.saved().columns)
    key = next(key for key in columns if parts_of(key)[0] == kind)
    with pytest.raises(PackedError, match=f"value under {key.hex()} cannot be read: expected a name"):
        start(life, columns=sorted((columns | {key: b""}).items()))


@pytest.mark.parametrize("section", [PIPELINE, SETTINGS])
def test_a_name_in_a_section(life, section):
    sections = dict(life.model_store.saved().sections)
    name = {PIPELINE: "model-m", SETTINGS: next(iter(life.monitors.estimators()))}[section]
    damaged = emptied(sections[section], name)
    with pytest.raises(PackedError, match=f"the section '{section}' cannot be read: .*length >= 1"):
        start(life, sections=sections | {section: damaged})


@pytest.mark.parametrize(
    ("section", "damaged"),
    [
        (ESTIMATORS, msgspec.msgpack.encode(({"": 1}, []))),
        (BEGINNINGS, msgspec.msgpack.encode(({}, {}, {"": 5}))),
    ],
)
def test_a_name_in_a_section_that_is_empty_as_a_rule(life, section, damaged):
    sections = dict(life.model_store.saved().sections)
    with pytest.raises(PackedError, match=f"the section '{section}' cannot be read: .*length >= 1"):
        start(life, sections=sections | {section: damaged})


def test_a_name_in_the_snapshot_of_comparisons(life):
    sections = dict(life.model_store.saved().sections)
    comparison = {"champion": "m", "challenger": "", "classes": [], "sections": {}}
    snapshot = msgspec.msgpack.encode({"max_classes": 10, "over_limit": 0, "comparisons": [comparison]})
    damaged = msgspec.msgpack.encode(ModelCheckpoint(REACHED, snapshot))
    with pytest.raises(PackedError, match=r"the section 'comparisons' cannot be read: .*length >= 1"):
        start(life, sections=sections | {PAIRS: damaged})


@pytest.mark.parametrize("name", ["model-m", "x"])
def test_a_name_in_the_snapshot_of_a_model(life, name):
    snapshot = emptied(life.monitors.snapshot("model-m"), name)
    models = {"model-m": msgspec.msgpack.encode(ModelCheckpoint(REACHED, snapshot))}
    with pytest.raises(PackedError, match=r"the snapshot of model 'model-m' cannot be read: .*length >= 1"):
        start(life, models=models)


def test_the_name_under_which_a_model_is_kept(life):
    models = {"": msgspec.msgpack.encode(ModelCheckpoint(REACHED, None))}
    with pytest.raises(PackedError, match="what is kept of model '' cannot be read: expected the name"):
        start(life, models=models)


@pytest.mark.parametrize("name", ["model-m", "x"])
def test_a_name_in_the_journal(life, name):
    number, entry = life.model_store.saved().journal[-1]
    damaged = emptied(entry, name)
    with pytest.raises(PackedError, match=f"entry {number} of the journal cannot be read: .*length >= 1"):
        start(life, journal=[(number, damaged)])


def test_an_undamaged_state_is_gone_on_from(life):
    start(life)
    assert key_of(MODEL, 0) in dict(life.model_store.saved().columns)
