"""Happenings of the process: its start, its stop, what it serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamwatch.telemetry.happening import Happening, Level


@dataclass(frozen=True)
class Started(Happening):
    """The process is up and its settings are good."""

    version: str


@dataclass(frozen=True)
class KernelCompiling(Happening):
    """The estimators are being compiled: seconds at the first start, a cache serves the later ones."""


@dataclass(frozen=True)
class KernelReady(Happening):
    """The estimators are compiled."""

    seconds: float


@dataclass(frozen=True)
class StartedServing(Happening):
    """The HTTP server answers."""

    address: str


@dataclass(frozen=True)
class AccessLeftOpen(Happening):
    """The HTTP server can be read by more than was perhaps meant; `weakness` says what to change."""

    level: ClassVar[Level] = "warning"
    address: str
    weakness: str


@dataclass(frozen=True)
class Stopping(Happening):
    """A signal asked to stop: the batch at hand is finished first."""

    signal: str


@dataclass(frozen=True)
class Stopped(Happening):
    """Everything read was evaluated and the last report is out."""

    records: int
    seconds: float
