"""`streamwatch spark` where Spark is not installed."""

from __future__ import annotations

import sys

import pytest

from streamwatch.cli import app
from tests.commands import CliRunner


def test_spark_that_is_not_installed_is_reported_before_settings_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)  # importing it fails
    result = CliRunner().invoke(app, ["spark", "-s", "nothing.like.this=1"])
    assert result.exit_code == 2
    assert "pip install 'streamwatchd[spark]'" in result.output
    assert "nothing" not in result.output
