"""A state of an older schema is converted when it is opened: each step once, wherever a crash comes."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from rocksdict import WriteBatch

from streamwatch.admin.capacity import state_dir_status
from streamwatch.core.ports import CommitBatch
from streamwatch.edge.stores.kind import StateNewer, StateRefused
from streamwatch.edge.stores.rocksdb import RocksStore, exporting, opening
from streamwatch.edge.stores.rocksdb.database import SCHEMA, SECTION_PREFIX, Database
from streamwatch.edge.stores.rocksdb.inspect import Inspection
from streamwatch.edge.stores.rocksdb.opening import Format, read_format
from tests.edge.stores.rocksdb.stream import rocks_spec

COUNT, TOTAL = SECTION_PREFIX + b"count", SECTION_PREFIX + b"total"


class Crash(Exception):  # noqa: N818 - it names what happens
    """The process ends here."""


def doubled(database: Database, batch: WriteBatch) -> None:
    """The count is in halves from the next schema on: made twice, it shows."""
    value = database.get("meta", COUNT)
    assert value is not None
    database.into("meta", batch)
    batch[COUNT] = str(2 * int(value)).encode()


def renamed(database: Database, batch: WriteBatch) -> None:
    """The count is called total from the next schema on."""
    value = database.get("meta", COUNT)
    assert value is not None
    database.into("meta", batch)
    batch[TOTAL] = value
    batch.delete(COUNT)


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A state of this program's schema."""
    store = RocksStore.open(rocks_spec(tmp_path / "state"))
    store.commit(CommitBatch({"count": b"21", "other": b"kept"}))
    store.close()
    return tmp_path / "state"


def upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this the program of two schemas later."""
    for module in (opening, exporting):
        monkeypatch.setattr(module, "SCHEMA", SCHEMA + 2)
    monkeypatch.setattr(opening, "CONVERSIONS", {SCHEMA: doubled, SCHEMA + 1: renamed})


def sections(directory: Path) -> dict[str, bytes]:
    store = RocksStore.open(rocks_spec(directory))
    try:
        return dict(store.load().sections)
    finally:
        store.close()


def assert_converted(directory: Path) -> None:
    for _ in range(2):
        assert sections(directory) == {"total": b"42", "other": b"kept"}
        written = read_format(directory)
        assert written is not None
        assert written == Format(SCHEMA + 2, written.identity)


def test_every_step_between_is_made_once(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade(monkeypatch)
    assert_converted(older)


@pytest.mark.parametrize("stop", range(5))
def test_a_crash_anywhere_leaves_each_step_whole_or_undone_and_older_programs_refuse_it(
    older: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    """Steps: before the format is raised, before either step, after both, before the format says so."""
    done = 0

    def until_the_step(call: Callable[..., None]) -> Callable[..., None]:
        def made(*arguments: object) -> None:
            nonlocal done
            if done == stop:
                raise Crash
            done += 1
            call(*arguments)

        return made

    with monkeypatch.context() as process:
        upgrade(process)
        steps = {SCHEMA: until_the_step(doubled), SCHEMA + 1: until_the_step(renamed)}
        process.setattr(opening, "CONVERSIONS", steps)
        process.setattr(opening, "write_format", until_the_step(opening.write_format))
        if stop < 4:
            with pytest.raises(Crash):
                RocksStore.open(rocks_spec(older))
        else:
            assert_converted(older)
    if stop > 0:
        with pytest.raises(StateNewer):
            RocksStore.open(rocks_spec(older))
    upgrade(monkeypatch)
    if 0 < stop < 4:
        with pytest.raises(StateRefused, match=f"has schema {SCHEMA}, .*`streamwatch run` converts it"):
            Inspection(older)
    assert_converted(older)


def test_whoever_only_looks_changes_nothing_and_check_reports_what_run_will_do(
    older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(monkeypatch)
    monkeypatch.setattr("streamwatch.admin.capacity.SCHEMA", SCHEMA + 2)
    before = {path.name: path.read_bytes() for path in older.iterdir() if path.is_file()}
    with pytest.raises(StateRefused, match="`streamwatch run` converts it"):
        Inspection(older)
    assert f"converts it from schema {SCHEMA} to {SCHEMA + 2}" in state_dir_status(older).text
    assert {path.name: path.read_bytes() for path in older.iterdir() if path.is_file()} == before


def test_an_export_of_an_older_schema_is_imported_and_converted_when_it_is_opened(
    older: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = BytesIO()
    inspection = Inspection(older)
    try:
        exporting.export_state(inspection, file)
    finally:
        inspection.close()
    upgrade(monkeypatch)
    file.seek(0)
    exporting.import_state(file, tmp_path / "imported")
    assert_converted(tmp_path / "imported")


def test_a_state_for_which_a_step_is_missing_is_refused(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade(monkeypatch)
    monkeypatch.setattr(opening, "CONVERSIONS", {SCHEMA + 1: renamed})
    with pytest.raises(StateRefused, match=f"has schema {SCHEMA}, this program reads {SCHEMA + 2}"):
        RocksStore.open(rocks_spec(older))
    written = read_format(older)
    assert written is not None
    assert written == Format(SCHEMA, written.identity)
