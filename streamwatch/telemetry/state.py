"""Internal events of state: the estimators it holds, the disk it is on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamwatch.telemetry.internal_event import InternalEvent, Level


@dataclass(frozen=True)
class StateOpened(InternalEvent):
    """State was found and restored; what lay in the journal was evaluated once more."""

    commits: int
    models: int
    refolded_outcomes: int
    seconds: float


@dataclass(frozen=True)
class StateLost(InternalEvent):
    """State could not be written or read: memory is dropped and state opened again where it was durable."""

    level: ClassVar[Level] = "error"
    error: str
    retry_in_seconds: float


@dataclass(frozen=True)
class EstimatorsChanged(InternalEvent):
    """Settings (or the version) differ from those state was made under: some estimators begin at n = 0."""

    level: ClassVar[Level] = "warning"
    continued: tuple[str, ...]
    restarted: tuple[str, ...]
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class ModelStateDiscarded(InternalEvent):
    """A model's state does not fit the new settings: it begins anew."""

    level: ClassVar[Level] = "warning"
    model: str
    reason: str


@dataclass(frozen=True)
class ModelRetired(InternalEvent):
    """A model was idle for long; its series end and its place is free."""

    model: str


@dataclass(frozen=True)
class DiskLow(InternalEvent):
    """The disk of the state is nearly full: nothing is read until there is room."""

    level: ClassVar[Level] = "error"


@dataclass(frozen=True)
class DiskFreed(InternalEvent):
    """The disk has room again: reading goes on."""
