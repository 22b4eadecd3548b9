"""Runs commands of the command line in this process."""

from __future__ import annotations

from functools import cache

from typer import testing
from typer.testing import CliRunner

__all__ = ["CliRunner"]

testing._get_command = cache(testing._get_command)
