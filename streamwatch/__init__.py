"""Evaluation of deployed classifiers: is one better than repeating the last label, and since when not."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamwatch.history.evaluator import Evaluator
    from streamwatch.history.frames import replay

__version__ = "0.1.0"
__all__ = ["Evaluator", "__version__", "replay"]
_MODULES = {"Evaluator": "streamwatch.history.evaluator", "replay": "streamwatch.history.frames"}


def __getattr__(name: str) -> Any:
    """Import a name that notebooks use at its first use, so that commands start without it."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'streamwatch' has no attribute {name!r}")
