"""The command that installs an extra, for the tool (pip, pipx, uv, uvx) that made this environment."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "streamwatchd"
_MADE_BY: Final = {
    "pipx_metadata.json": "pipx install --force '{}'",
    "uv-receipt.toml": "uv tool install '{}'",
}
"""File that a tool leaves in the environment's folder → its install command; `{}` is the requirement."""
_OF_UVX: Final = ("archive-v", "environments-v")
"""Beginnings of names of folders in uv's cache where `uvx` makes environments for a single run."""


def command_for(extra: str, environment: Path | None = None) -> str:
    """Return the shell command that installs an extra; with pipx, uv and uvx it replaces other extras.

    Parameters
    ----------
    extra
        Its name in `pyproject.toml`.
    environment
        Folder of the environment; None: the one of this process.
    """
    wanted = f"{DISTRIBUTION}[{extra}]"
    folder = Path(sys.prefix) if environment is None else environment
    for name, command in _MADE_BY.items():
        if (folder / name).exists():
            return command.format(wanted)
    if any(part.startswith(_OF_UVX) for part in folder.parts):
        return f"uvx --from '{wanted}' streamwatch"
    return f"pip install '{wanted}'"
