"""Every store and every source has its KIND, looked up by name; a forgotten one is an error."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

from streamwatch.assembly.state import open_store
from streamwatch.edge import sources, stores
from streamwatch.edge.sources import SourceKind
from streamwatch.edge.stores import StoreKind
from streamwatch.edge.stores.rocksdb import RocksSpec
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.sections import StateSection

MINIMAL: dict[str, Any] = {
    "kafka": {"bootstrap_servers": "localhost:9"},
    "topics": {"predictions": ["p"], "labels": ["l"]},
}


def modules(room: ModuleType) -> list[ModuleType]:
    """Files and packages of a room that export a KIND."""
    found = [
        importlib.import_module(f"{room.__name__}.{each.name}")
        for each in pkgutil.iter_modules(room.__path__)
    ]
    return [module for module in found if hasattr(module, "KIND")]


@pytest.mark.parametrize(("room", "kind"), [(stores, StoreKind), (sources, SourceKind)])
def test_every_file_that_exports_a_kind_is_found_under_its_own_name(room: Any, kind: type) -> None:
    found = modules(room)
    assert {module.KIND.name: module.KIND for module in found} == dict(room.KINDS)
    assert {module.__name__.rpartition(".")[2] for module in found} == set(room.KINDS)
    assert all(isinstance(module.KIND, kind) for module in found)


def test_settings_offer_exactly_the_stores_and_sources_there_are() -> None:
    assert set(get_args(StateSection.model_fields["kind"].annotation)) == set(stores.KINDS)
    assert set(sources.KINDS) <= set(Settings.model_fields)


@pytest.mark.parametrize("kind", stores.KINDS.values(), ids=stores.KINDS.keys())
def test_a_store_is_as_durable_as_its_kind_says(kind: StoreKind[Any], tmp_path: Path) -> None:
    store = kind.open(RocksSpec(tmp_path / "state"))
    try:
        assert store.durable == kind.durable
    finally:
        store.close()


def test_a_store_that_settings_know_and_nobody_opens_is_an_error_and_no_other_store() -> None:
    plain = Settings(**MINIMAL)
    settings = plain.model_copy(update={"state": plain.state.model_copy(update={"kind": "tape"})})
    with pytest.raises(SettingsError, match=r"state\.kind: expected one of memory, rocksdb, got 'tape'"):
        open_store(settings)
