"""Whether the directory that is written to is still the one that was opened.

Files that are open can be written and flushed without an error long after somebody removed them.
"""

from __future__ import annotations

import os
from pathlib import Path

from streamwatch.edge.stores.errors import StateGone

_WITNESS = "format.json"
"""Written once, when a state is made or brought forward."""


class Presence:
    """Remembers which directory was opened.

    Parameters
    ----------
    directory
        A state that is open.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._opened = self._look()

    def require(self) -> None:
        """Raise StateGone unless the directory stands where it was opened."""
        if self._look() != self._opened:
            raise StateGone(
                f"the state in {self._directory} was removed or replaced while the daemon ran: "
                "what it held is lost, unless the directory was moved and is put back"
            )

    def _look(self) -> tuple[tuple[int, int], ...] | None:
        try:
            found = [os.stat(path) for path in (self._directory, self._directory / _WITNESS)]  # noqa: PTH116
        except OSError:
            return None
        return tuple((status.st_dev, status.st_ino) for status in found)
