"""Check of the free space on the state's disk."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from streamwatch.edge.stores.kind import StateGone

LOOK_SECONDS = 1.0
RECOVERY_FACTOR = 1.1
"""Factor on `least_bytes` that free space must reach after it was low, so that the result does not flap."""


class FreeSpace:
    """Checks the free space of a directory's disk, at most once a second.

    Parameters
    ----------
    directory
        Directory of the state.
    least_bytes
        Free space below which the disk counts as nearly full.
    free_bytes
        Function from a directory to the free bytes on its disk.
    """

    def __init__(
        self,
        directory: Path,
        least_bytes: int,
        free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
    ) -> None:
        self._directory = directory
        self._least_bytes = least_bytes
        self._free_bytes = free_bytes
        self._look = -LOOK_SECONDS
        self._low = False

    def is_low(self) -> bool:
        """Tell whether less than `least_bytes` is free.

        Raises
        ------
        StateGone
            If the directory does not exist.
        """
        now = time.monotonic()
        if now - self._look >= LOOK_SECONDS:
            self._look = now
            try:
                free = self._free_bytes(self._directory)
            except FileNotFoundError:
                raise StateGone(f"the state in {self._directory} was removed while the daemon ran") from None
            except OSError:  # the disk fails: the store will report it
                return self._low
            self._low = free < self._least_bytes * (RECOVERY_FACTOR if self._low else 1.0)
        return self._low
