"""Names of backups, which encode the times at which they were begun."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

_NAME: Final = "state-%Y%m%dT%H%M%S.%fZ"


def backup_name(seconds: float) -> str:
    """Name a backup that is begun at this time, in seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).strftime(_NAME)


def begun_at(path: Path) -> float | None:
    """Return when a backup was begun, in seconds since the epoch; None for a path that is no backup's."""
    try:
        return datetime.strptime(path.name, _NAME).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def backups_in(directory: Path) -> list[Path]:
    """List the complete backups in a directory, the oldest first."""
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if begun_at(path) is not None)
