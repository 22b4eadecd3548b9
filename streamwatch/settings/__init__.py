"""The only reader of configuration: one YAML file, the environment, the command line.

`load` refuses unknown keys and names the origin of each fault. `Settings` are frozen, and used by `cli` and
`assembly` only.
"""

from __future__ import annotations

from streamwatch.settings.faults import SettingsError
from streamwatch.settings.loading import load, load_used
from streamwatch.settings.settings import Settings, example, json_schema

__all__ = ["Settings", "SettingsError", "example", "json_schema", "load", "load_used"]
