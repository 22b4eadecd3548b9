"""What a store exports: its name in the settings, whether it outlives the process, and how it is opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from streamwatch.core.ports import Store

Spec = TypeVar("Spec")


class StoreKind(NamedTuple, Generic[Spec]):
    """A store of state between batches."""

    name: str
    """Value of `state.kind` in the settings."""
    durable: bool
    """Whether its contents survive the process."""
    open: Callable[[Spec], Store]
    """Opens it, given where and how large; may raise StateRefused or StateFailed."""
