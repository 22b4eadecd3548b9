"""What the GNU C library does with freed memory: keep it for the next allocation, or give it back."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Final, cast

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt` in <malloc.h>."""
KEPT_BYTES: Final = 512 * 2**20
"""Free memory at the end of the heap that a process keeps after `keep_freed_memory`."""
HEAP_BYTES: Final = 32 * 2**20
"""Size up to which an allocation comes from the heap, the largest that the library accepts."""


def keep_freed_memory() -> bool:
    """Let this process and those it forks use freed memory again; gives whether the C library can do that.

    For a process that allocates arrays of megabytes for each task and frees them. By default the library
    returns these to the system at once, and the system fills every page with zeros when the next task asks
    for it.
    """
    mallopt = _function_of_library("mallopt")
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, HEAP_BYTES)) and bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES))


def return_freed_memory() -> bool:
    """Give freed memory back to the system; gives whether there was any and the C library can do that.

    For a process that has just freed much more than it will soon need again, as after opening a state.
    """
    malloc_trim = _function_of_library("malloc_trim")
    return malloc_trim is not None and bool(malloc_trim(0))


def _function_of_library(name: str) -> Callable[..., int] | None:
    """A function that only the GNU C library has, on Linux."""
    if sys.platform != "linux":
        return None
    return cast("Callable[..., int] | None", getattr(ctypes.CDLL(None), name, None))
