"""Memory that the C library keeps in workers of Spark, instead of giving it back to the system."""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt` in <malloc.h> of the GNU C library."""
KEPT_BYTES: Final = 512 * 2**20
"""Free memory at the end of the heap that a process keeps."""
HEAP_BYTES: Final = 32 * 2**20
"""Size up to which an allocation comes from the heap, the largest that the library accepts."""


def keep_freed_memory() -> bool:
    """Let this process and those it forks use freed memory again; gives whether the C library can do that.

    A task allocates arrays of megabytes and frees them. By default the library returns these to the system at
    once, and the system fills every page with zeros when the next task asks for it.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # only the GNU C library has it
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, HEAP_BYTES)) and bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES))
