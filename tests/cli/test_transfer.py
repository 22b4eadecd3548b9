"""`streamwatch state export` and `import`: what goes on elsewhere, and what is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from streamwatch.edge.stores.rocksdb.opening import FORMAT
from tests.core.join.join_stream import label, predict
from tests.edge.stores.rocksdb.stream import digested
from tests.edge.stores.rocksdb.written_state import ESTIMATORS, Life, contents


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


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_an_export_is_as_private_as_the_directory_that_it_was_written_from(
    streamwatch, directory, tmp_path, umask
):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "state.swx.part").symlink_to(tmp_path / "victim")  # as another user of the folder might
    before = os.umask(umask)
    try:
        assert streamwatch("export", "state.swx", "-d", directory)[0] == 0
    finally:
        os.umask(before)
    assert (tmp_path / "state.swx").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "state.swx").is_symlink()
    assert (tmp_path / "victim").read_text() == "precious"


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
    assert (code, err) == (2, "absent.swx: No such file or directory\n")


def test_an_import_into_a_directory_in_use_for_something_is_refused(streamwatch, directory):
    assert streamwatch("export", "state.swx", "-d", directory)[0] == 0
    before = contents(directory)
    code, _, err = streamwatch("import", "state.swx", "-d", directory)
    assert code == 2
    assert "is not empty" in err
    assert contents(directory) == before
