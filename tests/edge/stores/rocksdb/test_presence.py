"""The directory of the state: nobody else may look in, and it is noticed when it is gone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from streamwatch.core.ports import CommitBatch
from streamwatch.edge.stores.kind import StateGone
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from streamwatch.edge.stores.rocksdb.opening import FreeSpace
from tests.edge.stores.rocksdb.open_copy import copy_while_open


def opened(directory: Path) -> RocksStore:
    return RocksStore.open(RocksSpec(directory))


def test_a_directory_that_is_made_is_nobody_else_s(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        opened(tmp_path / "state").close()
    finally:
        os.umask(umask)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_what_is_flushed_into_a_directory_that_was_removed_is_not_called_durable(tmp_path: Path) -> None:
    store = opened(tmp_path / "state")
    store.commit(CommitBatch({"section": b"1"}))
    store.flush()
    shutil.rmtree(tmp_path / "state")
    store.commit(CommitBatch({"section": b"2"}))
    with pytest.raises(StateGone, match="removed or replaced while the daemon ran"):
        store.flush()
    store.close()


def test_another_directory_instead_of_it_is_not_the_same(tmp_path: Path) -> None:
    store = opened(tmp_path / "state")
    copy_while_open(tmp_path / "state", tmp_path / "copy")
    (tmp_path / "state").rename(tmp_path / "moved")
    (tmp_path / "copy").rename(tmp_path / "state")
    store.commit(CommitBatch({"section": b"1"}))
    with pytest.raises(StateGone):
        store.flush()
    store.close()


def test_a_directory_moved_away_and_put_back_is_the_same(tmp_path: Path) -> None:
    store = opened(tmp_path / "state")
    (tmp_path / "state").rename(tmp_path / "moved")
    (tmp_path / "moved").rename(tmp_path / "state")
    store.commit(CommitBatch({"section": b"1"}))
    store.flush()
    store.close()


def test_it_is_noticed_without_a_commit_too(tmp_path: Path) -> None:
    space = FreeSpace(tmp_path / "state", 1)
    with pytest.raises(StateGone):
        space.is_low()
