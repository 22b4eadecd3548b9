"""The only reader of configuration: one YAML file, the environment, the command line.

`load` is strict and says where a fault stands. What comes out is frozen; only `cli` and `assembly` see it.
"""

from __future__ import annotations

from streamwatch.settings.example import example
from streamwatch.settings.faults import SettingsError
from streamwatch.settings.loading import load, load_used
from streamwatch.settings.settings import Settings, json_schema

__all__ = ["Settings", "SettingsError", "example", "json_schema", "load", "load_used"]
