"""No name in a state may be empty: every type decoded from one refuses it, or a reason is stated."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

import streamwatch.admin
import streamwatch.core
import streamwatch.daemon
import streamwatch.edge.stores

MAY_BE_EMPTY = {
    ("PairingState", "rules"): "empty before the first pair",
    ("LastReportedBatch", "life"): "empty before the first batch",
    ("BatchMark", "life"): "likewise",
    ("Fingerprint", "topic_id"): "brokers need not give one",
    **{
        ("Row", field): "an event on its way between buckets, empty where it has none"
        for field in ("id", "model", "name", "scores", "segments")
    },
    ("KeptRecord", "headers"): "a header that a producer has named so: records are kept as they were",
    ("streamwatch.core.join.cold.contents._DECODER", ""): "the text of segments, empty without any",
}
"""Fields by type whose text may be empty, and why."""


def decoders() -> Iterator[tuple[str, Any]]:
    """Name and type of everything that these packages decode by a decoder of a module."""
    for package in (streamwatch.admin, streamwatch.core, streamwatch.daemon, streamwatch.edge.stores):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            module = importlib.import_module(found.name)
            for name, value in vars(module).items():
                if isinstance(value, msgspec.msgpack.Decoder | msgspec.json.Decoder):
                    yield f"{module.__name__}.{name}", value.type


def texts(kind: Any, owner: str, field: str, seen: set[type]) -> Iterator[tuple[str, str]]:
    """Type and field of each text within a type that may be empty."""
    if isinstance(kind, inspect.StrType):
        if not kind.min_length:
            yield owner, field
    elif hasattr(kind, "fields"):
        if kind.cls not in seen:
            seen.add(kind.cls)
            for each in kind.fields:
                yield from texts(each.type, kind.cls.__name__, each.name, seen)
    else:
        parts = [getattr(kind, name, None) for name in ("key_type", "value_type", "item_type")]
        for part in (*parts, *getattr(kind, "item_types", ()), *getattr(kind, "types", ())):
            if part is not None:
                yield from texts(part, owner, field, seen)


STORED = dict(decoders())


def test_the_decoders_are_found() -> None:
    assert len(STORED) > 40
    assert "streamwatch.core.pipeline.journal._ENTRY" in STORED


@pytest.mark.parametrize("name", sorted(STORED))
def test_an_empty_name_is_refused_wherever_one_is_decoded(name: str) -> None:
    found = set(texts(inspect.type_info(STORED[name]), name, "", set()))
    assert found - MAY_BE_EMPTY.keys() == set()
