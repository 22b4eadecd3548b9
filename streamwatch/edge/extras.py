"""The command that adds an extra to an installation, by what made the environment that this runs in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "streamwatchd"
_MADE_BY: Final = {
    "pipx_metadata.json": "pipx install --force '{}'",
    "uv-receipt.toml": "uv tool install '{}'",
}
"""File in the environment's folder → how what made it is asked for more; `pip` would install beside it."""
_OF_UVX: Final = ("archive-v", "environments-v")
"""How folders of uv's cache begin, in which `uvx` makes environments that nobody keeps."""


def command_for(extra: str, environment: Path | None = None) -> str:
    """Tell what to type so that an extra is installed; with pipx, uv and uvx it replaces other extras.

    Parameters
    ----------
    extra
        Name of it, as in `pyproject.toml`.
    environment
        Folder of the environment; None: of this process.
    """
    wanted = f"{DISTRIBUTION}[{extra}]"
    folder = Path(sys.prefix) if environment is None else environment
    for name, command in _MADE_BY.items():
        if (folder / name).exists():
            return command.format(wanted)
    if any(part.startswith(_OF_UVX) for part in folder.parts):
        return f"uvx --from '{wanted}' streamwatch"
    return f"pip install '{wanted}'"
