"""States that versions have written show the same numbers here, and come to the same ones when they go on."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from streamwatch.admin.state_transfer import import_from
from streamwatch.edge.stores.kind import StateNewer
from streamwatch.edge.stores.rocksdb.database import SCHEMA
from streamwatch.edge.stores.rocksdb.opening import read_format, write_format
from tests.assembly.lives import Life
from tests.upgrade.stored import SETTINGS, lived, stored

pytestmark = pytest.mark.slow


def of(directory: Path, export: Path) -> Path:
    """A state that was imported."""
    import_from(export, directory, lambda _entries, _bytes: None)
    return directory


def is_same(found: str, stored: str) -> bool:
    """Tell whether a number is the stored one, up to what processors round otherwise; texts are compared."""
    if found == stored:
        return True
    try:
        return float(found) == pytest.approx(float(stored), rel=1e-9, abs=1e-12)
    except ValueError:
        return False


@pytest.mark.parametrize("export", stored(), ids=lambda path: path.stem)
def test_a_stored_state_shows_its_numbers_and_goes_on_to_the_same(export: Path, tmp_path: Path) -> None:
    expected = json.loads(export.with_suffix(".json").read_text())
    first, last = lived(of(tmp_path / "state", export))
    for found, numbers in ((first, expected["opened"]), (last, expected["gone_on"])):
        assert numbers.keys() <= found.keys()
        differing = {name for name, text in numbers.items() if not is_same(found[name], text)}
        assert differing == set()
    moved = {name for name, value in expected["gone_on"].items() if expected["opened"].get(name) != value}
    assert len(moved) > 100, "what follows has to change something"
    assert any(name.startswith("comparison_lead") for name in moved)


def test_there_is_one_of_the_schema_that_is_written_now() -> None:
    assert [path for path in stored() if path.stem.endswith(f"-schema-{SCHEMA}")]


def test_a_newer_state_is_refused_by_name_and_stays_as_it_is(tmp_path: Path) -> None:
    directory = of(tmp_path / "state", stored()[-1])
    format_of = read_format(directory)
    assert format_of is not None
    write_format(directory, msgspec.structs.replace(format_of, schema=SCHEMA + 1))
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    with pytest.raises(StateNewer, match=rf"schema {SCHEMA + 1}, this program knows up to {SCHEMA}"):
        Life(SETTINGS, directory)
    after = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert {name: after.get(name) for name in before} == before
