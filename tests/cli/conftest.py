"""A state that holds something of every kind, and `streamwatch state` in an empty folder."""

from __future__ import annotations

import shutil

import pytest

from streamwatch.cli import app
from tests.commands import CliRunner
from tests.edge.stores.rocksdb.written_state import written_state


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
