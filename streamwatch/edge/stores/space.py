"""Whether the disk that holds state has room left."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from streamwatch.edge.stores.kind import StateGone

LOOK_SECONDS = 1.0
RELIEF = 1.1
"""Room is there again when this much more than the least is free, so that reading does not flutter."""


class FreeSpace:
    """Looks at the free space of a directory's disk, at most once a second.

    Parameters
    ----------
    directory
        Where state is kept.
    least_bytes
        Free space below which the disk counts as nearly full.
    free_bytes, monotonic
        How free space is found out, and seconds that never go back.
    """

    def __init__(
        self,
        directory: Path,
        least_bytes: int,
        free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._least_bytes = least_bytes
        self._free_bytes = free_bytes
        self._clock = monotonic
        self._look = -LOOK_SECONDS
        self._low = False

    def is_low(self) -> bool:
        """Return whether less than the least is free.

        Raises
        ------
        StateGone
            If the directory is not there.
        """
        now = self._clock()
        if now - self._look >= LOOK_SECONDS:
            self._look = now
            try:
                free = self._free_bytes(self._directory)
            except FileNotFoundError:
                raise StateGone(f"the state in {self._directory} was removed while the daemon ran") from None
            except OSError:  # the disk fails: the store will report it
                return self._low
            self._low = free < self._least_bytes * (RELIEF if self._low else 1.0)
        return self._low
