"""`streamwatch state verify` finds every alteration, and passes what is sound."""

from __future__ import annotations

import re

import msgspec
import pytest

from streamwatch.core.join.durable.packed import CLASS, MODEL, parts_of
from streamwatch.core.pipeline.checkpoint import ModelCheckpoint
from streamwatch.core.pipeline.journal import JournalPosition
from streamwatch.daemon import POSITIONS
from streamwatch.edge.stores.rocksdb.database import SECTION_PREFIX, number_key
from tests.core.join.join_stream import predict
from tests.edge.stores.rocksdb.open_copy import copy_while_open
from tests.edge.stores.rocksdb.stream import digested
from tests.edge.stores.rocksdb.written_state import Life, altering, contents, put


def test_a_sound_state_passes_every_check_and_is_not_changed(streamwatch, directory):
    before = contents(directory)
    code, out, err = streamwatch("verify", "-d", directory)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert all(line.startswith("✓ ") for line in lines)
    for shown in (
        "✓ positions: 2 partitions",
        "✓ alarms: 1 open, 1 notifications in the outbox",
    ):
        assert shown in lines
    assert any(re.fullmatch(r"✓ models: [1-9] snapshots restored, 0 retired", line) for line in lines)
    assert any(re.fullmatch(r"✓ journal: [1-9]\d* outcomes of [1-9]\d* commits", line) for line in lines)
    entries = "✓ entries: 99 predictions and 3 labels wait, 151 dedup entries, "
    assert any(line.startswith(entries) for line in lines)
    assert contents(directory) == before


def drop(family, nth=0):
    def change(database):
        key = [key for key, _ in database.items(family)][nth]
        put(database, family, key, None)

    return change


def write(family, key, value):
    return lambda database: put(database, family, key, value)


def cut_short(family):
    def change(database):
        key, value = max(database.items(family), key=lambda item: len(item[1]))
        put(database, family, key, value[: len(value) // 2])

    return change


def emptied(kind):
    """The first name of a kind that the join numbers is an empty text."""

    def change(database):
        key = next(key for key, value in database.items("columns") if parts_of(key)[0] == kind and value)
        put(database, "columns", key, b"")

    return change


def another_model(database):
    key, value = next(database.items("models"))
    put(database, "models", key, None)
    put(database, "models", b"other", value)


def altered_snapshot(database):
    """One counter of the estimators' sections is another; the bytes still decode."""
    key, value = next((k, v) for k, v in database.items("models") if len(v) > 50)
    kept = msgspec.msgpack.decode(value, type=ModelCheckpoint)
    snapshot = kept.snapshot.replace(b"\xa8first_ms", b"\xa8last__ms")
    put(database, "models", key, msgspec.msgpack.encode(ModelCheckpoint(kept.position, snapshot)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "check", "shown"),
    [
        (drop("columns"), "entries", "expected"),
        (drop("columns", -1), "entries", "expected"),
        (cut_short("columns"), "entries", "(expected|cannot be decoded)"),
        (write("meta", SECTION_PREFIX + b"pipeline", None), "sections", "the section 'pipeline' is missing"),
        (write("meta", SECTION_PREFIX + b"positions", None), "positions", "KeyError: 'positions'"),
        (write("meta", SECTION_PREFIX + b"pipeline", b"\x93"), "entries", "cannot be decoded"),
        (
            write(
                "meta",
                SECTION_PREFIX + POSITIONS.encode(),
                msgspec.msgpack.encode({"partitions": [("labels", 0, 7)]}),
            ),
            "positions",
            r"predictions\[0\] was evaluated up to another offset",
        ),
        (emptied(MODEL), "entries", r"the value under [0-9a-f]+ cannot be read: expected a name, got"),
        (emptied(CLASS), "entries", r"the value under [0-9a-f]+ cannot be read: expected a name, got"),
        (write("models", b"", b"\x92\x91\x01\xc0"), "models", "what is kept of model '' cannot be decoded"),
        (cut_short("journal"), "journal", r"entry \d+ cannot be decoded"),
        (write("journal", number_key(99), b"\x90"), "journal", "entry 99 is of no commit up to 11"),
        (cut_short("models"), "models", "what is kept of model 'm' cannot be decoded"),
        (another_model, "models", "the snapshot kept of model 'other' is of 'm'"),
        (altered_snapshot, "models", "missing required field `first_ms`"),
        (
            write("models", b"z", msgspec.msgpack.encode(ModelCheckpoint(JournalPosition(99), None))),
            "models",
            "model 'z' is of commit 99, later than the last",
        ),
        (write("meta", SECTION_PREFIX + b"settings", b"\x92\xc4\x02{}\x80"), "models", "of the estimators"),
        (cut_short("outbox"), "alarms", "a notification of the outbox cannot be decoded"),
        (
            write("meta", SECTION_PREFIX + b"alarms", b"\x80"),
            "alarms",
            "the book of alarms cannot be decoded",
        ),
    ],
)
def test_every_single_alteration_is_found_by_its_check(streamwatch, directory, change, check, shown):
    with altering(directory) as database:
        change(database)
    code, out, err = streamwatch("verify", "-d", directory)
    assert code == 2
    assert re.search(rf"^✗ {check}: .*\n(  .*\n)*  .*{shown}", out, re.MULTILINE), out
    assert "restore a backup" in err


def test_flipped_bits_of_a_file_are_found_and_the_file_is_named(streamwatch, directory):
    largest = max(directory.glob("*.sst"), key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[200] ^= 1
    largest.write_bytes(content)
    code, out, _ = streamwatch("verify", "-d", directory)
    assert code == 2
    assert "✗ files: cannot all be read\n" in out
    assert largest.name in out


def test_what_a_log_no_longer_holds_is_stated_with_the_commit_it_goes_back_to(streamwatch, tmp_path):
    life = Life(tmp_path / "open")
    for n in range(5):
        life.feed(*digested([predict(str(n), at=n)]))
        life.commit()
    copy = copy_while_open(tmp_path / "open", tmp_path / "copy")
    life.store.close()
    log = max(copy.glob("*.log"))
    content = bytearray(log.read_bytes())
    content[len(content) * 3 // 4] ^= 1
    log.write_bytes(content)
    code, out, _ = streamwatch("verify", "-d", copy)
    assert code == 2
    assert re.match(r"✗ write-ahead log: counts up to commit [1-4]\n", out)
    assert all(line.startswith("✓") for line in out.splitlines()[2:])
