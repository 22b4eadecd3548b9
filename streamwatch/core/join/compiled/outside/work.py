"""Work that a join hands to whoever drives it, for any thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Work: TypeAlias = Callable[[], None]
"""Function to be called once, in any thread."""


def yield_to_loop() -> None:
    """Do nothing, so that other tasks may run."""
