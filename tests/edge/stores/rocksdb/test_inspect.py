"""Looking at a state changes nothing of it, be a daemon writing to it or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamwatch.core.specs import JoinSpec
from streamwatch.edge.stores.kind import StateDamaged, StateFailed, StateInUse, StateRefused
from streamwatch.edge.stores.rocksdb import RocksStore
from streamwatch.edge.stores.rocksdb.inspect import Inspection
from streamwatch.edge.stores.rocksdb.opening import holder, keep_closed
from tests.core.join.join_stream import predict
from tests.edge.stores.rocksdb.stream import DurableStream, digested, rocks_spec
from tests.edge.stores.rocksdb.test_opening import HOLDER
from tests.edge.stores.rocksdb.written_state import contents

OPENER = """
import sys
from pathlib import Path
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
try:
    RocksStore.open(RocksSpec(Path(sys.argv[1])))
except Exception as error:
    print(type(error).__name__)
"""


@pytest.fixture
def directory(tmp_path):
    stream = DurableStream(tmp_path / "state", JoinSpec())
    for start in range(0, 300, 100):
        stream.feed(*digested(predict(str(n), at=n) for n in range(start, start + 100)))
        stream.commit()
    stream.store.close()
    return tmp_path / "state"


@pytest.fixture
def running(directory):
    """A process that has the state open."""
    holding = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holding:
        assert holding.stdout.readline() == b"open\n"
        yield holding
        holding.stdin.close()


def read_all(state):
    try:
        return sum(1 for family in ("columns", "meta") for _ in state.items(family))
    finally:
        state.close()


def test_nothing_of_the_directory_changes(directory):
    before = contents(directory)
    assert read_all(Inspection(directory)) > 6
    assert read_all(Inspection(directory, closed=True, whole_log=True)) > 6
    assert contents(directory) == before


def test_a_directory_that_cannot_be_written_can_be_looked_at(directory):
    for path in directory.iterdir():
        path.chmod(0o400)
    directory.chmod(0o500)
    try:
        assert read_all(Inspection(directory)) > 6
    finally:
        directory.chmod(0o700)


def test_a_running_daemon_is_named_and_its_state_can_be_looked_at(directory, running):
    before = contents(directory)
    state = Inspection(directory)
    assert state.process == running.pid
    assert read_all(state) > 6
    assert contents(directory) == before


def test_what_must_be_closed_is_refused_while_a_daemon_runs(directory, running):
    with pytest.raises(StateInUse, match=f"in use by process {running.pid}: stop the daemon first"):
        Inspection(directory, closed=True)


@pytest.mark.slow
def test_a_daemon_cannot_start_while_a_closed_state_is_looked_at(directory):
    def started():
        command = [sys.executable, "-c", OPENER, str(directory)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    state = Inspection(directory, closed=True)
    assert started() == "StateInUse"
    state.close()
    assert started() == ""


def test_several_may_look_at_once(directory):
    first, second = keep_closed(directory), keep_closed(directory)
    assert holder(directory) is None
    os.close(first)
    os.close(second)


def test_no_links_are_left_behind(directory, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    read_all(Inspection(directory))
    (directory / "CURRENT").write_text("MANIFEST-999999\n")
    with pytest.raises((StateDamaged, StateFailed)):
        Inspection(directory)
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_damage_names_the_file_itself_not_the_link_to_it(directory):
    lost = max(directory.glob("*.sst"), key=lambda path: path.stat().st_size)
    lost.unlink()
    with pytest.raises(StateDamaged, match=str(lost)) as damage:
        read_all(Inspection(directory))
    assert "streamwatch-state-" not in str(damage.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.touch, "there is no directory"),
        (Path.mkdir, r"there is no state in .*: it has no format\.json"),
    ],
)
def test_what_is_no_state_is_refused(tmp_path, make, message):
    make(tmp_path / "absent")
    with pytest.raises(StateRefused, match=message):
        Inspection(tmp_path / "absent")
    with pytest.raises(StateRefused, match="there is no directory"):
        Inspection(tmp_path / "elsewhere")


def test_a_log_damaged_before_its_end_is_refused_only_where_it_must_be_whole(tmp_path):
    stream = DurableStream(tmp_path / "open", JoinSpec())
    for start in range(0, 300, 100):
        stream.feed(*digested(predict(str(n), at=n) for n in range(start, start + 100)))
        stream.commit()
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in (tmp_path / "open").iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    stream.store.close()
    log = max(copy.glob("*.log"))
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    with pytest.raises(StateDamaged, match=r"\.log|checksum"):
        Inspection(copy, whole_log=True)
    state = Inspection(copy)
    assert state.manifest.commits < 3
    state.close()
    content[len(content) // 2] ^= 1
    log.write_bytes(content[:-10])
    state = Inspection(copy, whole_log=True)
    assert state.manifest.commits == 2
    state.close()


def test_a_state_just_made_can_be_looked_at(tmp_path):
    RocksStore.open(rocks_spec(tmp_path / "state")).close()
    state = Inspection(tmp_path / "state")
    assert state.manifest.commits == 0
    assert state.identity
    state.close()
