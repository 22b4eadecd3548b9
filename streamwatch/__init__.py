"""Is a deployed classifier still better than guessing what came last, and since when not."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamwatch.lab.evaluator import Evaluator

__version__ = "0.1.0"
__all__ = ["Evaluator", "__version__"]


def __getattr__(name: str) -> Any:
    """Import what notebooks use when it is asked for: commands start without it."""
    if name == "Evaluator":
        return import_module("streamwatch.lab.evaluator").Evaluator
    raise AttributeError(f"module 'streamwatch' has no attribute {name!r}")
