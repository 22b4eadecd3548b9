"""Directories the durable store opens, and those it refuses, with the errors for the operator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from streamwatch.core.ports import CommitBatch
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.stores.kind import StateDamaged, StateFailed, StateInUse, StateNewer, StateRefused
from streamwatch.edge.stores.rocksdb import RocksStore
from streamwatch.edge.stores.rocksdb.database import SCHEMA, translated
from streamwatch.edge.stores.rocksdb.inspect import Inspection
from streamwatch.edge.stores.rocksdb.opening import FORMAT, read_format
from tests.edge.stores.rocksdb.stream import DurableStream, digested, rocks_spec
from tests.edge.stores.rocksdb.test_store import pairs

HOLDER = """
import sys
from pathlib import Path
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
store = RocksStore.open(RocksSpec(Path(sys.argv[1])))
print("open", flush=True)
sys.stdin.read()
"""

FULL = """
import resource, signal, sys
from pathlib import Path
from streamwatch.core.ports import CommitBatch
from streamwatch.edge.stores.kind import StateFailed
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
spec = RocksSpec(Path(sys.argv[1]))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = RocksStore.open(spec)
store.commit(CommitBatch({"kept": b"first"}))
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
failed = None
try:
    for number in range(10):
        store.commit(CommitBatch({"lost": bytes(30_000)}))
        store.flush()
except StateFailed as error:
    failed = error
assert failed is not None
store.close()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store = RocksStore.open(spec)  # while the error, and with it the frames of the commit, is still there
saved = store.load()
print(saved.commits - 1, number, saved.sections["kept"].decode(), failed)
store.commit(CommitBatch())
store.close()
"""


@pytest.fixture
def spec(tmp_path):
    return rocks_spec(tmp_path / "state")


def filled(spec):
    stream = DurableStream(spec.directory, JoinSpec())
    for start in range(0, 2000, 500):
        stream.feed(*digested(pairs(start, 500)))
        stream.commit()
    stream.store._database.compact()
    stream.store.close()
    return stream


def contents(directory):
    return {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in directory.iterdir()}


def test_a_directory_another_process_has_open_is_in_use(spec):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(spec.directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(StateInUse, match=str(spec.directory)):
            RocksStore.open(spec)
        holder.stdin.close()
    RocksStore.open(spec).close()


def test_a_newer_schema_is_refused_and_not_touched(spec):
    filled(spec)
    path = spec.directory / FORMAT
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": SCHEMA + 1, "further": True}))
    before = contents(spec.directory)
    with pytest.raises(StateNewer, match=f"has schema {SCHEMA + 1}, this program knows up to {SCHEMA}"):
        RocksStore.open(spec)
    with pytest.raises(StateNewer):
        Inspection(spec.directory)
    assert contents(spec.directory) == before


def test_an_older_schema_is_refused_and_not_touched(spec):
    filled(spec)
    path = spec.directory / FORMAT
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 4}))
    before = contents(spec.directory)
    for look in (lambda: RocksStore.open(spec), lambda: Inspection(spec.directory)):
        with pytest.raises(
            StateRefused,
            match=rf"has schema 4, this program reads {SCHEMA} and nothing older.*; nothing was changed",
        ):
            look()
    assert contents(spec.directory) == before


def test_a_directory_of_something_else_is_refused(spec):
    spec.directory.mkdir()
    (spec.directory / "holiday.jpg").write_bytes(b"")
    with pytest.raises(StateRefused, match=r"holds no state \(there is 'holiday.jpg'\)"):
        RocksStore.open(spec)
    assert [path.name for path in spec.directory.iterdir()] == ["holiday.jpg"]


def test_a_directory_whose_making_was_interrupted_is_made_again(spec):
    RocksStore.open(spec).close()
    (spec.directory / FORMAT).unlink()
    store = RocksStore.open(spec)
    assert store.load().commits == 0
    store.close()


def test_a_state_without_its_format_or_its_database_is_damaged(spec):
    filled(spec)
    (spec.directory / FORMAT).rename(spec.directory / "elsewhere")
    with pytest.raises(StateDamaged, match=r"format\.json is missing"):
        RocksStore.open(spec)
    (spec.directory / "elsewhere").rename(spec.directory / FORMAT)
    (spec.directory / "CURRENT").unlink()
    with pytest.raises(StateDamaged, match="CURRENT is missing"):
        RocksStore.open(spec)


def test_a_format_beside_the_database_of_another_state_is_damaged(spec):
    filled(spec)
    (spec.directory / FORMAT).write_text(f'{{"schema": {SCHEMA}, "identity": "another"}}')
    with pytest.raises(StateDamaged, match="names another"):
        RocksStore.open(spec)
    (spec.directory / FORMAT).write_text('{"sche')
    with pytest.raises(StateDamaged, match="not readable"):
        RocksStore.open(spec)


def test_flipped_bits_are_damage_and_the_file_is_named(spec):
    filled(spec)
    files = sorted(spec.directory.glob("*.sst"), key=lambda path: path.stat().st_size)
    largest = files[-1]
    content = bytearray(largest.read_bytes())
    for offset in range(100, len(content) - 4000, 1000):
        content[offset] ^= 1
    largest.write_bytes(content)
    with pytest.raises(StateDamaged, match=largest.name):
        read_everything(spec)


def read_everything(spec):
    store = RocksStore.open(spec)
    try:
        list(store.load().columns)
    finally:
        store.close()


def test_a_lost_file_is_damage_and_named(spec):
    filled(spec)
    lost = max(spec.directory.glob("*.sst"), key=lambda path: path.stat().st_size)
    lost.unlink()
    with pytest.raises(StateDamaged, match=lost.name):
        read_everything(spec)


def test_a_torn_tail_of_the_log_loses_only_what_was_torn(spec):
    stream = DurableStream(spec.directory, JoinSpec())
    stream.feed(*digested(pairs(0, 10)))
    stream.commit()
    log = max(spec.directory.glob("*.log"))
    whole = log.stat().st_size
    stream.feed(*digested(pairs(10, 10)))
    stream.commit()
    torn = (whole + log.stat().st_size) // 2
    other = spec.directory.with_name("copy")
    other.mkdir()
    for path in spec.directory.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    os.truncate(other / log.name, torn)
    stream.store.close()
    store = RocksStore.open(replace(spec, directory=other))
    assert store.load().commits == 1
    store.close()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("IO error: No space left on device: While appending to file: /s/000012.log", StateFailed),
        ("IO error: Input/output error: While fsync: /s/000012.log", StateFailed),
        ("Corruption: block checksum mismatch in /s/000007.sst offset 0 size 24", StateDamaged),
        ("IO error: While lock file: /s/LOCK: Resource temporarily unavailable", StateInUse),
        ("IO error: lock hold by current process, acquire time 1: /s/LOCK: No locks available", StateInUse),
    ],
)
def test_what_rocksdb_says_becomes_an_error_to_act_on(text, kind, tmp_path):
    assert type(translated(Exception(text), tmp_path)) is kind


def test_an_error_that_is_not_of_the_database_stays_what_it_is(tmp_path):
    bug = TypeError("a bug")
    assert translated(bug, tmp_path) is bug


def test_a_closed_store_can_be_closed_again(spec):
    store = RocksStore.open(spec)
    store.commit(CommitBatch())
    store.close()
    store.close()


def test_after_a_failed_write_the_state_is_opened_anew_where_a_commit_left_it(spec):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(spec.directory)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    there, tried, kept, *message = done.stdout.split()
    assert int(there) in (int(tried), int(tried) + 1)
    assert kept == "first"
    assert "could not be read or written: IO error" in " ".join(message)


@pytest.mark.parametrize("written", [b'{"schema": 1, "identity": "\xff"}', b'{"x": ' + b"[" * 100_000])
def test_a_format_that_is_no_text_or_too_deep_is_damage(tmp_path, written):
    (tmp_path / FORMAT).write_bytes(written)
    with pytest.raises(StateDamaged, match=r"format\.json is not readable"):
        read_format(tmp_path)
