"""Internal events of the process: its start, its stop, what it serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamwatch.telemetry.internal_event import InternalEvent, Level


@dataclass(frozen=True)
class Started(InternalEvent):
    """The process is up and its settings are good."""

    version: str


@dataclass(frozen=True)
class KernelCompiling(InternalEvent):
    """The estimators are loaded, or compiled at a first start: minutes, once; a cache serves later starts.

    Said at the start, and every ten seconds while the compiler is at work.
    """

    seconds: float = 0.0
    """Since the start of it."""


@dataclass(frozen=True)
class KernelReady(InternalEvent):
    """The estimators are compiled."""

    seconds: float


@dataclass(frozen=True)
class StartedServing(InternalEvent):
    """The HTTP server answers."""

    address: str


@dataclass(frozen=True)
class HttpExposed(InternalEvent):
    """The HTTP server can be read by more than was perhaps meant; `weakness` says what to change."""

    level: ClassVar[Level] = "warning"
    address: str
    weakness: str


@dataclass(frozen=True)
class HttpClientRefused(InternalEvent):
    """An HTTP client was refused or cut off: too many, too slow, too large, or no HTTP."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "reason"
    burst: ClassVar[int] = 1
    reason: str


@dataclass(frozen=True)
class SeriesDropped(InternalEvent):
    """Other series are left out of `/metrics` than before: `dropped` in all, by part, of `models` models."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "max_series"
    burst: ClassVar[int] = 1
    dropped: int
    by_part: str
    models: int
    max_series: int


@dataclass(frozen=True)
class Stopping(InternalEvent):
    """A signal asked to stop: the batch at hand is finished first."""

    signal: str


@dataclass(frozen=True)
class Stopped(InternalEvent):
    """The daemon has stopped: everything read was evaluated and the last report is out."""

    records: int
    seconds: float
