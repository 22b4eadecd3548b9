"""`streamwatch state` as an operator meets it: what it shows, finds wrong, moves and refuses."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import msgspec
import pytest
from typer.testing import CliRunner

from streamwatch.cli import app
from streamwatch.core.commit.checkpoint import ModelCheckpoint
from streamwatch.core.commit.journal import JournalPosition
from streamwatch.daemon import POSITIONS
from streamwatch.edge.stores.rocksdb.directory.meta import StoreManifest, encoded, names_of
from streamwatch.edge.stores.rocksdb.directory.opening import FORMAT
from streamwatch.edge.stores.rocksdb.keys import SECTION_PREFIX, STATE_KEY, name_key, number_key
from tests.core.join.join_stream import label, predict
from tests.edge.stores.rocksdb.directory.test_opening import HOLDER
from tests.edge.stores.rocksdb.stream import digested
from tests.edge.stores.rocksdb.written_state import ESTIMATORS, Life, altering, contents, put, written_state


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    directory = tmp_path_factory.mktemp("written") / "state"
    written_state(directory)
    return directory


@pytest.fixture
def directory(original, tmp_path):
    """A copy of a state that holds something of every kind."""
    return shutil.copytree(original, tmp_path / "state")


@pytest.fixture
def streamwatch(tmp_path, monkeypatch):
    """Runs a command in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        result = CliRunner().invoke(app, ["state", *map(str, arguments)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return run


@pytest.mark.parametrize("command", ["show", "verify", "export", "import", "migrate"])
def test_the_help_of_each_command_teaches_by_an_example(streamwatch, command):
    code, out, _ = streamwatch(command, "--help")
    assert code == 0
    assert f"streamwatch state {command}" in re.sub(r"\x1b\[[0-9;]*m", "", out).split("╭")[0]


def test_show_tells_whose_state_it_is_how_far_it_has_read_and_what_waits(streamwatch, directory):
    before = contents(directory)
    code, out, _ = streamwatch("show", "--directory", directory)
    assert code == 0, out
    identity = json.loads((directory / FORMAT).read_text())["identity"]
    for said in (
        f"{identity} in {directory}",
        "schema 4, 11 commits",
        "predictions[0] at 413",
        "1970-01-01 00:00:18 UTC",
        "1 with a model; 2 without, 1 unmatched",
        "m: page_hinkley, warning, since 1970-01-01 00:00:05 UTC",
        "1 to chat, 1 to oncall",
        "landmark",
    ):
        assert said in out
    assert contents(directory) == before


def test_show_as_json_has_every_number(streamwatch, directory):
    code, out, _ = streamwatch("show", "--directory", directory, "--json")
    assert code == 0
    seen = json.loads(out)
    assert seen["in_use_by"] is None
    assert {model["model"]: model["pending"] for model in seen["models"]} == {"m": 49, "n": 50}
    for model in seen["models"]:
        assert sum(model["ages"]) == model["pending"]
    assert len(seen["models"][0]["ages"]) == len(seen["age_bounds_seconds"]) + 1
    assert seen["models"][0]["oldest_seconds"] == pytest.approx(18.5 - 0.015)
    assert seen["positions"][1] == {"topic": "predictions", "partition": 0, "position": 413}
    assert seen["clock_ms"] == 18_500
    assert seen["labels"] == {"waiting": 1, "retained": 2, "unmatched": 1}
    assert seen["dedup_entries"] == 151
    assert seen["journal"]["outcomes"] > 0
    assert seen["models"][0]["snapshot_bytes"] > 0
    assert seen["outbox"] == {"chat": 1, "oncall": 1}
    assert seen["bytes"]["total"] >= sum(size for part, size in seen["bytes"].items() if part != "total")


def test_show_without_ages_is_asked_for_by_quick(streamwatch, directory):
    _, out, _ = streamwatch("show", "-d", directory, "--json", "--quick")
    model = json.loads(out)["models"][0]
    assert (model["ages"], model["oldest_seconds"], model["pending"]) == (None, None, 49)
    code, out, _ = streamwatch("show", "-d", directory, "--quick")
    assert code == 0
    assert "oldest" not in out


def test_the_directory_is_that_of_the_settings_unless_named(streamwatch, directory, tmp_path):
    (tmp_path / "streamwatch.yaml").write_text(f"state: {{directory: {directory}}}")
    assert streamwatch("show", "--quick")[0] == 0
    code, _, err = streamwatch("show", "-s", "state.kind=memory")
    assert code == 2
    assert err.startswith("state.kind is memory, so there is no state on disk")
    code, _, err = streamwatch("show", "-s", f"state.directory={tmp_path / 'absent'}")
    assert (code, err) == (2, f"there is no directory {tmp_path / 'absent'}\n")


def test_a_state_just_made_can_be_shown_and_verified(streamwatch, tmp_path):
    Life(tmp_path / "new").store.close()
    code, out, _ = streamwatch("show", "-d", tmp_path / "new")
    assert code == 0
    assert "schema 4, 0 commits" in out
    assert streamwatch("verify", "-d", tmp_path / "new")[0] == 0


@pytest.mark.parametrize("command", [["show"], ["verify"], ["export", "x.swx"], ["migrate"]])
def test_what_is_no_state_ends_every_command_with_exit_code_2(streamwatch, tmp_path, command):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "holiday.jpg").write_bytes(b"")
    code, _, err = streamwatch(*command, "-d", tmp_path / "pictures")
    assert (code, err) == (2, f"there is no state in {tmp_path / 'pictures'}: it has no format.json\n")
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["holiday.jpg"]
    assert not (tmp_path / "x.swx").exists()


@pytest.mark.slow
def test_while_a_daemon_runs_its_state_is_shown_and_nothing_else_done(streamwatch, directory):
    holding = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holding:
        assert holding.stdout.readline() == b"open\n"
        code, out, _ = streamwatch("show", "-d", directory)
        assert code == 0
        assert f"by process {holding.pid}: this is one of its latest commits" in out
        for command in (["verify"], ["export", "x.swx"]):
            code, _, err = streamwatch(*command, "-d", directory)
            assert code == 2
            assert f"in use by process {holding.pid}: stop the daemon first" in err
        holding.stdin.close()
    assert streamwatch("verify", "-d", directory)[0] == 0


# verify


def test_a_sound_state_passes_every_check_and_is_not_changed(streamwatch, directory):
    before = contents(directory)
    code, out, err = streamwatch("verify", "-d", directory)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert all(line.startswith("✓ ") for line in lines)
    for said in (
        "✓ records: 252 ids: 102 wait, 151 dedup entries",
        "✓ counters: 250 predictions and 153 labels accounted for",
        "✓ counted as found: 99 pending of 2 models",
        "✓ positions: 2 partitions",
        "✓ alarms: 1 open, 1 notifications in the outbox",
    ):
        assert said in lines
    assert any(re.fullmatch(r"✓ models: [1-9] snapshots restored, 0 retired", line) for line in lines)
    assert any(re.fullmatch(r"✓ journal: [1-9]\d* outcomes of [1-9]\d* commits", line) for line in lines)
    assert any(re.fullmatch(r"✓ outcomes held: [1-9]\d* wait for their order", line) for line in lines)
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
        key, value = next(database.items(family))
        put(database, family, key, value[: len(value) // 2])

    return change


def manifest_without_entries(database):
    value = database.get("meta", STATE_KEY)
    manifest = msgspec.msgpack.decode(value, type=StoreManifest)
    put(database, "meta", STATE_KEY, encoded(msgspec.structs.replace(manifest, entries=1)))


def without_last_name(database):
    put(database, "meta", name_key(len(names_of(database)) - 1), None)


def same_name_twice(database):
    """Names have their numbers in whatever order records were written."""
    put(database, "meta", name_key(4), names_of(database)[1].encode())


def another_model(database):
    key, value = next(database.items("models"))
    put(database, "models", key, None)
    put(database, "models", b"other", value)


def altered_snapshot(database):
    """One counter of the estimators' sections is another; the bytes still decode."""
    key, value = next((k, v) for k, v in database.items("models") if len(v) > 50)
    kept = msgspec.msgpack.decode(value, type=ModelCheckpoint)
    snapshot = kept.snapshot.replace(b"\xa8first_ms", b"\xa8last__ms")
    put(database, "models", key, msgspec.msgpack.encode(ModelCheckpoint(kept.place, snapshot)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "check", "said"),
    [
        (drop("entries"), "counted as found", r"the counters say \d+, the scan found \d+"),
        (drop("entries", 3), "counted as found", r"the counters say \d+, the scan found \d+"),
        (drop("expiry"), "index of deadlines", "and no entry of the index names it"),
        (drop("dedup"), "dedup", "lies in no dedup key of it"),
        (cut_short("entries"), "records", "cannot be decoded"),
        (manifest_without_entries, "index of deadlines", "of the index is none that was written"),
        (write("meta", name_key(1), None), "names", "name 1 is missing"),
        (without_last_name, "names", r"name \d+ is missing: there were \d+ at the last commit"),
        (same_name_twice, "names", "has 2 numbers"),
        (write("meta", SECTION_PREFIX + b"pipeline", None), "sections", "the section 'pipeline' is missing"),
        (write("meta", SECTION_PREFIX + b"positions", None), "positions", "KeyError: 'positions'"),
        (write("meta", SECTION_PREFIX + b"pipeline", b"\x93"), "counters", "cannot be decoded"),
        (
            write("meta", SECTION_PREFIX + POSITIONS.encode(), msgspec.msgpack.encode([("labels", 0, 7)])),
            "positions",
            r"predictions\[0\] was evaluated up to another offset",
        ),
        (drop("held"), "counters", "held for order = sum over models: "),
        (cut_short("held"), "counters", "cannot be decoded"),
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
def test_every_single_alteration_is_found_by_its_check(streamwatch, directory, change, check, said):
    with altering(directory) as database:
        change(database)
    code, out, err = streamwatch("verify", "-d", directory)
    assert code == 2
    assert re.search(rf"^✗ {check}: .*\n(  .*\n)*  .*{said}", out, re.MULTILINE), out
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


def test_what_a_log_no_longer_holds_is_said_with_the_commit_it_goes_back_to(streamwatch, tmp_path):
    life = Life(tmp_path / "open")
    for n in range(5):
        life.feed(*digested([predict(str(n), at=n)]))
        life.commit()
    copy = shutil.copytree(tmp_path / "open", tmp_path / "copy")
    life.store.close()
    log = max(copy.glob("*.log"))
    content = bytearray(log.read_bytes())
    content[len(content) * 3 // 4] ^= 1
    log.write_bytes(content)
    code, out, _ = streamwatch("verify", "-d", copy)
    assert code == 2
    assert re.match(r"✗ write-ahead log: counts up to commit [1-4]\n", out)
    assert all(line.startswith("✓") for line in out.splitlines()[2:])


# export, import, migrate


def test_a_daemon_goes_on_from_an_imported_state_bitwise(streamwatch, directory, tmp_path):
    before = contents(directory)
    code, _, err = streamwatch("export", "state.swx", "-d", directory)
    assert code == 0
    assert err.startswith("exported ")
    assert contents(directory) == before
    assert [path.name for path in tmp_path.glob("*.swx*")] == ["state.swx"]
    code, _, err = streamwatch("import", "state.swx", "-d", "elsewhere/state")
    assert code == 0
    assert json.loads((directory / FORMAT).read_text())["identity"] in err
    assert streamwatch("verify", "-d", "elsewhere/state")[0] == 0
    one, other = Life(directory), Life(tmp_path / "elsewhere" / "state")
    assert one.everything() == other.everything()
    assert len(one.monitors.models()) == 1
    for start in range(0, 200, 40):
        more = [predict(f"later{n}", "x", 30_000 + n) for n in range(start, start + 40)]
        more += [label(str(n), "y", 30_000 + n) for n in range(start, start + 40, 3)]
        assert one.feed(*digested(more)) == other.feed(*digested(more))
        for life in (one, other):
            life.until(30_000 + start * 1_000)
            life.commit()
        assert one.everything() == other.everything()
    one.store.close()
    other.store.close()
    assert ESTIMATORS.detectors


def test_an_export_does_not_replace_a_file(streamwatch, directory, tmp_path):
    (tmp_path / "state.swx").write_text("precious")
    code, _, err = streamwatch("export", "state.swx", "-d", directory)
    assert (code, err) == (2, "state.swx already exists: choose another name\n")
    assert (tmp_path / "state.swx").read_text() == "precious"


@pytest.mark.slow
def test_a_state_can_be_piped(streamwatch, directory, tmp_path):
    base = [sys.executable, "-m", "streamwatch", "state"]
    piped = subprocess.run(
        [*base, "export", "-", "-d", str(directory)], capture_output=True, check=True
    ).stdout
    subprocess.run([*base, "import", "-", "-d", str(tmp_path / "copy")], input=piped, check=True)
    assert streamwatch("verify", "-d", tmp_path / "copy")[0] == 0


def test_an_export_that_is_not_whole_is_refused(streamwatch, directory, tmp_path):
    assert streamwatch("export", "state.swx", "-d", directory)[0] == 0
    whole = (tmp_path / "state.swx").read_bytes()
    (tmp_path / "state.swx").write_bytes(whole[:-40])
    code, _, err = streamwatch("import", "state.swx", "-d", "copy")
    assert code == 2
    assert re.fullmatch(r"part \d+ of the export fails its checksum: it is cut off or was altered; .*\n", err)
    assert not (tmp_path / "copy").exists()
    code, _, err = streamwatch("import", "absent.swx", "-d", "copy")
    assert (code, "absent.swx" in err) == (2, True)


def test_an_import_into_a_directory_in_use_for_something_is_refused(streamwatch, directory):
    assert streamwatch("export", "state.swx", "-d", directory)[0] == 0
    before = contents(directory)
    code, _, err = streamwatch("import", "state.swx", "-d", directory)
    assert code == 2
    assert "is not empty" in err
    assert contents(directory) == before


def test_migrate_says_when_there_is_nothing_to_do(streamwatch, directory):
    before = contents(directory)
    code, out, _ = streamwatch("migrate", "-d", directory)
    assert code == 0
    assert out == f"nothing to do: the state in {directory} already has schema 4\n"
    assert contents(directory) == before


def test_an_older_state_that_cannot_be_brought_forward_is_not_shown(streamwatch, directory):
    written = json.loads((directory / FORMAT).read_text())
    (directory / FORMAT).write_text(json.dumps(written | {"schema": 0}))
    code, _, err = streamwatch("show", "-d", directory)
    assert code == 2
    assert "does not know how to bring schema 0 forward" in err
    code, _, err = streamwatch("migrate", "-d", directory)
    assert code == 2
    assert "does not know how to bring schema 0 forward" in err
