"""Times how much of a processor something takes, where a bound on it is a promise."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def own_garbage() -> Iterator[None]:
    """Objects that exist already are not looked at by collections of garbage in here.

    A whole collection of what a session of tests has left takes a second on a busy machine, and falls into
    whatever is being timed.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
