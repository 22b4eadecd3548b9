"""Garbage collection in the workers of Spark."""

from __future__ import annotations

import gc
from functools import cache


@cache
def freeze_once() -> None:
    """Spare later collections what is loaded by now.

    Spark collects after every task, however small; through all that was imported it takes as long as a task.
    """
    gc.freeze()
