"""A start refuses a state in which a number became too large, or a text is none, and names the part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.pipeline.checkpoint import ESTIMATORS, PIPELINE, SETTINGS, ModelCheckpoint
from streamwatch.core.pipeline.journal import JournalPosition
from streamwatch.core.pipeline.sections import DocumentError, spec_of
from tests.core.join.join_stream import clocked, label_for_all, predict, tick
from tests.core.pipeline.test_checkpoint import Life
from tests.damage import damaged_bytes, damaged_tree
from tests.tiers import by_tier

TRIES = by_tier(fast=60, default=150, everything=5_000)
LARGE = (2**31, 2**63, 2**64 - 1, -(2**63))


def numbers_replaced(tree: Any, number: int) -> Iterator[Any]:
    """The tree once for each of its whole numbers, which is another."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from ({**tree, key: other} for other in numbers_replaced(value, number))
    elif isinstance(tree, list):
        for at, value in enumerate(tree):
            yield from ([*tree[:at], other, *tree[at + 1 :]] for other in numbers_replaced(value, number))
    elif isinstance(tree, int) and not isinstance(tree, bool):
        yield number


def refused(life, named: str, **parts) -> bool:
    """Whether a start refuses the state, by a message that names the part; it may as well be a state."""
    try:
        Life().checkpoint.restore(replace(life.model_store.saved(), **parts))
    except PackedError as error:
        found = str(error)
    else:
        return False
    assert named in found
    return True


@pytest.mark.parametrize("number", LARGE)
@pytest.mark.parametrize("section", [PIPELINE, ESTIMATORS])
def test_every_number_of_a_section(life, section, number):
    sections = dict(life.model_store.saved().sections)
    tree = msgspec.msgpack.decode(sections[section])
    found = [
        refused(life, "", sections=sections | {section: msgspec.msgpack.encode(damaged)})
        for damaged in numbers_replaced(tree, number)
    ]
    assert found
    assert sum(found) > len(found) / 2 or section == ESTIMATORS or number != 2**64 - 1


@pytest.mark.parametrize("number", LARGE[1:])
def test_every_number_of_an_entry_of_the_journal(life, number):
    [(commit, value), *others] = life.model_store.saved().journal
    for damaged in numbers_replaced(msgspec.msgpack.decode(value), number):
        journal = [(commit, msgspec.msgpack.encode(damaged)), *others]
        assert refused(life, f"entry {commit} of the journal cannot be read", journal=journal)


@pytest.mark.parametrize("number", LARGE)
def test_every_number_of_what_is_kept_of_a_model(life, number):
    saved = life.model_store.saved()
    snapshot = msgspec.msgpack.decode(life.monitors.snapshot("model-m"))
    for damaged in numbers_replaced(snapshot, number):
        kept = ModelCheckpoint(JournalPosition(1), msgspec.msgpack.encode(damaged))
        refused(life, "model-m", models={"model-m": msgspec.msgpack.encode(kept)})
    tree = msgspec.msgpack.decode(saved.models["model-m"])
    for position in numbers_replaced(tree[0], number):
        kept = msgspec.msgpack.encode([position, tree[1]])
        if refused(life, "what is kept of model 'model-m'", models={**saved.models, "model-m": kept}):
            continue
        assert number == 2**31, "such commits may come"


def test_texts_that_are_none(life):
    sections = dict(life.model_store.saved().sections)
    for section in (PIPELINE, SETTINGS):
        for name in ("model-m", "fading"):
            body = sections[section]
            at = body.find(name.encode())
            while at >= 0:
                damaged = body[:at] + b"\xff" + body[at + 1 :]
                assert refused(
                    life, f"the section '{section}' cannot be read", sections=sections | {section: damaged}
                )
                at = body.find(name.encode(), at + 1)


def test_a_document_that_is_no_text():
    with pytest.raises(DocumentError, match="expected the settings of monitors"):
        spec_of(b'{"of": "\xff"}')


def goes_on(life, **parts) -> bool:
    """Whether a start accepts the state; it then joins, evaluates and commits without an error."""
    other = Life()
    try:
        other.checkpoint.restore(replace(life.model_store.saved(), **parts))
    except PackedError:
        return False
    pipeline = other.stream.pipeline
    for n in range(20, 40):
        models = [predict(str(n), "xy"[n % 2], n, model, topic="t") for model in ("model-m", "model-n")]
        events = [*models, label_for_all(str(n - n % 3), "x", n, topic="t"), tick(n + n // 39 * 100_000)]
        clocked(events, pipeline.clock_ms)
        other.checkpoint.take(pipeline.advance(events))
    other.commit()
    return True


def test_columns_of_the_join_that_are_damaged_at_chance(life):
    chance = np.random.default_rng(1)
    columns = list(life.model_store.saved().columns)
    for _ in range(TRIES):
        at = int(chance.integers(len(columns)))
        key, value = columns[at]
        other = [*columns[:at], (key, damaged_bytes(value, chance)), *columns[at + 1 :]]
        goes_on(life, columns=other)


def test_sections_that_are_damaged_at_chance(life):
    chance = np.random.default_rng(2)
    sections = dict(life.model_store.saved().sections)
    for _ in range(TRIES):
        name = (PIPELINE, ESTIMATORS)[int(chance.integers(2))]
        tree = damaged_tree(msgspec.msgpack.decode(sections[name]), chance)
        goes_on(life, sections=sections | {name: msgspec.msgpack.encode(tree)})
