"""What a type of receiver exports: its name, the settings that are its own, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from streamwatch.edge.receivers.http import EndpointSpec, HttpReceiver


@dataclass(frozen=True, slots=True)
class ReceiverOptions:
    """Settings of one receiver beyond its endpoint, secrets read; each type takes those that are its own."""

    external_url: str = ""
    """Where people reach the status page; empty without one."""
    keys: Sequence[bytes] = field(default=(), repr=False)
    """Keys that sign requests."""
    routing_key: str = field(default="", repr=False)
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Added to every alert."""
    repeat_interval_ms: int = 60_000
    """Between two repetitions of open alarms."""


class ReceiverKind(NamedTuple):
    """A type of receiver."""

    name: str
    """Value of `type` in the settings."""
    settings: tuple[str, ...]
    """Keys of the section that only this type has."""
    build: Callable[[EndpointSpec, ReceiverOptions], HttpReceiver]
    default_url: str = ""
    """Where the section names no URL; empty where it has to."""
