"""Backups of an open state: when they are due, what becomes of the older ones, and of what fails."""

from __future__ import annotations

import asyncio
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from streamwatch.core.ports import CommitBatch
from streamwatch.daemon.backups import Backups, BackupsSpec
from streamwatch.edge.stores.kind import StateFailed
from streamwatch.edge.stores.rocksdb import RocksStore
from streamwatch.edge.stores.rocksdb.exporting import backup_name, backups_in
from streamwatch.edge.stores.rocksdb.opening import RocksSpec
from streamwatch.telemetry import BackupFailed, BackupMade, BackupSkipped, InternalEvent


@pytest.fixture
def store(tmp_path: Path):
    store = RocksStore.open(RocksSpec(tmp_path / "state"))
    yield store
    store.close()


class Made:
    """Backups of a store, and a clock that stands."""

    def __init__(self, store: RocksStore, directory: Path, **choices: object) -> None:
        self.events: list[InternalEvent] = []
        self.now = 1_000_000.0
        self.store = store
        self.spec = BackupsSpec(directory, **choices)  # type: ignore[arg-type]
        self.backups = Backups(self.spec, self.events.append, lambda: self.now)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                self.backups.look(self.store)
                await asyncio.sleep(0.001)

    async def one(self) -> None:
        before = len(self.events)
        self.backups.ask()
        await self.until(lambda: len(self.events) > before)
        self.now += 1

    def figures(self) -> dict[str, float]:
        return {family.name: family.samples[0][1] for family in self.backups.families() if family.samples}


async def test_a_backup_holds_the_last_commit_and_nothing_after_it(store, tmp_path):
    store.commit(CommitBatch({"one": b"1"}, publications={1: b"published"}))
    made = Made(store, tmp_path / "backups")
    await made.one()
    store.commit(CommitBatch({"one": b"2"}, publications={1: None}))
    [copy] = backups_in(tmp_path / "backups")
    assert copy.name == backup_name(1_000_000.0)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700
    opened = RocksStore.open(RocksSpec(copy))
    saved = opened.load()
    assert (saved.commits, saved.sections, saved.publications) == (1, {"one": b"1"}, {1: b"published"})
    assert opened.identity == store.identity
    opened.close()
    assert store.load().sections == {"one": b"2"}
    assert [type(each) for each in made.events] == [BackupMade]
    assert made.figures()["last_backup_timestamp_seconds"] == 1_000_000.0


async def test_only_the_newest_backups_are_kept(store, tmp_path):
    made = Made(store, tmp_path / "backups", kept=2)
    (tmp_path / "backups").mkdir()
    (tmp_path / "backups" / "notes").write_text("somebody's")
    for _ in range(4):
        await made.one()
    kept = [backup_name(1_000_002.0), backup_name(1_000_003.0)]
    assert sorted(path.name for path in (tmp_path / "backups").iterdir()) == ["notes", *kept]
    assert made.figures()["backups_total"] == 4


async def test_older_backups_are_removed_where_every_command_fails(store, tmp_path):
    made = Made(store, tmp_path / "backups", kept=2, command=(str(tmp_path / "absent"),))
    for _ in range(4):
        await made.one()
    kept = [backup_name(1_000_002.0), backup_name(1_000_003.0)]
    assert sorted(path.name for path in (tmp_path / "backups").iterdir()) == kept


async def test_backups_are_due_at_intervals_counted_from_the_newest_that_is_there(store, tmp_path):
    made = Made(store, tmp_path / "backups", interval_seconds=60.0)
    await made.until(lambda: len(made.events) == 1)  # there is none yet
    again = Made(store, tmp_path / "backups", interval_seconds=60.0)
    again.now += 59
    for _ in range(20):
        again.backups.look(store)
        await asyncio.sleep(0.001)
    assert again.events == []
    again.now += 1
    await again.until(lambda: len(again.events) == 1)
    assert len(backups_in(tmp_path / "backups")) == 2


async def test_a_command_is_given_the_backup_and_its_failure_is_that_of_the_backup(store, tmp_path):
    program = "import sys, os; print(sorted(os.listdir(sys.argv[1])), file=sys.stderr); sys.exit(3)"
    made = Made(store, tmp_path / "backups", command=(sys.executable, "-c", program))
    await made.one()
    [failed] = made.events
    assert isinstance(failed, BackupFailed)
    assert "state.backups.command ended with 3" in failed.error
    assert "format.json" in failed.error
    assert len(backups_in(tmp_path / "backups")) == 1
    assert (made.figures()["backups_total"], made.figures()["backups_failed_total"]) == (0, 1)


async def test_a_command_that_hangs_is_ended(store, tmp_path):
    program = "import time; time.sleep(600)"
    made = Made(store, tmp_path / "b", command=(sys.executable, "-c", program), command_seconds=0.2)
    await made.one()
    [failed] = made.events
    assert isinstance(failed, BackupFailed)
    assert failed.error.startswith("state.backups.command was killed for ")
    assert failed.error.endswith("expected it to end within 0.2 s")


async def test_a_command_that_is_not_there_is_named_by_its_setting(store, tmp_path):
    made = Made(store, tmp_path / "b", command=(str(tmp_path / "absent"),))
    await made.one()
    [failed] = made.events
    assert isinstance(failed, BackupFailed)
    assert failed.error.startswith("state.backups.command cannot be run for ")
    assert "absent" in failed.error


async def test_a_copy_that_fails_leaves_nothing_that_looks_like_a_backup(store, tmp_path, monkeypatch):
    def fails(directory: Path) -> None:
        directory.mkdir()
        raise StateFailed("no space left")

    monkeypatch.setattr(store, "copy_to", fails)
    made = Made(store, tmp_path / "backups")
    await made.one()
    assert made.events == [BackupFailed("no space left")]
    assert list((tmp_path / "backups").iterdir()) == []
    monkeypatch.undo()
    made.now -= 1
    await made.one()
    assert len(backups_in(tmp_path / "backups")) == 1


async def test_what_a_crash_left_of_a_backup_is_removed_and_nothing_else(store, tmp_path):
    folder = tmp_path / "backups"
    for name in ("state-20250101T000000.000000Z.part", "state-20250101T000000.000000Z.part.tmp", "my.part"):
        (folder / name).mkdir(parents=True)
        (folder / name / "000001.sst").touch()
    await Made(store, folder).one()
    assert sorted(path.name for path in folder.iterdir()) == ["my.part", backups_in(folder)[0].name]


def test_asked_for_without_a_directory_it_says_what_to_set():
    events: list[InternalEvent] = []
    backups = Backups(None, events.append)
    backups.ask()
    assert events == [BackupSkipped("state.backups.directory is not set")]
    assert backups.families() == ()
