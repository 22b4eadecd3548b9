"""Check of the files of certificates that settings name for connections by HTTPS."""

from __future__ import annotations

import ssl
from pathlib import Path

from streamwatch.settings import SettingsError


def checked_authorities(file: Path | None, key: str) -> str | None:
    """Return the path of a file of certificates to trust; None where the setting `key` names none.

    Raises
    ------
    SettingsError
        If the file has no certificates in PEM format.
    """
    if file is None:
        return None
    try:
        ssl.create_default_context(cafile=file)
    except ssl.SSLError:
        raise SettingsError(f"{key}: expected PEM certificates in {file}") from None
    return str(file)
