"""What all commands of `streamwatch state` have in common: help, directory, refusals."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from streamwatch.edge.stores.rocksdb.database import SCHEMA
from streamwatch.edge.stores.rocksdb.opening import FORMAT
from tests.edge.stores.rocksdb.test_opening import HOLDER


@pytest.mark.parametrize("command", ["show", "verify", "export", "import", "reset"])
def test_the_help_of_each_command_teaches_by_an_example(streamwatch, command):
    code, out, _ = streamwatch(command, "--help")
    assert code == 0
    assert f"streamwatch state {command}" in re.sub(r"\x1b\[[0-9;]*m", "", out).split("╭")[0]


def test_the_directory_is_that_of_the_settings_unless_named(streamwatch, directory, tmp_path):
    (tmp_path / "streamwatch.yaml").write_text(f"state: {{directory: {directory}}}")
    assert streamwatch("show", "--quick")[0] == 0
    code, _, err = streamwatch("show", "-s", "state.kind=memory")
    assert code == 2
    assert err.startswith("state.kind is memory, so there is no state on disk")
    code, _, err = streamwatch("show", "-s", f"state.directory={tmp_path / 'absent'}")
    assert (code, err) == (
        2,
        f"there is no directory {tmp_path / 'absent'}: a daemon makes it at its first start\n",
    )


@pytest.mark.parametrize("command", [["show"], ["verify"], ["export", "x.swx"], ["reset", "--all"]])
def test_what_is_no_state_ends_every_command_with_exit_code_2(streamwatch, tmp_path, command):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "holiday.jpg").write_bytes(b"")
    code, _, err = streamwatch(*command, "-d", tmp_path / "pictures")
    assert (code, err) == (2, f"there is no state in {tmp_path / 'pictures'}: it has no format.json\n")
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["holiday.jpg"]
    assert not (tmp_path / "x.swx").exists()


@pytest.mark.slow
def test_while_a_daemon_runs_its_state_is_shown_and_exported_and_nothing_else_done(
    streamwatch, directory, tmp_path
):
    holding = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holding:
        assert holding.stdout.readline() == b"open\n"
        code, out, _ = streamwatch("show", "-d", directory)
        assert code == 0
        assert f"by process {holding.pid}: this is one of its latest commits" in out
        code, _, err = streamwatch("verify", "-d", directory)
        assert code == 2
        assert f"in use by process {holding.pid}: stop the daemon first" in err
        assert streamwatch("export", tmp_path / "x.swx", "-d", directory)[0] == 0
        assert (tmp_path / "x.swx").stat().st_size > 0
        holding.stdin.close()
    assert streamwatch("verify", "-d", directory)[0] == 0


def test_an_older_state_is_not_shown(streamwatch, directory):
    written = json.loads((directory / FORMAT).read_text())
    (directory / FORMAT).write_text(json.dumps(written | {"schema": 4}))
    code, _, err = streamwatch("show", "-d", directory)
    assert code == 2
    assert f"has schema 4, this program reads {SCHEMA} and nothing older" in err


def test_a_backfill_names_a_pattern_that_is_none(streamwatch, tmp_path):
    (tmp_path / "streamwatch.yaml").write_text("topics: {predictions: p, labels: l}")
    code, _, err = streamwatch("backfill", f"p={tmp_path}/**x")
    assert code == 2
    assert f"expected a pattern of files such as archive/*.parquet, got '{tmp_path}/**x'" in err.replace(
        "\n", " "
    )


def test_an_export_to_a_name_that_no_file_has_is_refused(streamwatch, directory):
    code, _, err = streamwatch("export", "x" * 300, "-d", directory)
    assert code == 2
    assert "File name too long" in err
