"""Receiver protocol: deliver(notification) → DeliveryResult."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from streamwatch.core.alerting.notification import Notification


@dataclass(frozen=True, slots=True)
class Delivered:
    """Result: the receiver took the notification."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Result: the attempt failed and may succeed later."""

    reason: str
    after_seconds: float | None = None
    """Wait that the receiver asked for (Retry-After), in seconds."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Result: the receiver will never take this notification, but may take others."""

    reason: str


@dataclass(frozen=True, slots=True)
class Gone:
    """Result: the receiver no longer exists (HTTP status 410)."""

    reason: str


DeliveryResult: TypeAlias = Delivered | Failed | Refused | Gone


class Receiver(Protocol):
    """One receiver of notifications.

    Its results are logged, so they must hold no secret and no part of a URL.
    """

    @property
    def name(self) -> str:
        """Name of the receiver in the settings, and in the label `receiver` of metrics."""
        ...

    @property
    def host(self) -> str:
        """Host of the receiver, for logs."""
        ...

    @property
    def repeat_interval_seconds(self) -> float | None:
        """Seconds between reminders of open incidents; None: never."""
        ...

    def wants(self, notification: Notification) -> bool:
        """Tell whether the notification is for this receiver."""
        ...

    async def open(self) -> None:
        """Prepare for deliveries; called in the event loop that will deliver."""
        ...

    async def deliver(self, notification: Notification, now_ms: int) -> DeliveryResult:
        """Deliver in bounded time; never raises for what the other side does."""
        ...

    async def remind(self, open_incidents: Sequence[Notification], now_ms: int) -> DeliveryResult:
        """Tell it again which incidents are open."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
