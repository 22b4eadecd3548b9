"""What RocksDB says when it fails, as errors an operator can act on."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from streamwatch.edge.stores.errors import (
    StateDamaged,
    StateFailed,
    StateForbidden,
    StateInUse,
    StateRefused,
)

_FILE = re.compile(r"[^\s:,'\"()]*(?:\d{6,}\.(?:sst|log|ldb|blob)|MANIFEST-\d+|OPTIONS-\d+|/CURRENT)")
_DAMAGED = ("Corruption:", "checksum mismatch", "No such file or directory", "does not exist")
_UNNAMED = {"CURRENT file": "CURRENT", "ahead of WALs": "*.log"}
"""Signs of damage to a file that RocksDB does not name, and the file."""
_FORBIDDEN = ("Permission denied", "Operation not permitted", "Read-only file system")
_HELD = ("Resource temporarily unavailable", "No locks available", "lock hold by")
_RESTORE = "restore a backup of the directory, or move it away to start afresh"


@contextmanager
def failures(directory: Path) -> Generator[None]:
    """Turn the errors of RocksDB, which come as bare exceptions with a text, into those of a store."""
    try:
        yield
    except (StateFailed, StateRefused):
        raise
    except Exception as error:
        raise translated(error, directory) from error


def translated(error: Exception, directory: Path) -> Exception:
    """The store's error for one of RocksDB's, or the error itself where it is not one of RocksDB's."""
    if type(error) is not Exception and not isinstance(error, OSError):
        return error
    text = str(error)
    if isinstance(error, FileExistsError | NotADirectoryError):
        return StateRefused(f"{directory} is not a directory: name another in `state.directory` ({text})")
    if any(sign in text for sign in _FORBIDDEN):
        return StateForbidden(
            f"the state in {directory} may not be read or written ({text}): "
            "give the daemon's user the right to, or name another directory in `state.directory`"
        )
    if "/LOCK:" in text and any(sign in text for sign in _HELD):
        return StateInUse(
            f"the state in {directory} is in use by another process: one directory serves one daemon"
        )
    if any(sign in text for sign in _DAMAGED):
        where = _damaged_file(text, directory)
        return StateDamaged(f"the state is damaged: {where} is not what was written ({text}); {_RESTORE}")
    return StateFailed(f"the state in {directory} could not be read or written: {text}")


def undecodable(key: bytes, error: Exception) -> StateDamaged:
    """The store's error for a record of which what was read makes no sense."""
    return StateDamaged(
        f"the state is damaged: the record of id {key.hex()} cannot be decoded "
        f"({type(error).__name__}: {error}); `streamwatch state verify` tells what else is"
    )


def _damaged_file(text: str, directory: Path) -> str:
    if named := _FILE.search(text):
        return str(directory / Path(named.group()).name)
    for sign, name in _UNNAMED.items():
        if sign in text:
            return str(directory / name)
    return f"a file in {directory}"
